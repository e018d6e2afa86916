/** The one shape of every error answer: RFC 9457 problem details that also carry the `error` member of the OpenAI API. */

import { ERRORS, type ErrorCode } from './errors.ts';

export interface FieldError {
  /** RFC 6901 JSON pointer into the request body. */
  readonly path: string;
  readonly message: string;
}

export interface ProblemExtras {
  readonly policy?: string;
  readonly errors?: readonly FieldError[];
  readonly resets_at?: string;
  /** The member or parameter at fault, as OpenAI clients show it. */
  readonly param?: string;
}

export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly code: ErrorCode;
  readonly request_id: string;
  readonly policy?: string;
  readonly errors?: readonly FieldError[];
  readonly resets_at?: string;
  readonly error: {
    readonly message: string;
    readonly type: string;
    readonly param: string | null;
    readonly code: ErrorCode;
  };
}

export const PROBLEM_TYPE_BASE = 'https://postern.dev/errors/';

export function problem(code: ErrorCode, detail: string, requestId: string, extras: ProblemExtras = {}): Problem {
  const { param, ...members } = extras;
  const entry = ERRORS[code];
  return {
    type: PROBLEM_TYPE_BASE + code,
    title: entry.title,
    status: entry.status,
    detail,
    code,
    request_id: requestId,
    ...members,
    error: { message: detail, type: entry.type, param: param ?? null, code },
  };
}

/** Returns the message about a member or parameter as a sentence that names it. */
export function fieldSentence({ path, message }: FieldError): string {
  const name = path === '' ? 'it' : `\`${path}\``;
  if (message.startsWith('Must ')) return `${name} must ${message.slice('Must '.length)}`;
  if (message.startsWith('This member ')) return `${name} ${message.slice('This member '.length)}`;
  return `${name}: ${message}`;
}
