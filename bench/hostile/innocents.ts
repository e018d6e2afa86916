/** Five innocent tenants: what they have, and the requests that they send, each with the decision that it must get. */

import type { Administrator } from './administrator.ts';
import type { Request } from './connection.ts';

const TENANTS = 5;
const MONTHLY_TOKENS = 1_000_000_000_000;
const REQUESTS_PER_MINUTE = 10_000_000;

export interface InnocentRequest extends Request {
  /** Which connection sends it: each tenant has one of its own. */
  readonly connection: number;
  readonly expected: Expected;
}

export type Expected =
  /** The upstream answers, and sees this tenant. */
  | { readonly kind: 'allow'; readonly tenant: string }
  | { readonly kind: 'deny'; readonly status: number; readonly code: string };

export const INNOCENTS: readonly string[] = Array.from({ length: TENANTS }, (_, i) => `innocent-${i + 1}`);

/** Returns the mix of requests, to be sent in turns. */
export async function makeInnocents(administrator: Administrator, http: string): Promise<readonly InnocentRequest[]> {
  const mixes: (readonly InnocentRequest[])[] = [];
  for (const [i, tenant] of INNOCENTS.entries()) mixes.push(await makeInnocent(administrator, http, tenant, i));
  const [first = []] = mixes;
  return first.flatMap((_, at) => mixes.flatMap((mix) => mix[at] ?? []));
}

async function makeInnocent(
  administrator: Administrator,
  http: string,
  tenant: string,
  connection: number,
): Promise<readonly InnocentRequest[]> {
  await administrator.makeTenant(
    tenant,
    { rate_limit_rpm: REQUESTS_PER_MINUTE, max_tokens_per_request: 4096, default_model: 'llama-3' },
    { monthly_tokens: MONTHLY_TOKENS },
  );
  const policy = { name: 'no-secret-models', effect: 'deny', actions: ['*'], resources: ['models/secret-*'] };
  await administrator.must('POST', '/v1/iam/policies', policy, tenant);
  const role = { name: 'worker', permissions: ['chat:*', 'embeddings:*', 'models:read', 'rag:*'] };
  await administrator.must('POST', '/v1/iam/roles', role, tenant);
  const token = await administrator.makeUser(http, tenant, `user@${tenant}.example`, ['worker']);
  const limited = { rate_limit_rpm: REQUESTS_PER_MINUTE };
  const whole = await administrator.makeKey(tenant, {
    ...limited,
    scopes: ['chat:*', 'embeddings:*', 'models:read', 'rag:*'],
    resource_constraints: { collections: ['handbook', 'wiki-*'] },
  });
  const narrow = await administrator.makeKey(tenant, { scopes: ['embeddings:*'] });
  const revoked = await administrator.makeKey(tenant, { scopes: ['*'] });
  await administrator.must('DELETE', `/v1/iam/api-keys/${revoked.id}`, undefined, tenant);

  const allow: Expected = { kind: 'allow', tenant };
  const deny = (status: number, code: string): Expected => ({ kind: 'deny', status, code });
  const send = (
    credential: string | undefined,
    expected: Expected,
    method: string,
    path: string,
    body?: object,
  ): InnocentRequest => ({
    connection,
    expected,
    method,
    path,
    ...(credential === undefined ? {} : { authorization: `Bearer ${credential}` }),
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const chat = (credential: string, expected: Expected, model = 'llama-3', stream = false): InnocentRequest =>
    send(credential, expected, 'POST', '/v1/chat/completions', {
      model,
      messages: [{ role: 'user', content: `A question of ${tenant}. `.repeat(20) }],
      max_tokens: 64,
      ...(stream ? { stream, stream_options: { include_usage: true } } : {}),
    });
  const embed = (credential: string): InnocentRequest =>
    send(credential, allow, 'POST', '/v1/embeddings', {
      model: 'text-embedding-3-small',
      input: `A text of ${tenant}.`,
    });
  const query = (expected: Expected, collection: string): InnocentRequest =>
    send(whole.key, expected, 'POST', '/v1/rag/query', { collections: [collection], query: 'What is it?' });
  return [
    chat(whole.key, allow),
    chat(token, allow),
    chat(whole.key, allow, 'llama-3', true),
    embed(whole.key),
    send(token, allow, 'GET', '/v1/models'),
    query(allow, 'handbook'),
    chat(whole.key, allow),
    chat(token, allow, 'llama-3', true),
    chat(whole.key, deny(403, 'denied_by_policy'), 'secret-1'),
    chat(whole.key, allow),
    embed(token),
    send(whole.key, allow, 'GET', '/v1/models'),
    query(allow, 'wiki-1'),
    chat(token, allow, 'llama-3', true),
    chat(narrow.key, deny(403, 'insufficient_permission')),
    chat(token, allow),
    chat(revoked.key, deny(401, 'invalid_credential')),
    query(deny(403, 'resource_not_permitted'), 'salaries'),
    send(undefined, deny(401, 'missing_credential'), 'GET', '/v1/models'),
    chat(whole.key, allow, 'llama-3', true),
  ];
}

/** Keys that no server has seen before, and one request with each. */
export async function makeColdRequests(
  administrator: Administrator,
  count: number,
): Promise<readonly InnocentRequest[]> {
  const requests: InnocentRequest[] = [];
  for (let i = 0; i < count; i++) {
    const connection = i % TENANTS;
    const tenant = INNOCENTS[connection] ?? '';
    const { key } = await administrator.makeKey(tenant, { scopes: ['models:read'] });
    const expected: Expected = { kind: 'allow', tenant };
    requests.push({ connection, expected, method: 'GET', path: '/v1/models', authorization: `Bearer ${key}` });
  }
  return requests;
}
