/**
 * Entity tags and the conditions that a request puts on them (RFC 9110, sections 8.8.3 and 13.1). A tag is a digest of what the API
 * shows of a resource, so it changes with whatever is shown, and says no more than the answer that carries it.
 *
 * The tag of a resource that shows what no request changes, such as its use or its notices, has two parts: `"<state>.<rest>"`. GET compares
 * both. A change compares only the state: a later last use, or a notice about another route table, is nothing that a request could overwrite.
 */

import { hash } from 'node:crypto';
import { Refusal } from '../../domain/errors.ts';
import { canonicalJsonOf } from './canonical-json.ts';

export interface EntityTag {
  readonly weak: boolean;
  /** Without the quotes. */
  readonly value: string;
}

/** `*`, which whatever exists matches, or tags of which one has to match. */
export type TagList = { readonly kind: 'any' } | { readonly kind: 'tags'; readonly tags: readonly EntityTag[] };

/** What a request demands of the resource as it is now. */
export interface Preconditions {
  readonly ifMatch: TagList | undefined;
  readonly ifNoneMatch: TagList | undefined;
}

/** Members that no request changes. */
const REST: ReadonlySet<string> = new Set(['last_used_at', 'last_login_at', 'locked_until', 'notices', 'notice']);
/** Members of one answer alone. */
const ONCE: ReadonlySet<string> = new Set(['key', 'password_setup_token', 'secret_available']);

const SEPARATOR = '.';

/** The strong tag of a resource, in quotes. */
export function entityTag(resource: object): string {
  const members = Object.entries(resource).filter(([name]) => !ONCE.has(name));
  const state = members.filter(([name]) => !REST.has(name));
  const rest = members.filter(([name]) => REST.has(name));
  const parts = rest.length === 0 ? [state] : [state, rest];
  return `"${parts.map((part) => digest(Object.fromEntries(part))).join(SEPARATOR)}"`;
}

/** 128 bits: nobody finds two states of one tag by chance, and who makes one on purpose misleads only itself. */
function digest(value: unknown): string {
  return hash('sha256', canonicalJsonOf(value), 'buffer').subarray(0, 16).toString('base64url');
}

/**
 * What may be asked before a resource is changed.
 * @param tag of the resource as it is
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

/** Whether If-None-Match names the whole of what would be shown; a weak tag does too (RFC 9110, section 13.1.2). */
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
