/** Whether a request that failed is sent again, and after which time. */

export interface RetryRules {
  /** The largest number of attempts after the first one. */
  readonly maxRetries: number;
  /** The call fails if the server's Retry-After is longer. */
  readonly maxRetryAfterMs: number;
  /** An attempt that fails later than this after the begin of the first one is the last. Absent: no such bound. */
  readonly withinMs?: number;
}

/** Statuses after which another attempt may succeed. */
const PASSING = new Set([408, 429, 500, 502, 503, 504]);
const FIRST_BACKOFF_MS = 500;
const MAX_BACKOFF_MS = 8_000;

/** Idempotent methods (RFC 9110, section 9.2.2), and PATCH, because each PATCH of this API is a merge patch. */
const REPEATABLE = new Set(['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE']);

/** Reports whether a request may be sent twice. Other methods need an Idempotency-Key for that. */
export function isRepeatable(method: string, idempotencyKey: string | undefined): boolean {
  return REPEATABLE.has(method) || idempotencyKey !== undefined;
}

/**
 * Returns the milliseconds until the next attempt; undefined: there is none.
 * @param answer undefined: there was none
 * @param failures the number of attempts that failed, this one included
 */
export function retryDelayMs(
  answer: Response | undefined,
  failures: number,
  rules: RetryRules,
  { nowMs, random }: { readonly nowMs: number; readonly random: () => number },
): number | undefined {
  if (failures > rules.maxRetries || !isWorthwhile(answer)) return undefined;
  const ceiling = Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** (failures - 1));
  // Half of it is random, so that clients that failed together do not try again together.
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

/**
 * Retry-After (RFC 9110, section 10.2.3): seconds, or a date, which is compared with the header Date if there is one.
 */
export function retryAfterMs(headers: Headers, nowMs: number): number | undefined {
  const value = headers.get('retry-after')?.trim();
  if (value === undefined || value === '') return undefined;
  if (/^\d+$/.test(value)) return Number(value) * 1000;
  const at = Date.parse(value);
  if (!/GMT$/.test(value) || Number.isNaN(at)) return undefined;
  const served = Date.parse(headers.get('date') ?? '');
  return Math.max(0, at - (Number.isNaN(served) ? nowMs : served));
}
