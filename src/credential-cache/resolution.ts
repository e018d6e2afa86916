/** Resolutions of credentials. */

import { type HeaderValue, type Identity, INVALID_REASONS, type Principal, type Snapshot } from '../decision/model.ts';
import type { PolicySet } from '../decision/policies.ts';
import type { CredentialForm } from '../domain/credential.ts';
import type { TenantId } from '../domain/ids.ts';
import { makeMembers } from '../domain/objects.ts';
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

export const MISSING = unproved({ kind: 'missing' });
export const EXPIRED = unproved({ kind: 'expired' });
export const INVALID = makeMembers(INVALID_REASONS, (reason) => unproved({ kind: 'invalid', reason }));

const EXTERNAL_EXPIRED = unproved({ kind: 'expired', external: true });
const EXTERNAL_INVALID = makeMembers(INVALID_REASONS, (reason) =>
  unproved({ kind: 'invalid', reason, external: true }),
);

/**
 * Marks the resolution of a token of another issuer that proves no principal.
 * @param tenant the tenant of the issuer, if a key of the issuer signed the token
 */
export function external(resolution: Resolution, tenant: TenantId | undefined): Resolution {
  const { identity } = resolution;
  if (identity.kind !== 'invalid' && identity.kind !== 'expired') return resolution;
  if (tenant !== undefined) return { identity: { ...identity, external: true, tenant }, snapshot: undefined };
  return identity.kind === 'invalid' ? EXTERNAL_INVALID[identity.reason] : EXTERNAL_EXPIRED;
}
