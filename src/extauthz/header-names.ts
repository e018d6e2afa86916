/** Recognizes the headers that a decision uses by their bytes, so that the other headers are never decoded to text. */

import { isAlias, lower } from './header-spellings.ts';

/** The slots of the headers in use. */
export const AUTHORIZATION = 0;
export const TENANT = 1;
export const UPGRADE = 2;
export const CONTENT_TYPE = 3;
export const CONTENT_ENCODING = 4;
export const CONTENT_LENGTH = 5;
export const PARTIAL_BODY = 6;
export const FORWARDED_FOR = 7;
export const REQUEST_ID = 8;
export const X_API_KEY = 9;
export const API_KEY = 10;
export const TRACEPARENT = 11;
export const SLOT_COUNT = 12;

/** The slot of a header that is not in use. */
export const OTHER = -1;
/** The slot of a spelling that must not reach the upstream (see `isAlias`). */
export const ALIAS = -2;

const NAMES: readonly (readonly [slot: number, name: string])[] = [
  [AUTHORIZATION, 'authorization'],
  [TENANT, 'x-tenant-id'],
  [UPGRADE, 'upgrade'],
  [CONTENT_TYPE, 'content-type'],
  [CONTENT_ENCODING, 'content-encoding'],
  [CONTENT_LENGTH, 'content-length'],
  [PARTIAL_BODY, 'x-envoy-auth-partial-body'],
  [FORWARDED_FOR, 'x-forwarded-for'],
  [REQUEST_ID, 'x-request-id'],
  [X_API_KEY, 'x-api-key'],
  [API_KEY, 'api-key'],
  [TRACEPARENT, 'traceparent'],
];

interface Candidate {
  readonly slot: number;
  readonly name: Uint8Array;
}

/** Candidates by the length of the name, which excludes most names. */
const BY_LENGTH: readonly (readonly Candidate[])[] = Array.from({ length: 26 }, (_, length) =>
  NAMES.filter(([, name]) => name.length === length).map(([slot, name]) => ({ slot, name: Buffer.from(name) })),
);

/** Returns the slot of the header `bytes[start, end)`, without regard to case. */
export function classify(bytes: Uint8Array, start: number, end: number): number {
  const length = end - start;
  const candidates = BY_LENGTH[length];
  if (candidates !== undefined) {
    for (let i = 0; i < candidates.length; i++) {
      const candidate = candidates[i];
      if (candidate !== undefined && equalsLower(bytes, start, candidate.name)) return candidate.slot;
    }
  }
  return isAlias(bytes, start, end) ? ALIAS : OTHER;
}

/** @param name in lower case */
function equalsLower(bytes: Uint8Array, start: number, name: Uint8Array): boolean {
  for (let i = 0; i < name.length; i++) {
    const byte = bytes[start + i] ?? 0;
    if (byte !== name[i] && lower(byte) !== name[i]) return false;
  }
  return true;
}
