/** Sends one request, in several attempts if that is safe and may help, each within its time. */

import { ConnectionError, problemError } from './errors.ts';
import { type RetryRules, retryAfterMs, retryDelayMs } from './retry.ts';
import type { Timing } from './timing.ts';

export interface ExchangeParts {
  readonly fetch: typeof fetch;
  readonly timing: Timing;
}

export interface Outgoing {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  /** True: the browser sends the cookies of the server's origin, also from a page of another origin. */
  readonly cookies?: boolean;
  /** Bounds each attempt, up to the end of its answer. */
  readonly timeoutMs: number;
  /** Whether two of these requests have the same effect as one. */
  readonly repeatable: boolean;
  readonly rules: RetryRules;
  readonly signal?: AbortSignal | undefined;
}

/** An answer whose body has been read. */
export interface Received {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

export async function received(response: Response): Promise<Received> {
  return { status: response.status, headers: response.headers, text: await response.text() };
}

type Attempt<T> =
  | { readonly kind: 'done'; readonly value: T }
  | { readonly kind: 'failed'; readonly error: Error; readonly answer: Response | undefined };

/**
 * Resolves with the result of `read`.
 * @param read reads a 2xx answer. The time of the attempt includes it
 * @throws ProblemError, ConnectionError, or the signal's reason
 */
export async function exchange<T>(
  parts: ExchangeParts,
  out: Outgoing,
  read: (response: Response) => Promise<T>,
): Promise<T> {
  const { now, random, sleep } = parts.timing;
  const beganMs = now();
  for (let failures = 1; ; failures++) {
    const attempted = await attempt(parts, out, read);
    if (attempted.kind === 'done') return attempted.value;
    const isLate = now() - beganMs > (out.rules.withinMs ?? Number.POSITIVE_INFINITY);
    const delayMs =
      out.repeatable && !isLate
        ? retryDelayMs(attempted.answer, failures, out.rules, { nowMs: now(), random })
        : undefined;
    if (delayMs === undefined) throw attempted.error;
    await sleep(delayMs, out.signal ?? new AbortController().signal);
  }
}

async function attempt<T>(
  parts: ExchangeParts,
  out: Outgoing,
  read: (response: Response) => Promise<T>,
): Promise<Attempt<T>> {
  const tooLate = new AbortController();
  const answered = new AbortController();
  parts.timing.sleep(out.timeoutMs, answered.signal).then(
    () => tooLate.abort(),
    () => undefined,
  );
  try {
    const signal = out.signal === undefined ? tooLate.signal : AbortSignal.any([out.signal, tooLate.signal]);
    const response = await parts.fetch(out.url, {
      method: out.method,
      headers: out.headers,
      // Postern never redirects. A server that does must not get a credential.
      redirect: 'error',
      credentials: out.cookies === true ? 'include' : 'same-origin',
      signal,
      ...(out.body === undefined ? {} : { body: out.body }),
    });
    if (response.ok) return { kind: 'done', value: await read(response) };
    const { text } = await received(response);
    const error = problemError(response, text, retryAfterMs(response.headers, parts.timing.now()));
    return { kind: 'failed', error, answer: response };
  } catch (cause) {
    if (out.signal?.aborted) throw out.signal.reason;
    const where = `${out.method} ${out.url.replace(/\?.*/, '')}`;
    const error = tooLate.signal.aborted
      ? new ConnectionError(`${where}: no answer within ${out.timeoutMs} ms.`, { timedOut: true })
      : new ConnectionError(`${where}: the connection failed.`, { cause });
    return { kind: 'failed', error, answer: undefined };
  } finally {
    answered.abort();
  }
}
