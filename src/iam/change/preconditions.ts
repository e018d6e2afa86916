/**
 * Entity tags, and the conditions of requests on them (RFC 9110, sections 8.8.3 and 13.1). A tag is a digest of a
 * resource, so it changes with every member that responses show, and reveals nothing beyond the response that carries
 * it.
 *
 * Some resources have members that no request changes, such as the last use or notices. Their tags have two parts:
 * `"<state>.<rest>"`. GET compares both parts. A change compares only the state, because a request cannot overwrite the
 * rest.
 */

import { hash } from 'node:crypto';
import { Refusal } from '../../domain/errors.ts';
import { canonicalJsonOf } from '../../domain/json.ts';

export interface EntityTag {
  readonly weak: boolean;
  /** Without the quotes. */
  readonly value: string;
}

/** `*`, which matches every existing resource, or tags of which at least one must match. */
export type TagList = { readonly kind: 'any' } | { readonly kind: 'tags'; readonly tags: readonly EntityTag[] };

/** The conditions of a request on the current resource. */
export interface Preconditions {
  readonly ifMatch: TagList | undefined;
  readonly ifNoneMatch: TagList | undefined;
}

/** Members that no request changes. */
const REST: ReadonlySet<string> = new Set([
  'last_used_at',
  'last_login_at',
  'locked_until',
  'notices',
  'notice',
  // The state of an issuer's keys.
  'keys',
  // The use of a budget.
  'state',
  // The events that a webhook left out.
  'dropped',
]);
/** Members that only one response has. */
const FIRST_RESPONSE_ONLY: ReadonlySet<string> = new Set(['key', 'secret', 'password_setup_token', 'secret_available']);

const SEPARATOR = '.';

/** Returns the strong tag of a resource, in quotes. */
export function entityTag(resource: object): string {
  const members = Object.entries(resource).filter(([name]) => !FIRST_RESPONSE_ONLY.has(name));
  const state = members.filter(([name]) => !REST.has(name));
  const rest = members.filter(([name]) => REST.has(name));
  const parts = rest.length === 0 ? [state] : [state, rest];
  return `"${parts.map((part) => digest(Object.fromEntries(part))).join(SEPARATOR)}"`;
}

/**
 * Returns 128 bits: two states do not share a tag by chance, and a client that searches for a collision harms only
 * itself.
 */
function digest(value: unknown): string {
  return hash('sha256', canonicalJsonOf(value), 'buffer').subarray(0, 16).toString('base64url');
}

/**
 * Checks the conditions of a change.
 * @param tag the tag of the current resource
 * @throws Refusal `precondition_failed`
 */
export function requireMet(conditions: Preconditions, tag: string): void {
  const { ifMatch, ifNoneMatch } = conditions;
  const sameState = (sent: EntityTag, now: string) => stateOf(sent.value) === stateOf(now);
  if (ifMatch !== undefined && !listed(ifMatch, tag, (sent, now) => !sent.weak && sameState(sent, now))) {
    throw new Refusal(
      'precondition_failed',
      'The resource has changed, so its ETag does not match If-Match. Get the resource again and repeat the change.',
      {
        param: 'If-Match',
      },
    );
  }
  // A weak tag counts here (RFC 9110, section 13.1.2).
  if (ifNoneMatch !== undefined && listed(ifNoneMatch, tag, sameState)) {
    throw new Refusal(
      'precondition_failed',
      'The ETag of the resource matches If-None-Match, so nothing was changed.',
      {
        param: 'If-None-Match',
      },
    );
  }
}

/**
 * Reports whether If-None-Match names the current resource with all its members. Weak tags count (RFC 9110, section
 * 13.1.2).
 */
export function isUnchanged(list: TagList, tag: string): boolean {
  return listed(list, tag, (sent, now) => sent.value === now);
}

function listed(list: TagList, tag: string, same: (sent: EntityTag, now: string) => boolean): boolean {
  if (list.kind === 'any') return true;
  const now = tag.slice(1, -1);
  return list.tags.some((sent) => same(sent, now));
}

function stateOf(value: string): string {
  return value.split(SEPARATOR, 1)[0] ?? '';
}
