/** Converts the error of a request into problem details with the headers of its code. */

import { ERRORS, type ErrorCode, Refusal, type RefusalExtras } from '../domain/errors.ts';
import { present } from '../domain/objects.ts';
import { type ProblemDetails, problemDetails } from '../domain/problem-details.ts';

interface ProblemAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: ProblemDetails;
}

/** Clients with automatic retries wait at most this time. */
const MAX_RATE_RETRY_SECONDS = 60;
const DEFAULT_RETRY_SECONDS = 1;
const REALM = 'Bearer realm="postern"';

/**
 * Returns the response to a request that failed: the code of a Refusal, or 503 for every other error, whose cause only
 * the log may have.
 */
export function problemOf(error: unknown, requestId: string): ProblemAnswer {
  if (error instanceof Refusal) return answer(error.code, error.message, requestId, error.extras);
  return answer('unavailable', 'The service cannot answer now. Try again shortly.', requestId, {});
}

function answer(code: ErrorCode, detail: string, requestId: string, extras: RefusalExtras): ProblemAnswer {
  const { status } = ERRORS[code];
  const { policy, errors, param } = extras;
  return {
    status,
    headers: { ...challenge(code, status, extras), ...retryAdvice(code, status, extras.retryAfter) },
    body: problemDetails(code, detail, requestId, present({ policy, errors, param })),
  };
}

/** RFC 6750, section 3.1: no `error` for a request without a credential, or with another scheme. */
function challenge(
  code: ErrorCode,
  status: number,
  { scope, reason }: RefusalExtras,
): Readonly<Record<string, string>> {
  if (code === 'missing_credential' || reason === 'scheme') return { 'www-authenticate': REALM };
  if (status === 401) return { 'www-authenticate': `${REALM}, error="invalid_token"` };
  if (code === 'insufficient_permission') {
    return {
      'www-authenticate': `${REALM}, error="insufficient_scope"${scope === undefined ? '' : `, scope="${scope}"`}`,
    };
  }
  return {};
}

/** Advice for clients with automatic retries, such as the OpenAI SDKs: a retry does not resolve a conflict. */
function retryAdvice(
  code: ErrorCode,
  status: number,
  retryAfter: number | undefined,
): Readonly<Record<string, string>> {
  if (code === 'idempotency_in_progress') return { 'x-should-retry': 'true', 'retry-after': '1' };
  if (status === 409 || code === 'insufficient_quota') return { 'x-should-retry': 'false' };
  if (retryAfter !== undefined) {
    const most = code === 'rate_limit_exceeded' ? MAX_RATE_RETRY_SECONDS : Number.POSITIVE_INFINITY;
    return { 'retry-after': String(Math.max(1, Math.min(most, Math.ceil(retryAfter)))) };
  }
  if (status === 503 || status === 429) return { 'retry-after': String(DEFAULT_RETRY_SECONDS) };
  return {};
}
