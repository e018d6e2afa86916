/** A browser that logs in to the console by an issuer, without the console. */

import type { Harness, Json, Reply } from '../http/harness.ts';
import type { Login, ScriptedProvider } from '../support/scripted-provider.ts';

export interface Issuer {
  readonly id: string;
  readonly tenant: string;
  readonly provider: ScriptedProvider;
}

/** One browser: it keeps cookies. */
export class Browser {
  readonly #harness: Harness;
  readonly #cookies = new Map<string, string>();

  constructor(harness: Harness) {
    this.#harness = harness;
  }

  /** Takes the cookies of another browser. */
  take(other: Browser): this {
    for (const [name, value] of other.#cookies) this.#cookies.set(name, value);
    return this;
  }

  set(name: string, value: string): void {
    this.#cookies.set(name, value);
  }

  cookie(name: string): string | undefined {
    return this.#cookies.get(name);
  }

  async go(method: string, path: string, headers: Readonly<Record<string, string>> = {}): Promise<Reply> {
    const cookie = [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const reply = await this.#harness.api(method, path, {
      headers: { ...(cookie === '' ? {} : { cookie }), ...headers },
      ...(method === 'POST' ? { body: {} } : {}),
    });
    for (const line of [reply.headers['set-cookie'] ?? []].flat()) {
      const [pair = '', ...attributes] = line.split('; ');
      const at = pair.indexOf('=');
      if (attributes.includes('Max-Age=0')) this.#cookies.delete(pair.slice(0, at));
      else this.#cookies.set(pair.slice(0, at), pair.slice(at + 1));
    }
    return reply;
  }

  /** Begins a login and returns the address of the provider's page. */
  async start({ id }: Issuer, query = ''): Promise<string> {
    return locationOf(await this.go('GET', `/v1/auth/sso/${id}/start${query}`));
  }

  async finish({ id }: Issuer, query: string): Promise<string> {
    return locationOf(await this.go('GET', `/v1/auth/sso/${id}/callback?${query}`));
  }

  /** Logs in, and returns where the browser ends. */
  async logIn(issuer: Issuer, login?: Login): Promise<string> {
    return this.finish(issuer, issuer.provider.authorize(await this.start(issuer), login));
  }

  /** The console requests its tokens. */
  refresh(): Promise<Reply> {
    return this.go('POST', '/v1/auth/refresh', { origin: this.#harness.url });
  }

  logOut(): Promise<Reply> {
    return this.go('POST', '/v1/auth/logout', { origin: this.#harness.url });
  }
}

export function locationOf(reply: Reply): string {
  const { location } = reply.headers;
  if (reply.status !== 302 || typeof location !== 'string') throw new Error(`${reply.status} ${reply.text}`);
  return location;
}

/** Makes an issuer with a login for a tenant. */
export async function makeIssuer(
  h: Harness,
  provider: ScriptedProvider,
  tenant: string,
  members: Json = {},
): Promise<Issuer> {
  const sso = { client_id: provider.clientId, client_secret: provider.clientSecret, label: 'Company' };
  const { sso: more, ...rest } = members;
  const body = {
    name: 'company',
    issuer: provider.issuer.url,
    audiences: ['postern'],
    users: { create: true, default_roles: ['analyst'] },
    sso: { ...sso, ...Object(more) },
    ...rest,
  };
  const made = await h.api('POST', '/v1/iam/issuers', { as: h.root.token, tenant, body });
  if (made.status !== 201) throw new Error(`${made.status} ${made.text}`);
  return { id: String(made.json['id']), tenant, provider };
}
