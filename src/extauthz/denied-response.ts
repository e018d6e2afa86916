/**
 * Writes Envoy's `CheckResponse` for a denial: a status that is never 0, and a `denied_response` with the client's
 * answer in the form of errors that the SDKs for its path read.
 */

import type { InvalidReason, Principal, Route } from '../decision/model.ts';
import { type DenyCode, ERRORS } from '../domain/errors.ts';
import { anthropicProblemDetails, problemDetails } from '../domain/problem-details.ts';
import type { BudgetState, RateRefusal } from '../metering/admission.ts';
import { NO_HOLE } from './answer-template.ts';
import { BUDGET_HEADER, budgetMember } from './budget-answers.ts';
import { fillAscii } from './fill.ts';
import { headerName, putHeader } from './header-options.ts';
import { MEMBER, putMember, putWords, wrapMetadata } from './metadata.ts';
import { putRateHeaders } from './rate-headers.ts';
import { beginWriting, finishWriting, putByte, putText, putVarint, type Writer, wrap } from './wire-write.ts';

/** The outcomes that are no allow: a decision's denial, an unreadable message, a fault. */
export type DenialCode = DenyCode | 'malformed_request' | 'unavailable';

/** The properties of a denial. The decision's `Deny` has this form. */
export interface Denial extends Partial<Pick<RateRefusal, 'rate' | 'tokenRate' | 'retryAfterSeconds' | 'limit'>> {
  readonly code: DenialCode;
  readonly detail: string;
  readonly policy?: string;
  readonly permission?: string;
  readonly param?: string;
  readonly route?: Route;
  readonly principal?: Principal;
  /** The reason why the credential is invalid. */
  readonly reason?: InvalidReason;
  /** With `insufficient_quota`: RFC 3339; undefined = the quota does not reset by itself. */
  readonly resetsAt?: string | undefined;
  /** With `insufficient_quota`. */
  readonly budget?: BudgetState | undefined;
  /** Whether the caller may see the amounts of the budget. */
  readonly showsAmounts?: boolean;
  /** The value of the header about the budget; undefined = the answer has no such header. */
  readonly budgetHeader?: string | undefined;
}

/**
 * google.rpc.Code: INVALID_ARGUMENT, PERMISSION_DENIED, RESOURCE_EXHAUSTED, UNAVAILABLE, UNAUTHENTICATED. The type does
 * not contain OK.
 */
type RpcCode = 3 | 7 | 8 | 14 | 16;

/** The HTTP statuses that a check can answer with. */
type Status = (typeof ERRORS)[DenialCode]['status'];

const RPC_CODE: { readonly [S in Status]: RpcCode } = { 400: 3, 401: 16, 403: 7, 413: 8, 429: 8, 503: 14 };

const CONTENT_TYPE = headerName('content-type');
const CACHE_CONTROL = headerName('cache-control');
const CHALLENGE = headerName('www-authenticate');
const RETRY_AFTER = headerName('retry-after');
const SHOULD_RETRY = headerName('x-should-retry');
const REQUEST_ID = headerName('x-request-id');
const ANTHROPIC_REQUEST_ID = headerName('request-id');

const REALM = 'Bearer realm="postern"';
const INVALID_TOKEN = `${REALM}, error="invalid_token"`;
/** In seconds. The window of a rate limit is a minute. */
const RETRY_UNAVAILABLE = '1';
const MAX_RETRY_SECONDS = 60;
/** The characters of the patterns of a limit by model that the answer shows. */
const MAX_PATTERNS = 512;

/** By default, Envoy takes at most 4,096 bytes of a denied body. */
export const MAX_DENIAL_BODY_BYTES = 4095;
/** Room for twice the body (a bound on the detail), headers and metadata. */
const MAX_ANSWER_BYTES = 16_384;

/** An answer without the request's id. */
interface Prepared {
  readonly code: DenialCode;
  readonly bytes: Buffer;
  /** The offsets of the id, which occurs three or four times. */
  readonly holes: readonly number[];
}

/** The placeholder of a request's id. No other text of an answer contains it. */
const NO_ID = '\x7f'.repeat(30);
/** The maximum number of prepared answers: 2 MB in all. */
const MAX_PREPARED = 1024;

/** @param isMessages true: the answer has the form that Anthropic's SDKs read */
type DenialWriter = (denial: Denial, requestId: string, isMessages: boolean) => Buffer;

