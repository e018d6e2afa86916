/**
 * The shape of error answers: RFC 9457 problem details that also carry the `error` member of the OpenAI API. On
 * Anthropic's Messages API, `type` and `error` are those of that API.
 */

import { type AnthropicErrorType, ERRORS, type ErrorCode, type ErrorDefinition } from './errors.ts';
import type { BudgetPeriod, BudgetUnit } from './records.ts';

export interface FieldError {
  /** RFC 6901 JSON pointer into the request body. */
  readonly path: string;
  readonly message: string;
}

/** The budget without room for a request. Only callers that may read usage get the amounts. */
export interface BudgetMember {
  readonly id: string;
  readonly name: string;
  readonly period: BudgetPeriod;
  /** RFC 3339; null = the amount is never reset by time. */
  readonly resets_at: string | null;
  readonly unit?: BudgetUnit;
  /** A number of tokens or of requests, or a decimal text of money, as the other amounts. */
  readonly limit?: number | string;
  readonly spent?: number | string;
  readonly reserved?: number | string;
  readonly remaining?: number | string;
}

export interface RateLimitMember {
  readonly level: 'tenant' | 'user' | 'key';
  readonly models: readonly string[];
  readonly dimension: 'requests_per_minute' | 'tokens_per_minute' | 'parallel';
}

export interface ProblemExtras {
  readonly policy?: string;
  readonly errors?: readonly FieldError[];
  /** RFC 3339; null = the quota does not reset by itself. */
  readonly resets_at?: string | null;
  readonly budget?: BudgetMember;
  readonly limit?: RateLimitMember;
  /** The member or parameter at fault, as OpenAI clients show it. */
  readonly param?: string;
}

export type ProblemDetails = Readonly<ReturnType<typeof problemDetails>>;

/** A problem as Anthropic's SDKs read it: they find `type` "error" and their own `error`; the other members stay. */
interface AnthropicProblemDetails extends Omit<ProblemDetails, 'type' | 'error'> {
  readonly type: 'error';
  readonly error: { readonly type: AnthropicErrorType; readonly message: string };
}

export const PROBLEM_TYPE_BASE = 'https://postern.dev/errors/';

export function problemDetails(code: ErrorCode, detail: string, requestId: string, extras: ProblemExtras = {}) {
  const { param, ...members } = extras;
  const entry: ErrorDefinition = ERRORS[code];
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

export function anthropicProblemDetails(from: ProblemDetails): AnthropicProblemDetails {
  return { ...from, type: 'error', error: { type: anthropicTypeOf(from.status), message: from.detail } };
}

function anthropicTypeOf(status: number): AnthropicErrorType {
  if (status >= 500) return 'overloaded_error';
  switch (status) {
    case 401:
      return 'authentication_error';
    case 403:
      return 'permission_error';
    case 404:
      return 'not_found_error';
    case 413:
      return 'request_too_large';
    case 429:
      return 'rate_limit_error';
    default:
      return 'invalid_request_error';
  }
}

/** Returns the message about a member or parameter as a sentence that names it. */
export function fieldSentence({ path, message }: FieldError): string {
  const name = path === '' ? 'it' : `\`${path}\``;
  if (message.startsWith('Must ')) return `${name} must ${message.slice('Must '.length)}`;
  if (message.startsWith('This member ')) return `${name} ${message.slice('This member '.length)}`;
  return `${name}: ${message}`;
}
