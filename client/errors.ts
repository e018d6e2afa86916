/** How a call fails. No error holds a credential, a body or a header of the request. */

import type { Problem } from './types.ts';

export interface FieldError {
  /** JSON pointer into the request's body (RFC 6901). */
  readonly path: string;
  readonly message: string;
}

/** A code of Postern's catalogue; `unknown` when somebody else answered, such as a proxy that could not reach it. */
export type ProblemCode = Problem['code'] | 'unknown';

export interface ProblemFacts {
  readonly status: number;
  readonly code: ProblemCode;
  readonly title: string;
  readonly detail: string;
  /** What is wrong with which member of the body. */
  readonly errors: readonly FieldError[];
  /** To find the request in the audit log, and for whoever is asked for help. */
  readonly requestId: string | undefined;
  /** Seconds until it is worth asking again. */
  readonly retryAfter: number | undefined;
  /** The policy that denied the request. */
  readonly policy: string | undefined;
}

/** The server answered, with a refusal or a fault (RFC 9457). */
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

/** There was no whole answer: whether the server did what was asked is not known. */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError';
  /** True: the time was over. */
  readonly timedOut: boolean;

  constructor(
    message: string,
    { timedOut = false, cause }: { readonly timedOut?: boolean; readonly cause?: unknown } = {},
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.timedOut = timedOut;
  }
}

/** A 2xx answer that is not what the API describes: something between here and Postern answered instead. */
export class UnexpectedAnswerError extends Error {
  override readonly name = 'UnexpectedAnswerError';
}

/**
 * @param text the body
 * @param retryAfterMs as the answer's Retry-After says
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

/** A server that is newer than this client may know more codes than the type does; they are passed on as they are. */
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

/** Undefined when the text is not a JSON object. */
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
