/** The headers that only Postern sends to the upstream, and those that must not reach it from a client. */

import { Fault } from '../domain/errors.ts';
import { type HeaderName, headerName } from './header-options.ts';
import {
  ACCEPT_ENCODING,
  CREDENTIALS,
  isOwnAlias,
  mixtures,
  OVERRIDES,
  TENANT_ID_HEADER,
  uniformSpellings,
} from './header-spellings.ts';
import { textField } from './wire-write.ts';

export const SUBJECT = 'x-postern-subject';
export const SUBJECT_TYPE = 'x-postern-subject-type';
export const USER_ID = 'x-postern-user-id';
export const TENANT_HEADER = 'x-postern-tenant';
export const ROLES = 'x-postern-roles';
export const MAX_TOKENS = 'x-postern-max-tokens';
export const DEFAULT_MODEL = 'x-postern-default-model';
export { TENANT_ID_HEADER };

/** All of `x-postern-…`. */
const POSTERN_HEADERS = [SUBJECT, SUBJECT_TYPE, USER_ID, TENANT_HEADER, ROLES, MAX_TOKENS, DEFAULT_MODEL] as const;

export const ENCODED_NAME: {
  readonly [Name in (typeof POSTERN_HEADERS)[number] | typeof TENANT_ID_HEADER]: HeaderName;
} = {
  [SUBJECT]: headerName(SUBJECT),
  [SUBJECT_TYPE]: headerName(SUBJECT_TYPE),
  [USER_ID]: headerName(USER_ID),
  [TENANT_HEADER]: headerName(TENANT_HEADER),
  [ROLES]: headerName(ROLES),
  [MAX_TOKENS]: headerName(MAX_TOKENS),
  [DEFAULT_MODEL]: headerName(DEFAULT_MODEL),
  [TENANT_ID_HEADER]: headerName(TENANT_ID_HEADER),
};

/**
 * Other spellings that an answer removes even if the check did not contain them, because Envoy sends a check the
 * headers of `allowed_headers` only. The list stays short, because Envoy reads it for every request.
 */
const OWN_ALIASES = POSTERN_HEADERS.flatMap(uniformSpellings);
const ALWAYS_REMOVED = [
  ...OVERRIDES,
  ...OWN_ALIASES,
  ...mixtures(TENANT_ID_HEADER),
  ...[...OVERRIDES, ...CREDENTIALS].flatMap(uniformSpellings),
];

const LISTED: ReadonlySet<string> = new Set([...POSTERN_HEADERS, ...ALWAYS_REMOVED]);

/** Returns the aliases of a request that no prepared list removes and no answer sets. */
export function unlisted(aliases: readonly string[]): readonly string[] {
  return aliases.length === 0 ? aliases : [...new Set(aliases)].filter((name) => !LISTED.has(name));
}

/** Returns `unlisted` for a public route, which loses the `x-postern-` names only. */
export function unlistedOwn(aliases: readonly string[]): readonly string[] {
  return unlisted(aliases.filter(isOwnAlias));
}

const NOTHING = Buffer.alloc(0);

/** OkHttpResponse.headers_to_remove = 5, a run of them. */
export function removal(names: readonly string[]): Buffer {
  if (names.length === 0) return NOTHING;
  return Buffer.concat(names.map((name) => textField(0x2a, name)));
}

/** On a public route, the answer removes Postern's own names only. */
export const REMOVED_ON_PUBLIC = removal([...POSTERN_HEADERS, ...OWN_ALIASES]);

function removedOnAllow(
  forwardCredential: boolean,
  ...[userId, roles, maxTokens, defaultModel, metered]: boolean[]
): string[] {
  return [
    ...(userId ? [] : [USER_ID]),
    ...(roles ? [] : [ROLES]),
    ...(maxTokens ? [] : [MAX_TOKENS]),
    ...(defaultModel ? [] : [DEFAULT_MODEL]),
    ...(metered ? [ACCEPT_ENCODING] : []),
    ...(forwardCredential ? [] : CREDENTIALS),
    ...ALWAYS_REMOVED,
  ];
}

/**
 * The names that an allow removes, for each combination of the properties that determine them: which optional headers
 * the answer sets, and whether the route is metered by tokens. An encoded answer would hide its usage.
 */
export type Removals = (
  userId: boolean,
  roles: boolean,
  maxTokens: boolean,
  defaultModel: boolean,
  metered: boolean,
) => Buffer;

/** Encodes all lists at the start, so that an answer copies bytes. */
export function prepareRemovals(forwardCredential: boolean): Removals {
  const lists = Array.from({ length: 32 }, (_, bits) => {
    const on = [1, 2, 4, 8, 16].map((bit) => (bits & bit) !== 0);
    return removal(removedOnAllow(forwardCredential, ...on));
  });
  return (userId, roles, maxTokens, defaultModel, metered) => {
    const bits = (userId ? 1 : 0) | (roles ? 2 : 0) | (maxTokens ? 4 : 0) | (defaultModel ? 8 : 0) | (metered ? 16 : 0);
    const list = lists[bits];
    if (list === undefined) throw new Fault('the list of headers to remove is missing');
    return list;
  };
}
