/** Builds the decision's input from the fields that the reader found. */

import { type CheckInput, REPEATED } from '../decision/model.ts';
import { joinApiKeys } from '../identity/credential.ts';
import { trustedAddress } from './client-address.ts';
import { type Draft, hasHeader, headerOf, numberOf } from './draft.ts';
import * as Headers from './header-names.ts';
import { intern } from './intern.ts';

const NOTHING = Buffer.alloc(0);
const NO_ALIASES: readonly string[] = Object.freeze([]);
const NO_ALIASES_AT_ALL: Aliases = Object.freeze({ names: NO_ALIASES, areAll: true });
const NO_ALIASES_SENT: Aliases = Object.freeze({ names: NO_ALIASES, areAll: false });

export interface CheckRequest {
  readonly kind: 'request';
  readonly input: CheckInput;
  /** Envoy's `x-request-id`, which correlates logs; undefined if it is absent or repeated. */
  readonly clientRequestId: string | undefined;
  readonly aliases: Aliases;
  /** Whether the check must change nothing. */
  readonly shadow: boolean;
}

/** The other spellings of guarded headers in a check. */
export interface Aliases {
  /** The names, in lower case, of the headers that an allow must remove by name (see `isAlias`). */
  readonly names: readonly string[];
  /** Whether the request has no other ones. False: Envoy may have left some out of the check. */
  readonly areAll: boolean;
}

export function requestOf(draft: Draft, trustedHops: number, maxBodyBytes: number): CheckRequest {
  const { bytes } = draft;
  const body = bodyOf(draft);
  const requestId = headerOf(bytes, Headers.REQUEST_ID);
  return {
    kind: 'request',
    input: {
      method: intern(bytes, draft.methodStart, draft.methodEnd),
      path: intern(bytes, draft.pathStart, draft.pathEnd),
      authorization: headerOf(bytes, Headers.AUTHORIZATION),
      apiKey: joinApiKeys(headerOf(bytes, Headers.X_API_KEY), headerOf(bytes, Headers.API_KEY)),
      tenant: headerOf(bytes, Headers.TENANT),
      upgrade: headerOf(bytes, Headers.UPGRADE),
      contentType: headerOf(bytes, Headers.CONTENT_TYPE),
      contentEncoding: headerOf(bytes, Headers.CONTENT_ENCODING),
      body,
      bodyPartial: draft.partial || body.length > maxBodyBytes || isShort(draft, body.length),
      bodyMissing: body.length === 0 && isNotSent(draft),
      bodyAsText: draft.rawBodyEnd === draft.rawBodyStart && body.length > 0,
      clientAddress: trustedHops > 0 ? trustedAddress(bytes, draft.forwardedFor ?? [], trustedHops) : peerOf(draft),
    },
    clientRequestId: requestId === REPEATED ? undefined : requestId,
    aliases: aliasesOf(draft),
    shadow: draft.shadow,
  };
}

function aliasesOf({ aliases, hasAllAliases }: Draft): Aliases {
  if (aliases === undefined) return hasAllAliases ? NO_ALIASES_AT_ALL : NO_ALIASES_SENT;
  return { names: aliases, areAll: hasAllAliases };
}

function peerOf(draft: Draft): string | undefined {
  return draft.addressEnd > draft.addressStart ? intern(draft.bytes, draft.addressStart, draft.addressEnd) : undefined;
}

function bodyOf(draft: Draft): Buffer {
  if (draft.rawBodyEnd > draft.rawBodyStart) return draft.bytes.subarray(draft.rawBodyStart, draft.rawBodyEnd);
  return draft.bodyEnd > draft.bodyStart ? draft.bytes.subarray(draft.bodyStart, draft.bodyEnd) : NOTHING;
}

const NEGATIVE = 2 ** 63;

/**
 * Reports whether Envoy left out the body that a request has or may have. Envoy marks every body that it has read as
 * whole or partial, including an empty one. Without a mark, either the request ended with its headers, or the route is
 * not inspected. The second is certain if the request announces a length, or if Envoy had received bytes of its body.
 * Otherwise, the mark of the route decides. Envoy never inspects the body of a request for an upgrade, and an
 * unreadable length is the client's fault.
 */
function isNotSent(draft: Draft): boolean {
  if (hasHeader(Headers.PARTIAL_BODY) || hasHeader(Headers.UPGRADE)) return false;
  if (hasHeader(Headers.CONTENT_LENGTH)) {
    const announced = numberOf(draft.bytes, Headers.CONTENT_LENGTH);
    return announced > 0 && announced !== Number.POSITIVE_INFINITY;
  }
  return draft.notInspected || (draft.size > 0 && draft.size < NEGATIVE);
}

/**
 * Reports whether the body is shorter than Envoy's `size` or than `content-length`. An unreadable length counts as
 * larger than any body. Some gateways mark a body of which they sent the beginning only by a negative size, and pass
 * a client's own `x-envoy-auth-partial-body` on. Envoy's size is never negative.
 */
function isShort(draft: Draft, length: number): boolean {
  if (draft.size > length && (draft.size < NEGATIVE || length > 0)) return true;
  return numberOf(draft.bytes, Headers.CONTENT_LENGTH) > length;
}
