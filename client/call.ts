/** The request of one call, and the result that its answer becomes. */

import { ProblemError, UnexpectedAnswerError } from './errors.ts';
import type { Outgoing, Received } from './exchange.ts';
import type { CallOptions } from './operations.ts';
import type { Settings } from './options.ts';
import { isRepeatable } from './retry.ts';
import { type PathParameters, type QueryParameters, requestUrl } from './url.ts';

/** The options of any operation. */
export interface AnyOptions extends CallOptions {
  readonly path?: PathParameters | undefined;
  readonly query?: QueryParameters | undefined;
  readonly body?: unknown;
  readonly accept?: string;
}

/** Operations whose body is a form (`application/x-www-form-urlencoded`), not JSON. */
const FORMS: ReadonlySet<string> = new Set(['/v1/auth/token']);

/** Returns the request of a call without its credential, which may be another one in each attempt. */
export function outgoing(
  settings: Settings,
  tenant: string | undefined,
  method: string,
  path: string,
  options: AnyOptions,
): Outgoing {
  const inTenant = options.tenant ?? tenant;
  const isForm = FORMS.has(path);
  const key = options.idempotencyKey ?? (method === 'POST' && path.startsWith('/v1/iam/') ? makeKey() : undefined);
  return {
    method,
    url: requestUrl(settings.baseUrl, path, options.path, options.query),
    headers: {
      accept: options.accept ?? 'application/json',
      ...(options.body === undefined
        ? {}
        : { 'content-type': isForm ? 'application/x-www-form-urlencoded' : 'application/json' }),
      ...(inTenant === undefined ? {} : { 'x-tenant-id': inTenant }),
      ...(options.ifMatch === undefined ? {} : { 'if-match': options.ifMatch }),
      ...(key === undefined ? {} : { 'idempotency-key': key }),
    },
    body: options.body === undefined ? undefined : isForm ? formOf(options.body) : JSON.stringify(options.body),
    timeoutMs: options.timeoutMs ?? settings.timeoutMs,
    repeatable: isRepeatable(method, key),
    rules: { maxRetries: options.maxRetries ?? settings.maxRetries, maxRetryAfterMs: settings.maxRetryAfterMs },
    signal: options.signal,
  };
}

/** Members without a value are left out. */
function formOf(body: unknown): string {
  const given = Object.entries(Object(body)).filter(([, value]) => value !== undefined);
  return new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
}

/** `crypto.randomUUID` exists only in secure contexts. */
function makeKey(): string {
  return crypto
    .getRandomValues(new Uint8Array(16))
    .reduce((text, byte) => text + byte.toString(16).padStart(2, '0'), '');
}

export function bearing(out: Outgoing, token: string | undefined): Outgoing {
  return token === undefined ? out : { ...out, headers: { ...out.headers, authorization: `Bearer ${token}` } };
}

/** Reports whether the server refused the credential, so that a new one may succeed. */
export function isStale(error: unknown): boolean {
  return (
    error instanceof ProblemError &&
    (error.code === 'token_expired' || error.code === 'invalid_credential') &&
    error.status === 401
  );
}

/**
 * Returns the JSON of an answer; undefined: it has no body. It is not validated against the API's description.
 * @throws UnexpectedAnswerError for a body that is not JSON
 */
export function dataOf<T>({ text, headers }: Received): T {
  const absent: unknown = undefined;
  const type = headers.get('content-type') ?? '';
  if (text !== '' && !/^application\/json\b/.test(type)) throw new UnexpectedAnswerError('The answer is not JSON.');
  try {
    const data: T = text === '' ? absent : JSON.parse(text);
    return data;
  } catch {
    throw new UnexpectedAnswerError('The answer is not JSON.');
  }
}