/**
 * Creates a writer that keeps up to 1,024 prepared answers. Any client can cause a denial without a principal, and such
 * a denial must not cost more than an allow. The writer therefore copies prepared bytes.
 */
export function createDenialWriter(): DenialWriter {
  /** Prepared answers by route and detail, at the index that `variantOf` returns. */
  const prepared = new Map<Route | undefined, Map<string, Prepared[]>>();
  let preparedCount = 0;

  function preparedOf(denial: Denial, isMessages: boolean): Prepared {
    const { code, route, detail } = denial;
    const variant = variantOf(denial, isMessages);
    const known = prepared.get(route)?.get(detail)?.[variant];
    if (known !== undefined && known.code === code) return known;
    if (preparedCount >= MAX_PREPARED) {
      prepared.clear();
      preparedCount = 0;
    }
    const made = prepare(denial, isMessages);
    const ofRoute = prepared.get(route) ?? new Map<string, Prepared[]>();
    const ofDetail = ofRoute.get(detail) ?? [];
    ofDetail[variant] = made;
    prepared.set(route, ofRoute.set(detail, ofDetail));
    preparedCount++;
    return made;
  }

  return (denial, requestId, isMessages) => {
    const { principal, policy, permission, param, resetsAt, rate, retryAfterSeconds } = denial;
    const own = principal ?? policy ?? permission ?? param ?? resetsAt ?? rate ?? retryAfterSeconds;
    if (own !== undefined || requestId.length !== NO_ID.length) return writeDenial(denial, requestId, isMessages);
    const { bytes, holes } = preparedOf(denial, isMessages);
    const answer = Buffer.allocUnsafe(bytes.length);
    answer.set(bytes);
    const [first = NO_HOLE, second = NO_HOLE, third = NO_HOLE, fourth = NO_HOLE] = holes;
    fillAscii(answer, requestId, first, second, third);
    if (fourth !== NO_HOLE) fillAscii(answer, requestId, fourth, NO_HOLE, NO_HOLE);
    return answer;
  };
}

/** Returns a number for the reason and the form, which distinguish the answers of one code, route and detail. */
function variantOf({ reason }: Denial, isMessages: boolean): number {
  return (reason === 'scheme' ? 1 : 0) + (isMessages ? 2 : 0);
}

function prepare(denial: Denial, isMessages: boolean): Prepared {
  const bytes = writeDenial(denial, NO_ID, isMessages);
  const holes: number[] = [];
  for (let at = bytes.indexOf(NO_ID); at >= 0; at = bytes.indexOf(NO_ID, at + NO_ID.length)) holes.push(at);
  return { code: denial.code, bytes, holes };
}

function writeDenial(denial: Denial, requestId: string, isMessages: boolean): Buffer {
  const writer = beginDenial(denial);
  putDenialMetadata(writer, denial, requestId);
  const deniedEnd = writer.at;
  putText(writer, body(denial, requestId, isMessages));
  wrap(writer, 0x1a, deniedEnd);
  putHeaders(writer, denial, requestId, isMessages);
  return finishDenial(writer, denial, deniedEnd);
}

/** Writes the denial of a check in shadow mode: the status and the body only, so nothing that Envoy could apply. */
export function writeShadowDenial(denial: Denial, requestId: string, isMessages: boolean): Buffer {
  const writer = beginDenial(denial);
  const deniedEnd = writer.at;
  putText(writer, body(denial, requestId, isMessages));
  wrap(writer, 0x1a, deniedEnd);
  return finishDenial(writer, denial, deniedEnd);
}

function beginDenial({ permission, route }: Denial): Writer {
  return beginWriting(MAX_ANSWER_BYTES + (permission?.length ?? 0) + (route?.template.length ?? 0));
}

function finishDenial(writer: Writer, { code }: Denial, deniedEnd: number): Buffer {
  const { status } = ERRORS[code];
  const statusEnd = writer.at;
  putVarint(writer, status);
  putByte(writer, 0x08);
  wrap(writer, 0x0a, statusEnd);
  wrap(writer, 0x12, deniedEnd);
  const codeEnd = writer.at;
  putByte(writer, RPC_CODE[status]);
  putByte(writer, 0x08);
  wrap(writer, 0x0a, codeEnd);
  return finishWriting(writer);
}

