/**
 * A login that is under way at a provider, sealed in a cookie of the browser that began it. The provider's answer counts
 * only with this cookie, so the page of another site cannot log a browser in as another user. `__Host-` makes sure that
 * no other server of the domain set the cookie. SameSite=Lax, because the answer comes from the provider's page.
 */

import { randomBytes } from 'node:crypto';
import { type IssuerId, parseId } from '../../domain/ids.ts';
import type { Scheme } from '../../http/client-address.ts';
import { opaqueDigest } from '../../identity/opaque-tokens.ts';
import { openText, type SecretKeys, sealText } from '../../identity/seal.ts';

/** How long the user may take at the provider. */
const STATE_LIFETIME_MS = 600_000;
/** The accepted difference between the clocks of two servers. */
const CLOCK_TOLERANCE_MS = 5_000;
/** How long a used state is remembered: longer than it is accepted. */
export const STATE_KEPT_MS = 2 * STATE_LIFETIME_MS;

const NAME = 'postern_sso';
const ATTRIBUTES = 'Path=/; HttpOnly; Secure; SameSite=Lax';
const CONTEXT = 'sso';
const PURPOSE = 'sso-states';
/** A path of the console that is longer is forgotten, so that the cookie keeps within 4 KiB. */
const MAX_NEXT_LENGTH = 1024;

export interface SsoState {
  readonly issuerId: IssuerId;
  readonly state: string;
  readonly nonce: string;
  /** The secret of PKCE (RFC 7636). */
  readonly verifier: string;
  readonly redirectUri: string;
  /** The path of the console after the login. The console checks it. */
  readonly next: string | undefined;
  /** Milliseconds since the epoch. */
  readonly startedMs: number;
}

/** Chrome accepts no prefixed cookie from a page without TLS, which only loopback may be. */
export function stateCookieName(scheme: Scheme): string {
  return scheme === 'https' ? `__Host-${NAME}` : NAME;
}

export function setStateCookie(name: string, sealed: string): string {
  return `${name}=${sealed}; Max-Age=${STATE_LIFETIME_MS / 1000}; ${ATTRIBUTES}`;
}

export function clearStateCookie(name: string): string {
  return `${name}=; Max-Age=0; ${ATTRIBUTES}`;
}

/** Returns random values of 256 bits for one login. */
export function newState(
  of: Pick<SsoState, 'issuerId' | 'redirectUri' | 'startedMs'> & { readonly next: string | undefined },
  random: (size: number) => Uint8Array = randomBytes,
): SsoState {
  const text = (): string => Buffer.from(random(32)).toString('base64url');
  const next = of.next !== undefined && of.next.length <= MAX_NEXT_LENGTH ? of.next : undefined;
  return { ...of, next, state: text(), nonce: text(), verifier: text() };
}

export function sealState(keys: SecretKeys, state: SsoState): string {
  return sealText(keys, PURPOSE, JSON.stringify(state), CONTEXT).toString('base64url');
}

/** Returns the state of a cookie; undefined for one that this installation did not seal, or that is too old. */
export function openState(keys: SecretKeys, cookie: string, nowMs: number): SsoState | undefined {
  const plain = openText(keys, PURPOSE, Buffer.from(cookie, 'base64url'), CONTEXT);
  const state = plain === undefined ? undefined : parsed(JSON.parse(plain));
  if (state === undefined) return undefined;
  const ageMs = nowMs - state.startedMs;
  return ageMs >= -CLOCK_TOLERANCE_MS && ageMs < STATE_LIFETIME_MS ? state : undefined;
}

/** A cookie of another version of this program may have other members. */
function parsed(value: unknown): SsoState | undefined {
  const { issuerId, state, nonce, verifier, redirectUri, next, startedMs } = Object(value);
  const id = typeof issuerId === 'string' ? parseId('iss', issuerId) : undefined;
  if (id === undefined || typeof startedMs !== 'number') return undefined;
  if (typeof state !== 'string' || typeof nonce !== 'string' || typeof verifier !== 'string') return undefined;
  if (typeof redirectUri !== 'string') return undefined;
  return {
    issuerId: id,
    state,
    nonce,
    verifier,
    redirectUri,
    next: typeof next === 'string' ? next : undefined,
    startedMs,
  };
}

/** The digest under which a used state is remembered. */
export function stateDigest({ state }: SsoState): Buffer {
  return opaqueDigest(`state ${state}`);
}

/** The `sid` in the digest of a login whose ID token has none. A `sid` is never empty. */
export const NO_SID = '';

/** The digest under which a logout of a session or a subject at the provider is remembered. */
export function logoutDigest(issuer: IssuerId, sid: string | undefined, subject: string | undefined): Buffer {
  return opaqueDigest(`logged out ${issuer} ${JSON.stringify([sid ?? null, subject ?? null])}`);
}
