/**
 * Requests that the demo sends through Envoy if its keys are new. The gate denies each for a different reason, so that
 * the console has decisions to explain. Some logins fail, so that the console can show a locked account. No request
 * reaches the platform.
 */

interface Attempt {
  /** The name of a permanent key. */
  readonly key: string;
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly body?: object;
}

const MESSAGES = [{ role: 'user', content: 'Hello' }];
const CHAT = '/v1/chat/completions';

const REFUSED: readonly Attempt[] = [
  { key: 'checkout-assistant', method: 'POST', path: CHAT, body: { model: 'secret-sauce', messages: MESSAGES } },
  {
    key: 'checkout-assistant',
    method: 'POST',
    path: CHAT,
    body: { model: 'llama-3', max_tokens: 32_000, messages: MESSAGES },
  },
  { key: 'nightly-embeddings', method: 'POST', path: CHAT, body: { model: 'llama-3', messages: MESSAGES } },
  { key: 'pricing-notebook', method: 'GET', path: '/v1/models' },
  { key: 'risk-reports', method: 'POST', path: CHAT, body: { model: 'gpt-oss-120b', messages: MESSAGES } },
  { key: 'risk-reports', method: 'POST', path: '/v1/rag/query', body: { collection: 'payroll', query: 'bonus' } },
  { key: 'support-desk', method: 'GET', path: '/v1/rag/collections' },
  { key: 'code-assistant', method: 'POST', path: CHAT, body: { model: 'gpt-secret', messages: MESSAGES } },
  { key: 'old-chatbot', method: 'POST', path: CHAT, body: { model: 'llama-3', messages: MESSAGES } },
  { key: 'trial-bot', method: 'POST', path: CHAT, body: { model: 'llama-3', max_tokens: 900, messages: MESSAGES } },
];

const LOCKED = 'tomas.ribeiro@acme.example';
const FAILED_LOGINS = 10;
const TIMEOUT_MS = 5000;

/**
 * Resolves when all requests are answered or have failed. Nothing depends on them.
 * @param edge address of Envoy, `host:port`
 * @param secrets the secrets of the keys that this start created, by name; if there are none, it sends nothing
 */
export async function sendFirstRequests(edge: string, secrets: ReadonlyMap<string, string>): Promise<void> {
  if (secrets.size === 0) return;
  const logins = Array.from({ length: FAILED_LOGINS }, () =>
    send(edge, '/v1/auth/login', 'POST', {}, { email: LOCKED, password: 'not the password' }),
  );
  const requests = REFUSED.map(async ({ key, method, path, body }) => {
    const secret = secrets.get(key);
    if (secret !== undefined) await send(edge, path, method, { authorization: `Bearer ${secret}` }, body);
  });
  await Promise.allSettled([...logins, ...requests]);
}

async function send(
  edge: string,
  path: string,
  method: Attempt['method'],
  headers: Readonly<Record<string, string>>,
  body: object | undefined,
): Promise<void> {
  const answer = await fetch(`http://${edge}${path}`, {
    method,
    headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  await answer.body?.cancel();
}
