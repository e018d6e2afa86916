/** Resolutions of credentials. */

import type { HeaderValue, Identity, InvalidReason, Principal, Snapshot } from '../decision/model.ts';
import type { PolicySet } from '../decision/policies.ts';
import type { CredentialForm } from '../domain/credential.ts';
import type { CacheEntry } from './read-through-cache.ts';
import type { CachedTenant, CachedUser, PrincipalMemo } from './values.ts';

export interface Resolution {
  readonly identity: Identity;
  /** Undefined unless the identity is proved. */
  readonly snapshot: Snapshot | undefined;
  /** The credential's memo, if the credential is cached. */
  readonly memo?: PrincipalMemo<Principal | undefined>;
}

export interface CredentialResolver {
  /**
   * Returns the principal that the credential proves and the snapshot of its tenant: a value if everything is cached,
   * otherwise a promise.
   * @param client the client's address; lookups of unknown credentials queue fairly between clients
   * @param maxWaitMs how long the caller waits for the promise; default: 2000
   * @throws Fault (also as a rejection) when the server cannot look the credential up
   */
  resolve(
    credential: CredentialForm,
    tenant: HeaderValue,
    nowMs: number,
    client?: string,
    maxWaitMs?: number,
  ): Resolution | Promise<Resolution>;
}

/**
 * A resolution of a credential in its own tenant. It is valid while the caches hold all of these entries. It refers to
 * the rules only through entries, so a credential that is no longer used keeps no rules in memory.
 */
export interface CachedResolution {
  readonly identity: Identity;
  readonly memo: PrincipalMemo<Principal | undefined>;
  /** The session's user, or the key's owner. */
  readonly user: CacheEntry<CachedUser> | undefined;
  readonly tenant: CacheEntry<CachedTenant>;
  readonly global: CacheEntry<PolicySet>;
  /** Monotonic milliseconds at which the entries are looked up again, which marks them as used. */
  readonly untilMs: number;
}

const unproved = (identity: Identity): Resolution =>
  Object.freeze({ identity: Object.freeze(identity), snapshot: undefined });

const invalid = (reason: InvalidReason): Resolution => unproved({ kind: 'invalid', reason });

export const MISSING = unproved({ kind: 'missing' });
export const EXPIRED = unproved({ kind: 'expired' });
export const INVALID: { readonly [Reason in InvalidReason]: Resolution } = {
  malformed: invalid('malformed'),
  scheme: invalid('scheme'),
  unknown: invalid('unknown'),
  checksum: invalid('checksum'),
  signature: invalid('signature'),
  revoked: invalid('revoked'),
  disabled: invalid('disabled'),
  key_expired: invalid('key_expired'),
  user_deactivated: invalid('user_deactivated'),
  user_missing: invalid('user_missing'),
  session_ended: invalid('session_ended'),
  unknown_issuer: invalid('unknown_issuer'),
  issuer_disabled: invalid('issuer_disabled'),
  audience: invalid('audience'),
  claims: invalid('claims'),
  algorithm: invalid('algorithm'),
  too_old: invalid('too_old'),
  not_yet_valid: invalid('not_yet_valid'),
  revoked_before: invalid('revoked_before'),
  ambiguous: invalid('ambiguous'),
  no_principal: invalid('no_principal'),
  email_in_use: invalid('email_in_use'),
};
