/** When a request that failed is sent again, and after how long. */

export interface RetryRules {
  /** After the first try. 0 = none. */
  readonly maxRetries: number;
  /** A server that asks for more patience than this is taken at its word: the call fails, and its error says how long. */
  readonly maxRetryAfterMs: number;
  /** A try that fails later than this after the first one began is not repeated. Absent: there is no such time. */
  readonly withinMs?: number;
}

/** Statuses that pass by themselves: nobody did the work, or nobody can tell. */
const PASSING = new Set([408, 429, 500, 502, 503, 504]);
const FIRST_BACKOFF_MS = 500;
const MAX_BACKOFF_MS = 8_000;

/** Methods that do the same when done twice (RFC 9110, section 9.2.2); so does every PATCH of this API, which is a merge patch. */
const REPEATABLE = new Set(['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE']);

/** Reports whether a request may be sent twice. Methods other than the above need an Idempotency-Key. */
export function isRepeatable(method: string, idempotencyKey: string | undefined): boolean {
  return REPEATABLE.has(method) || idempotencyKey !== undefined;
}

/**
 * Milliseconds to wait before the next try; undefined: there is none.
 * @param answer undefined when there was none
 * @param failures tries that failed, this one included
 */
export function retryDelayMs(
  answer: Response | undefined,
  failures: number,
  rules: RetryRules,
  { nowMs, random }: { readonly nowMs: number; readonly random: () => number },
): number | undefined {
  if (failures > rules.maxRetries || !isWorthwhile(answer)) return undefined;
  const ceiling = Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** (failures - 1));
  // Half of it by chance, so that clients that failed together do not come back together.
  const jitter = (random() * ceiling) / 2;
  const asked = answer && retryAfterMs(answer.headers, nowMs);
  if (asked === undefined) return ceiling / 2 + jitter;
  return asked > rules.maxRetryAfterMs ? undefined : asked + jitter;
}

function isWorthwhile(answer: Response | undefined): boolean {
  if (answer === undefined) return true;
  const advice = answer.headers.get('x-should-retry');
  if (advice === 'true') return true;
  return advice !== 'false' && PASSING.has(answer.status);
}

/** Retry-After (RFC 9110, section 10.2.3): seconds, or a date, which counts from the server's own clock where it tells the time. */
export function retryAfterMs(headers: Headers, nowMs: number): number | undefined {
  const value = headers.get('retry-after')?.trim();
  if (value === undefined || value === '') return undefined;
  if (/^\d+$/.test(value)) return Number(value) * 1000;
  const at = Date.parse(value);
  if (!/GMT$/.test(value) || Number.isNaN(at)) return undefined;
  const served = Date.parse(headers.get('date') ?? '');
  return Math.max(0, at - (Number.isNaN(served) ? nowMs : served));
}