function putHeaders(writer: Writer, denial: Denial, requestId: string, isMessages: boolean): void {
  const { code } = denial;
  putHeader(writer, REQUEST_ID, requestId);
  if (isMessages) putHeader(writer, ANTHROPIC_REQUEST_ID, requestId);
  const challenge = challengeOf(denial);
  if (challenge !== undefined) putHeader(writer, CHALLENGE, challenge);
  if (denial.rate !== undefined) putRateHeaders(writer, denial.rate, 'requests');
  if (denial.tokenRate !== undefined) putRateHeaders(writer, denial.tokenRate, 'tokens');
  if (code === 'unavailable') putHeader(writer, RETRY_AFTER, RETRY_UNAVAILABLE);
  if (code === 'rate_limit_exceeded') putHeader(writer, RETRY_AFTER, retrySeconds(denial));
  if (denial.budgetHeader !== undefined) putHeader(writer, BUDGET_HEADER, denial.budgetHeader);
  if (code === 'insufficient_quota') putHeader(writer, SHOULD_RETRY, 'false');
  putHeader(writer, CACHE_CONTROL, 'no-store');
  putHeader(writer, CONTENT_TYPE, 'application/problem+json');
}

function retrySeconds({ rate, retryAfterSeconds }: Denial): string {
  return String(Math.max(1, Math.min(MAX_RETRY_SECONDS, rate?.resetSeconds ?? retryAfterSeconds ?? MAX_RETRY_SECONDS)));
}

/** RFC 6750, section 3: no `error` without a credential, and the missing permission as the scope. */
function challengeOf(denial: Denial): string | undefined {
  switch (denial.code) {
    case 'missing_credential':
      return REALM;
    case 'invalid_credential':
      // RFC 6750, section 3.1: another scheme brought no token that could be invalid.
      return denial.reason === 'scheme' ? REALM : INVALID_TOKEN;
    case 'token_expired':
      return INVALID_TOKEN;
    case 'insufficient_permission':
      return `${REALM}, error="insufficient_scope"${denial.permission === undefined ? '' : `, scope="${denial.permission}"`}`;
    default:
      return undefined;
  }
}

/** Returns the problem document as JSON. It cuts a detail that would make the document too long for Envoy. */
function body(denial: Denial, requestId: string, isMessages: boolean): string {
  const { budget, limit } = denial;
  const extras = {
    ...(denial.policy === undefined ? {} : { policy: denial.policy }),
    ...(denial.param === undefined ? {} : { param: denial.param }),
    ...(denial.code === 'insufficient_quota' ? { resets_at: denial.resetsAt ?? null } : {}),
    ...(budget === undefined ? {} : { budget: budgetMember(budget, denial.showsAmounts === true) }),
    ...(limit === undefined ? {} : { limit: { ...limit, models: firstOf(limit.models) } }),
  };
  for (let length = MAX_DENIAL_BODY_BYTES / 2; ; length /= 2) {
    const { detail } = denial;
    const shown = detail.length <= length ? detail : `${detail.slice(0, length).toWellFormed()}…`;
    const plain = problemDetails(denial.code, shown, requestId, extras);
    const text = JSON.stringify(isMessages ? anthropicProblemDetails(plain) : plain);
    if (length < 1 || Buffer.byteLength(text) <= MAX_DENIAL_BODY_BYTES) return text;
  }
}

/** Returns the first patterns, because an administrator may have given one limit more than an answer has space for. */
function firstOf(models: readonly string[]): readonly string[] {
  let left = MAX_PATTERNS;
  return models.filter((pattern) => {
    left -= pattern.length;
    return left >= 0;
  });
}

function putDenialMetadata(writer: Writer, denial: Denial, requestId: string): void {
  const end = writer.at;
  const { principal, route } = denial;
  putMember(writer, MEMBER.request_id, requestId);
  if (route !== undefined) putWords(writer, MEMBER.route, route.method, route.template);
  if (principal !== undefined) {
    putMember(writer, MEMBER.tenant, principal.tenantId);
    putMember(writer, MEMBER.subject_type, principal.kind);
    putMember(writer, MEMBER.subject, principal.id);
  }
  putMember(writer, MEMBER.code, denial.code);
  wrapMetadata(writer, end);
}
