/** Preconditions of a request: If-Match and If-None-Match (RFC 9110, section 13.1), and conditional answers. */

import { Refusal } from '../domain/errors.ts';
import type { Caller } from '../iam/caller/caller.ts';
import {
  type EntityTag,
  entityTag,
  isUnchanged,
  type Preconditions,
  requireMet,
  type TagList,
} from '../iam/change/preconditions.ts';
import type { Answer, Callers, Endpoint, RawRequestInput } from './endpoint.ts';
import { readIdempotentRequest } from './idempotency.ts';

/** Returns all lines of a header, joined by commas. Undefined: there is none. */
type HeaderLines = (name: string) => string | undefined;

/**
 * Runs an endpoint under the conditions and the Idempotency-Key of the request's headers.
 * @throws Refusal as the endpoint does; `invalid_parameter` for a malformed header
 */
export async function runWithPreconditions(
  endpoint: Endpoint,
  input: RawRequestInput,
  callers: Callers | undefined,
  header: HeaderLines,
): Promise<Answer> {
  if (callers === undefined) return endpoint.run(input, undefined);
  const conditions = { preconditions: readPreconditions(header), idempotency: readIdempotentRequest(endpoint, input) };
  const on = (caller: Caller): Caller => ({ ...caller, ...conditions });
  const answer = await endpoint.run(input, {
    caller: on(callers.caller),
    again: callers.again,
    callerIn: async (tenantId) => on(await callers.callerIn(tenantId)),
  });
  const shown = endpoint.answers[answer.status]?.headers?.includes('etag') === true ? tagged(answer) : answer;
  if (endpoint.method === 'GET') return conditional(shown, conditions.preconditions);
  if (conditions.idempotency?.replayed !== true) return shown;
  return { ...shown, headers: { ...shown.headers, 'idempotency-replayed': 'true' } };
}

/**
 * @returns undefined if the request has no conditions
 * @throws Refusal `invalid_parameter` for a header that is neither `*` nor a list of entity tags
 */
function readPreconditions(header: HeaderLines): Preconditions | undefined {
  const ifMatch = readTags('If-Match', header('if-match'));
  const ifNoneMatch = readTags('If-None-Match', header('if-none-match'));
  return ifMatch === undefined && ifNoneMatch === undefined ? undefined : { ifMatch, ifNoneMatch };
}

/** RFC 9110, section 8.8.3: the characters of an opaque tag, commas among them. */
const TAG = /(W\/)?"([\x21\x23-\x7e\x80-\xff]*)"/y;
/** Section 5.6.1: a list may have empty elements. */
const BETWEEN = /[ \t,]*/y;
const COMMA = /[ \t]*(?:,[ \t,]*|$)/y;

const MAX_TAGS = 256;

function readTags(name: string, text: string | undefined): TagList | undefined {
  if (text === undefined) return undefined;
  if (text.trim() === '*') return { kind: 'any' };
  const tags: EntityTag[] = [];
  let at = end(BETWEEN, text, 0) ?? 0;
  while (at < text.length) {
    TAG.lastIndex = at;
    const [all, weak, value] = TAG.exec(text) ?? [];
    const next = all === undefined ? undefined : end(COMMA, text, at + all.length);
    if (value === undefined || next === undefined) throw malformed(name);
    if (tags.length === MAX_TAGS) {
      throw new Refusal('invalid_parameter', `${name} names more than ${MAX_TAGS} entity tags.`, { param: name });
    }
    tags.push({ weak: weak !== undefined, value });
    at = next;
  }
  if (tags.length === 0) throw malformed(name);
  return { kind: 'tags', tags };
}

/** Returns the end of a match of `pattern` at `start`. */
function end(pattern: RegExp, text: string, start: number): number | undefined {
  pattern.lastIndex = start;
  return pattern.test(text) ? pattern.lastIndex : undefined;
}

function malformed(name: string): Refusal {
  return new Refusal('invalid_parameter', `${name} is neither * nor a list of entity tags in quotes.`, { param: name });
}

export function tagged(answer: Answer): Answer {
  const { body } = answer;
  if (typeof body !== 'object' || body === null) return answer;
  return { ...answer, headers: { ...answer.headers, etag: entityTag(body) } };
}

/**
 * Applies the conditions of a GET: 304 without a body if the client has the current version.
 * @param answer with its entity tag
 * @throws Refusal `precondition_failed` if If-Match names other versions
 */
export function conditional(answer: Answer, conditions: Preconditions | undefined): Answer {
  const tag = answer.headers?.['etag'];
  if (conditions === undefined || typeof tag !== 'string') return answer;
  requireMet({ ...conditions, ifNoneMatch: undefined }, tag);
  const unchanged = conditions.ifNoneMatch !== undefined && isUnchanged(conditions.ifNoneMatch, tag);
  return unchanged ? { status: 304, headers: { etag: tag } } : answer;
}
