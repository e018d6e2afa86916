/** The errors of calls. None contains a credential, a body or a header of the request. */

import type { Problem } from './types.ts';

export interface FieldError {
  /** JSON pointer into the request's body (RFC 6901). */
  readonly path: string;
  readonly message: string;
}

/** A code of Postern; `unknown`: the answer did not come from Postern, but from a proxy, for example. */
export type ProblemCode = Problem['code'] | 'unknown';

export interface ProblemFacts {
  readonly status: number;
  readonly code: ProblemCode;
  readonly title: string;
  readonly detail: string;
  /** The errors of single members of the body. */
  readonly errors: readonly FieldError[];
  /** The id of the request in the audit log and in the logs of the server. */
  readonly requestId: string | undefined;
  /** Seconds until another attempt may succeed. */
  readonly retryAfter: number | undefined;
  /** The policy that denied the request. */
  readonly policy: string | undefined;
}

/** The server answered with an error (RFC 9457). */
export class ProblemError extends Error implements ProblemFacts {
  override readonly name = 'ProblemError';
  readonly status: number;
  readonly code: ProblemCode;
  readonly title: string;
  readonly detail: string;
  readonly errors: readonly FieldError[];
  readonly requestId: string | undefined;
  readonly retryAfter: number | undefined;
  readonly policy: string | undefined;

  constructor(facts: ProblemFacts) {
    super(`${facts.status} ${facts.code}: ${facts.detail || facts.title}`);
    this.status = facts.status;
    this.code = facts.code;
    this.title = facts.title;
    this.detail = facts.detail;
    this.errors = facts.errors;
    this.requestId = facts.requestId;
    this.retryAfter = facts.retryAfter;
    this.policy = facts.policy;
  }
}

/** There was no complete answer. The server may have performed the request. */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError';
  /** True if the attempt took longer than `timeoutMs`. */
  readonly timedOut: boolean;

  constructor(
    message: string,
    { timedOut = false, cause }: { readonly timedOut?: boolean; readonly cause?: unknown } = {},
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.timedOut = timedOut;
  }
}

/** A 2xx answer that the API does not describe, for example of a proxy. */
export class UnexpectedAnswerError extends Error {
  override readonly name = 'UnexpectedAnswerError';
}

/**
 * Returns the error of an answer that is not 2xx.
 * @param text the body
 * @param retryAfterMs of the header Retry-After
 */
export function problemError(response: Response, text: string, retryAfterMs: number | undefined): ProblemError {
  const body = problemOf(response, text);
  const requestId = textOf(body['request_id']) ?? response.headers.get('x-request-id') ?? undefined;
  const code = textOf(body['code']);
  return new ProblemError({
    status: response.status,
    code: code !== undefined && isCode(code) ? code : 'unknown',
    title: textOf(body['title']) ?? response.statusText,
    detail: textOf(body['detail'] ?? body['error_description']) ?? '',
    errors: fieldErrors(body['errors']),
    requestId,
    retryAfter: retryAfterMs === undefined ? undefined : retryAfterMs / 1000,
    policy: textOf(body['policy']),
  });
}

/** The token endpoint answers in the form of RFC 6749, with the status of a problem beside it. */
function problemOf(response: Response, text: string): Readonly<Record<string, unknown>> {
  const type = response.headers.get('content-type') ?? '';
  const isProblem = type.startsWith('application/problem+json');
  const body = (isProblem || type.startsWith('application/json') ? jsonObject(text) : undefined) ?? {};
  const isOAuth = typeof body['error'] === 'string' && body['status'] === response.status;
  return isProblem || isOAuth ? body : {};
}

/** Codes of a newer server than this client are passed on, although the type does not have them. */
function isCode(code: string): code is Problem['code'] {
  return /^[a-z][a-z_]{0,63}$/.test(code);
}

function fieldErrors(value: unknown): readonly FieldError[] {
  if (!Array.isArray(value)) return [];
  return value.flatMap((each: unknown) => {
    const { path, message } = asObject(each) ?? {};
    return typeof path === 'string' && typeof message === 'string' ? [{ path, message }] : [];
  });
}

/** Returns undefined for a text that is not a JSON object. */
export function jsonObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    return asObject(JSON.parse(text));
  } catch {
    return undefined;
  }
}

function asObject(value: unknown): Readonly<Record<string, unknown>> | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined;
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
