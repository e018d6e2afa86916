/** The platform administrator's calls of `/v1/iam`, straight at Postern's HTTP listener. */

import { setTimeout as sleep } from 'node:timers/promises';

export interface Called {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

export interface Sums {
  readonly requests: number;
  readonly total_tokens: number;
}

const LOGIN_TRIES = 20;
const PAUSE_MS = 250;

export class Administrator {
  readonly #base: string;
  readonly token: string;

  private constructor(base: string, token: string) {
    this.#base = base;
    this.token = token;
  }

  /** @param http `host:port` of Postern's HTTP listener */
  static async login(http: string, email: string, password: string): Promise<Administrator> {
    return new Administrator(`http://${http}`, await login(http, email, password));
  }

  async call(
    method: string,
    path: string,
    body?: object,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Called> {
    const response = await fetch(`${this.#base}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${this.token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, body: text === '' ? {} : (JSON.parse(text) as Record<string, unknown>) };
  }

  /** Rejects unless the answer is 2xx. */
  async must(method: string, path: string, body?: object, tenant?: string): Promise<Readonly<Record<string, unknown>>> {
    const answer = await this.call(method, path, body, tenant === undefined ? {} : { 'x-tenant-id': tenant });
    if (answer.status >= 300)
      throw new Error(`${method} ${path} answered ${answer.status}: ${JSON.stringify(answer.body)}`);
    return answer.body;
  }

  async makeTenant(id: string, settings: object, quotas: object): Promise<void> {
    await this.must('POST', '/v1/iam/tenants', { id, name: id, settings, quotas });
  }

  /** Makes a user with a password and returns its access token. */
  async makeUser(http: string, tenant: string, email: string, roles: readonly string[]): Promise<string> {
    const password = `the password of ${email}`;
    await this.must('POST', '/v1/iam/users', { email, name: email, roles, password }, tenant);
    return login(http, email, password);
  }

  /** Makes a key of the tenant's own. */
  async makeKey(tenant: string, members: object): Promise<{ readonly id: string; readonly key: string }> {
    const made = await this.must(
      'POST',
      '/v1/iam/api-keys',
      { description: 'benchmark', expires_in_days: 30, ...members },
      tenant,
    );
    return { id: String(made['id']), key: String(made['key']) };
  }

  /** Returns the tenant's usage of the month. */
  async usage(tenant: string): Promise<Sums> {
    const { total } = await this.must('GET', `/v1/iam/usage?tenant_id=${tenant}`);
    return total as Sums;
  }
}

/** A busy server may answer 503; then the login is tried again, 20 times at most. */
async function login(http: string, email: string, password: string): Promise<string> {
  for (let tries = 1; ; tries++) {
    const response = await fetch(`http://${http}/v1/auth/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ email, password }),
    });
    const text = await response.text();
    if (response.status === 200) return (JSON.parse(text) as { access_token: string }).access_token;
    if (response.status !== 503 || tries === LOGIN_TRIES)
      throw new Error(`The login answered ${response.status}: ${text}`);
    await sleep(PAUSE_MS);
  }
}
