/** The headers that only Postern sends to the upstream, and those that must not reach it from a client. */

import { Fault } from '../domain/errors.ts';
import type { Aliases } from './check-input.ts';
import { type HeaderName, headerName } from './header-options.ts';
import {
  ACCEPT_ENCODING,
  CREDENTIALS,
  isOwnAlias,
  mixtures,
  OVERRIDES,
  TENANT_ID_HEADER,
  UPSTREAM_TOKEN,
  type UpstreamTokenHeader,
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
export { TENANT_ID_HEADER, UPSTREAM_TOKEN };

/** All of `x-postern-…`. */
const POSTERN_HEADERS = [
  SUBJECT,
  SUBJECT_TYPE,
  USER_ID,
  TENANT_HEADER,
  ROLES,
  MAX_TOKENS,
  DEFAULT_MODEL,
  UPSTREAM_TOKEN,
] as const;

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
  [UPSTREAM_TOKEN]: headerName(UPSTREAM_TOKEN),
  [TENANT_ID_HEADER]: headerName(TENANT_ID_HEADER),
};

/**
 * Other spellings that an answer removes even if the check did not contain them, because Envoy may send a check the
 * headers of its own `allowed_headers` only. The list stays short, because Envoy checks and removes each name in every
 * request. It is empty for a check that has every spelling of the request.
 */
const OWN_ALIASES = POSTERN_HEADERS.flatMap(uniformSpellings);
const UNSEEN_REMOVED = [
  ...OWN_ALIASES,
  ...mixtures(TENANT_ID_HEADER),
  ...[...OVERRIDES, ...CREDENTIALS].flatMap(uniformSpellings),
];

const TRUE_NAMES: ReadonlySet<string> = new Set([...POSTERN_HEADERS, ...OVERRIDES]);
const LISTED: ReadonlySet<string> = new Set([...TRUE_NAMES, ...UNSEEN_REMOVED]);

/** Returns the aliases of a request that no prepared list removes and no answer sets. */
export function unlisted({ names, areAll }: Aliases): readonly string[] {
  if (names.length === 0) return names;
  const listed = areAll ? TRUE_NAMES : LISTED;
  return [...new Set(names)].filter((name) => !listed.has(name));
}

/** Returns `unlisted` for a public route, which loses the `x-postern-` names only. */
export function unlistedOwn({ names, areAll }: Aliases): readonly string[] {
  return unlisted({ names: names.filter(isOwnAlias), areAll });
}

const NOTHING = Buffer.alloc(0);

/** OkHttpResponse.headers_to_remove = 5, a run of them. */
export function removal(names: readonly string[]): Buffer {
  if (names.length === 0) return NOTHING;
  return Buffer.concat(names.map((name) => textField(0x2a, name)));
}

/** On a public route, the answer removes Postern's own names only. */
const REMOVED_ON_PUBLIC = removal([...POSTERN_HEADERS, ...OWN_ALIASES]);
const REMOVED_ON_PUBLIC_IF_SENT = removal(POSTERN_HEADERS);

/** Returns the encoded names that a public answer removes besides `unlistedOwn`. */
export function removedOnPublic({ areAll }: Aliases): Buffer {
  return areAll ? REMOVED_ON_PUBLIC_IF_SENT : REMOVED_ON_PUBLIC;
}

/** The properties of an answer that determine the names that it removes. */
interface Removing {
  /** Whether the answer sets the header of this name: this member and the next four. */
  readonly userId: boolean;
  readonly roles: boolean;
  readonly maxTokens: boolean;
  readonly defaultModel: boolean;
  readonly token: boolean;
  /** Whether the route is metered by tokens: an encoded answer would hide its usage. */
  readonly metered: boolean;
  /** Whether the check had every other spelling that the request has. */
  readonly hasAllAliases: boolean;
}

/** @param tokenHeader the header that an answer with a token sets */
function removedOnAllow(
  { userId, roles, maxTokens, defaultModel, token, metered, hasAllAliases }: Removing,
  forwardCredential: boolean,
  tokenHeader: UpstreamTokenHeader,
): string[] {
  const credentials = forwardCredential ? [] : CREDENTIALS;
  return [
    ...(userId ? [] : [USER_ID]),
    ...(roles ? [] : [ROLES]),
    ...(maxTokens ? [] : [MAX_TOKENS]),
    ...(defaultModel ? [] : [DEFAULT_MODEL]),
    ...(metered ? [ACCEPT_ENCODING] : []),
    // Envoy would remove a header that the answer sets as well.
    ...[UPSTREAM_TOKEN, ...credentials].filter((name) => !token || name !== tokenHeader),
    ...OVERRIDES,
    ...(hasAllAliases ? [] : UNSEEN_REMOVED),
  ];
}

/** Returns the encoded names that an allow removes. */
export type Removals = (removing: Removing) => Buffer;

/** Encodes all lists at the start, so that an answer copies bytes. */
export function prepareRemovals(
  forwardCredential: boolean,
  tokenHeader: UpstreamTokenHeader = UPSTREAM_TOKEN,
): Removals {
  const lists = Array.from({ length: 128 }, (_, bits) => {
    const has = (bit: number): boolean => (bits & bit) !== 0;
    const removing = {
      userId: has(1),
      roles: has(2),
      maxTokens: has(4),
      defaultModel: has(8),
      metered: has(16),
      token: has(32),
      hasAllAliases: has(64),
    };
    return removal(removedOnAllow(removing, forwardCredential, tokenHeader));
  });
  return ({ userId, roles, maxTokens, defaultModel, metered, token, hasAllAliases }) => {
    const optional = (userId ? 1 : 0) | (roles ? 2 : 0) | (maxTokens ? 4 : 0) | (defaultModel ? 8 : 0);
    const list = lists[optional | (metered ? 16 : 0) | (token ? 32 : 0) | (hasAllAliases ? 64 : 0)];
    if (list === undefined) throw new Fault('the list of headers to remove is missing');
    return list;
  };
}
