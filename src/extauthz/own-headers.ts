/** The headers that Postern alone gives to the upstream, and those that a client must never get past it. */

import { Fault } from '../domain/errors.ts';
import { type HeaderName, headerName } from './header-options.ts';
import { textField } from './wire-write.ts';

export const SUBJECT = 'x-postern-subject';
export const SUBJECT_TYPE = 'x-postern-subject-type';
export const USER_ID = 'x-postern-user-id';
export const TENANT = 'x-postern-tenant';
export const ROLES = 'x-postern-roles';
export const MAX_TOKENS = 'x-postern-max-tokens';
export const DEFAULT_MODEL = 'x-postern-default-model';
export const TENANT_ID = 'x-tenant-id';

/** All of `x-postern-…`. */
export const POSTERN_HEADERS = [SUBJECT, SUBJECT_TYPE, USER_ID, TENANT, ROLES, MAX_TOKENS, DEFAULT_MODEL] as const;

export const NAME: { readonly [Name in (typeof POSTERN_HEADERS)[number] | typeof TENANT_ID]: HeaderName } = {
  [SUBJECT]: headerName(SUBJECT),
  [SUBJECT_TYPE]: headerName(SUBJECT_TYPE),
  [USER_ID]: headerName(USER_ID),
  [TENANT]: headerName(TENANT),
  [ROLES]: headerName(ROLES),
  [MAX_TOKENS]: headerName(MAX_TOKENS),
  [DEFAULT_MODEL]: headerName(DEFAULT_MODEL),
  [TENANT_ID]: headerName(TENANT_ID),
};

/** Headers by which some frameworks let a client change the method or the path after the decision was made for another. */
const OVERRIDES = ['x-http-method-override', 'x-http-method', 'x-method-override', 'x-original-url', 'x-rewrite-url'];

/** Servers that fold `-`, `_` and `.` into one (CGI, WSGI, PHP) read these spellings as the name itself. */
function spellings(name: string): string[] {
  return [name.replaceAll('-', '_'), name.replaceAll('-', '.')];
}

/** The other spellings of everything that an answer sets: removed always. */
const ALIASES = POSTERN_HEADERS.flatMap(spellings);
const TENANT_ALIASES = spellings(TENANT_ID);

const KNOWN_ALIASES: ReadonlySet<string> = new Set([...POSTERN_HEADERS, ...ALIASES]);

/** Of the names seen in a request, those that no prepared list removes or answer sets. */
export function unlisted(aliases: readonly string[]): readonly string[] {
  return aliases.length === 0 ? aliases : [...new Set(aliases)].filter((name) => !KNOWN_ALIASES.has(name));
}

const NOTHING = Buffer.alloc(0);

/** OkHttpResponse.headers_to_remove = 5, a run of them. */
export function removal(names: readonly string[]): Buffer {
  if (names.length === 0) return NOTHING;
  return Buffer.concat(names.map((name) => textField(0x2a, name)));
}

/** A public route loses Postern's own names and nothing else. */
export const REMOVED_ON_PUBLIC = removal([...POSTERN_HEADERS, ...ALIASES]);

function removedOnAllow(forwardCredential: boolean, ...[userId, roles, maxTokens, defaultModel, metered]: boolean[]): string[] {
  return [
    ...(userId ? [] : [USER_ID]),
    ...(roles ? [] : [ROLES]),
    ...(maxTokens ? [] : [MAX_TOKENS]),
    ...(defaultModel ? [] : [DEFAULT_MODEL]),
    ...(metered ? ['accept-encoding'] : []),
    ...(forwardCredential ? [] : ['authorization']),
    ...OVERRIDES,
    ...ALIASES,
    ...TENANT_ALIASES,
  ];
}

/**
 * The names to remove on an allow, for each combination of what decides them: which of the optional headers the answer sets, and
 * whether the route is metered by tokens (an encoded answer would hide its usage).
 */
export type Removals = (userId: boolean, roles: boolean, maxTokens: boolean, defaultModel: boolean, metered: boolean) => Buffer;

/** All the lists, made beforehand: an answer copies bytes. */
export function prepareRemovals(forwardCredential: boolean): Removals {
  const lists = Array.from({ length: 32 }, (_, bits) => {
    const on = [1, 2, 4, 8, 16].map((bit) => (bits & bit) !== 0);
    return removal(removedOnAllow(forwardCredential, ...on));
  });
  return (userId, roles, maxTokens, defaultModel, metered) => {
    const bits = (userId ? 1 : 0) | (roles ? 2 : 0) | (maxTokens ? 4 : 0) | (defaultModel ? 8 : 0) | (metered ? 16 : 0);
    const list = lists[bits];
    if (list === undefined) throw new Fault('no list of headers to remove');
    return list;
  };
}
