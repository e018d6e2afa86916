/** Resolves a credential in one synchronous step from cached entries, or returns the loads that are needed first. */

import type { BuiltinRoles } from '../decision/builtin-roles.ts';
import type { HeaderValue, Identity, Principal, Snapshot } from '../decision/model.ts';
import type { PolicySet } from '../decision/policies.ts';
import { effectiveTenant } from '../decision/tenant.ts';
import type { KeyDigest, SessionId, TenantId, UserId } from '../domain/ids.ts';
import type {
  IssuerRecord,
  KeyRecord,
  LinkRecord,
  PolicyRecord,
  SessionRecord,
  TenantRecord,
  UserRecord,
} from '../domain/records.ts';
import type { Steps } from '../domain/steps.ts';
import type { Admissions } from './admissions.ts';
import { keyInvalidReason, ownerInvalidReason, sessionInvalidReason, userInvalidReason } from './credential-status.ts';
import { type ProvedByIssuer, proveByIssuer } from './issuer-lookup.ts';
import type { IssuerTokenEntry, IssuerTokens } from './issuer-tokens.ts';
import type { LinkKey } from './issuer-values.ts';
import type { Patience } from './load-limiter.ts';
import type { IssuerTokenReader, TokenVerifier, VerifiedToken } from './ports.ts';
import { ABSENT, type CacheEntry, type ReadThroughCache } from './read-through-cache.ts';
import { EXPIRED, external, INVALID, type Resolution } from './resolution.ts';
import {
  type CachedKey,
  type CachedSession,
  type CachedTenant,
  type CachedUser,
  issuerUserPrincipal,
  keySessionPrincipal,
  ownedPrincipal,
  type PrincipalMemo,
  sessionPrincipal,
  userPrincipal,
} from './values.ts';
import type { VerifiedTokens } from './verified-tokens.ts';

type KeySession = Extract<VerifiedToken, { readonly keyDigest: KeyDigest }>;

export interface Maps {
  readonly keys: ReadThroughCache<KeyDigest, KeyRecord, CachedKey>;
  readonly users: ReadThroughCache<UserId, UserRecord, CachedUser>;
  readonly sessions: ReadThroughCache<SessionId, SessionRecord, CachedSession>;
  readonly tenants: ReadThroughCache<TenantId, Steps<TenantRecord>, CachedTenant>;
  readonly globals: ReadThroughCache<'', Steps<readonly PolicyRecord[]>, PolicySet>;
  readonly tokens: VerifiedTokens;
  readonly verifier: Pick<TokenVerifier, 'hasOwnHeader'>;
  /** By the value of `iss`. */
  readonly issuers: ReadThroughCache<string, IssuerRecord, IssuerRecord>;
  readonly links: ReadThroughCache<LinkKey, LinkRecord, LinkRecord>;
  readonly issuerTokens: IssuerTokens;
  readonly reader: IssuerTokenReader;
  readonly admissions: Admissions;
  /** The age at which fetched keys of an issuer are no longer used, in milliseconds. */
  readonly maxKeyAgeMs: number;
  readonly builtinRoles: BuiltinRoles;
}

/** The circumstances of a lookup. */
export interface LookupAt {
  readonly maps: Maps;
  /** X-Tenant-ID. */
  readonly header: HeaderValue;
  readonly nowMs: number;
  readonly monotonicMs: number;
}

/** The subject of a lookup: a credential, or the id of a user that need not authenticate. */
export type Subject =
  | { readonly kind: 'api_key'; readonly digest: KeyDigest }
  | {
      readonly kind: 'token';
      readonly token: string;
      readonly digest: string;
      /** True for an examination of the token, which neither creates a user nor gives roles. */
      readonly examines?: boolean;
    }
  | { readonly kind: 'user'; readonly id: UserId };

/** @returns whether the loaded value may be looked up now */
export type Load = (patience: Patience) => Promise<boolean>;

/** The loads that the lookup needs before it can continue. */
export interface Missing {
  readonly missing: readonly Load[];
  /** True if `KnownCredentials` does not have the credential. Clients can invent such credentials. */
  readonly unseen?: boolean;
}

export type LookupResult = Resolution | Missing;

/**
 * The longest chain of dependent loads: an own header, two values of `iss`, keys that seem old, the token, its link, the
 * admission of its user, the link again, the user, the tenants.
 */
export const DEPTH = 10;

/** The only key of the cache of global policies. */
const GLOBAL = '';

export function lookUp(at: LookupAt, subject: Subject): LookupResult {
  switch (subject.kind) {
    case 'api_key':
      return ofKey(at, subject.digest);
    case 'token':
      return ofToken(at, subject);
    case 'user':
      return ofUser(at, subject.id);
    default:
      return subject satisfies never;
  }
}

function ofKey(at: LookupAt, digest: KeyDigest): LookupResult {
  const { maps, nowMs, monotonicMs } = at;
  const key = maps.keys.peek(digest, monotonicMs);
  if (key === undefined) {
    return { missing: [(patience) => maps.keys.fill(digest, patience)], unseen: !maps.keys.isKnown(digest) };
  }
  if (key === ABSENT) return INVALID.unknown;
  const invalid = keyInvalidReason(key, nowMs);
  if (invalid !== undefined) return INVALID[invalid];
  const known = cachedResolution(at, key.memo);
  if (known !== undefined) return known;
  const { ownerId, memo } = key;
  if (ownerId === undefined) return resolveInTenant(at, memo.principal, { memo, user: undefined });

  const owner = maps.users.find(ownerId, monotonicMs);
  if (owner === undefined) {
    const tenants = missingOfTenants(at, [memo.principal.tenantId]);
    return { missing: [(patience) => maps.users.fill(ownerId, patience), ...tenants] };
  }
  if (owner === ABSENT) return INVALID.user_missing;
  const ownerReason = ownerInvalidReason(key, owner.value);
  if (ownerReason !== undefined) return INVALID[ownerReason];
  return resolveInTenant(at, ownedPrincipal(key, owner.value), { memo, user: owner });
}

function ofToken(at: LookupAt, subject: Extract<Subject, { kind: 'token' }>): LookupResult {
  const { maps, nowMs, monotonicMs } = at;
  const verified = maps.tokens.peek(subject.digest, monotonicMs);
  if (verified === undefined || verified.kind === 'foreign') {
    return ofOtherToken(at, subject, verified === undefined);
  }
  if (verified.kind === 'expired') return EXPIRED;
  if (verified.kind === 'invalid') return INVALID[verified.reason];
  if (nowMs < verified.validFromMs) return INVALID.malformed;
  if (nowMs >= verified.validUntilMs) return EXPIRED;

  if (verified.keyDigest !== undefined) return ofKeySession(at, verified);
  const { sessionId, userId } = verified;
  const session = maps.sessions.peek(sessionId, monotonicMs);
  const user = maps.users.find(userId, monotonicMs);
  if (session === undefined || user === undefined) {
    const missing: Load[] = [];
    if (session === undefined) missing.push((patience) => maps.sessions.fill(sessionId, patience));
    if (user === undefined) missing.push((patience) => maps.users.fill(userId, patience));
    return { missing };
  }
  if (session === ABSENT) return INVALID.session_ended;
  const invalid = sessionInvalidReason(session, userId, nowMs);
  if (invalid !== undefined) return INVALID[invalid];
  if (user === ABSENT) return INVALID.user_missing;
  const userReason = userInvalidReason(user.value);
  if (userReason !== undefined) return INVALID[userReason];
  const { memo } = session;
  const known = memo.resolution?.user === user ? cachedResolution(at, memo) : undefined;
  return known ?? resolveInTenant(at, sessionPrincipal(session, user.value), { memo, user });
}

/** The session of a key without a secret. All checks of a key apply as well. */
function ofKeySession(at: LookupAt, { sessionId, keyDigest }: KeySession): LookupResult {
  const { maps, nowMs, monotonicMs } = at;
  const session = maps.sessions.peek(sessionId, monotonicMs);
  const key = maps.keys.peek(keyDigest, monotonicMs);
  if (session === undefined || key === undefined) {
    const missing: Load[] = [];
    if (session === undefined) missing.push((patience) => maps.sessions.fill(sessionId, patience));
    if (key === undefined) missing.push((patience) => maps.keys.fill(keyDigest, patience));
    return { missing };
  }
  if (session === ABSENT) return INVALID.session_ended;
  if (key === ABSENT) return INVALID.unknown;
  const invalid = sessionInvalidReason(session, key.memo.principal.id, nowMs) ?? keyInvalidReason(key, nowMs);
  if (invalid !== undefined) return INVALID[invalid];
  const owner = key.ownerId === undefined ? undefined : maps.users.find(key.ownerId, monotonicMs);
  if (key.ownerId !== undefined && owner === undefined) {
    const { ownerId, memo } = key;
    const tenants = missingOfTenants(at, [memo.principal.tenantId]);
    return { missing: [(patience) => maps.users.fill(ownerId, patience), ...tenants] };
  }
  if (owner === ABSENT) return INVALID.user_missing;
  const ownerReason = owner && ownerInvalidReason(key, owner.value);
  if (ownerReason !== undefined) return INVALID[ownerReason];
  const { memo } = session;
  const principal = keySessionPrincipal(
    session,
    owner === undefined ? key.memo.principal : ownedPrincipal(key, owner.value),
  );
  const kept = memo.resolution?.identity;
  const known = kept?.kind === 'proved' && kept.principal === principal ? cachedResolution(at, memo) : undefined;
  return known ?? resolveInTenant(at, principal, { memo, user: owner });
}

/** @param mayBeOwn false if no signing key of this installation has signed the token */
function ofOtherToken(at: LookupAt, subject: Extract<Subject, { kind: 'token' }>, mayBeOwn: boolean): LookupResult {
  const { maps, monotonicMs } = at;
  const { digest, token } = subject;
  const entry = maps.issuerTokens.find(digest, monotonicMs);
  if (mayBeOwn && entry === undefined && maps.verifier.hasOwnHeader(token)) {
    return { missing: [(patience) => maps.tokens.fill(digest, token, patience)], unseen: !maps.tokens.isKnown(digest) };
  }
  const proved = proveByIssuer(at, subject, entry);
  const found = 'kind' in proved ? ofProved(at, proved) : proved;
  return 'identity' in found ? external(found, signersTenant(entry)) : found;
}

/** A token that only names the issuer counts for no tenant: otherwise any client could fill the tenant's records. */
function signersTenant(entry: IssuerTokenEntry | undefined): TenantId | undefined {
  if (entry === undefined || (entry.checked.kind === 'invalid' && !entry.checked.signed)) return undefined;
  return entry.issuer.value.tenantId;
}

function ofProved(at: LookupAt, proved: ProvedByIssuer): LookupResult {
  if (proved.kind === 'key') return ofKey(at, proved.digest);
  const { user, memo, issuerId } = proved;
  const known = memo.resolution?.user === user ? cachedResolution(at, memo) : undefined;
  return known ?? resolveInTenant(at, issuerUserPrincipal(memo, user.value, issuerId), { memo, user });
}

function ofUser(at: LookupAt, id: UserId): LookupResult {
  const { users } = at.maps;
  const user = users.peek(id, at.monotonicMs);
  if (user === undefined) return { missing: [(patience) => users.fill(id, patience)] };
  if (user === ABSENT) return INVALID.user_missing;
  const invalid = userInvalidReason(user);
  if (invalid !== undefined) return INVALID[invalid];
  return resolveInTenant(at, userPrincipal(user, undefined), undefined);
}

/** How long a cached resolution is used without a lookup of its entries. The lookups mark the entries as used. */
const MAX_RESOLUTION_AGE_MS = 60_000;

/** Returns the resolution that the memo keeps, if each of its entries is still the one that a lookup would return. */
function cachedResolution(
  { maps, header, monotonicMs }: LookupAt,
  { resolution: cached }: PrincipalMemo<Principal | undefined>,
): Resolution | undefined {
  if (cached === undefined || header !== undefined || monotonicMs >= cached.untilMs) return undefined;
  if (cached.user !== undefined && !maps.users.holds(cached.user, monotonicMs)) return undefined;
  const { identity, memo, tenant, global } = cached;
  if (!maps.tenants.holds(tenant, monotonicMs) || !maps.globals.holds(global, monotonicMs)) return undefined;
  return { identity, snapshot: ownSnapshot(maps, tenant.value, global.value), memo };
}

function ownSnapshot({ builtinRoles }: Maps, own: CachedTenant, global: PolicySet): Snapshot {
  if (own.home?.global === global) return own.home;
  own.home = Object.freeze({ own: own.view, effective: own.view, global, builtinRoles });
  return own.home;
}

/** The memo that may keep a resolution, and the entry of the user that it depends on. */
interface Keeping {
  readonly memo: PrincipalMemo<Principal | undefined>;
  readonly user: CacheEntry<CachedUser> | undefined;
}

/** The last step: the tenants and policies that the decision reads. */
function resolveInTenant(at: LookupAt, principal: Principal, keeping: Keeping | undefined): LookupResult {
  const { maps, header, monotonicMs } = at;
  const ownId = principal.tenantId;
  // An invalid header has no effective tenant. The decision rejects it before it reads one.
  const chosen = header === undefined ? undefined : effectiveTenant(principal, header);
  const effectiveId = chosen?.kind === 'tenant' ? chosen.id : ownId;

  const own = maps.tenants.find(ownId, monotonicMs);
  const effective = effectiveId === ownId ? own : maps.tenants.find(effectiveId, monotonicMs);
  const global = maps.globals.find(GLOBAL, monotonicMs);
  if (own === undefined || effective === undefined || global === undefined || global === ABSENT) {
    return { missing: missingOfTenants(at, [ownId, effectiveId]) };
  }
  if (own === ABSENT) return INVALID.unknown;
  const identity: Identity = Object.freeze({ kind: 'proved', principal });
  const snapshot =
    effective === own
      ? ownSnapshot(maps, own.value, global.value)
      : {
          own: own.value.view,
          effective: effective === ABSENT ? undefined : effective.value.view,
          global: global.value,
          builtinRoles: maps.builtinRoles,
        };
  if (keeping === undefined || header !== undefined) return { identity, snapshot };
  const untilMs = Math.floor(monotonicMs) + MAX_RESOLUTION_AGE_MS;
  const { memo, user } = keeping;
  memo.resolution = Object.freeze({ identity, memo, user, tenant: own, global, untilMs });
  return { identity, snapshot, memo };
}

function missingOfTenants({ maps, monotonicMs }: LookupAt, ids: readonly TenantId[]): Load[] {
  const missing: Load[] = [];
  for (const id of new Set(ids)) {
    if (maps.tenants.peek(id, monotonicMs) === undefined) missing.push((patience) => maps.tenants.fill(id, patience));
  }
  if (maps.globals.peek(GLOBAL, monotonicMs) === undefined)
    missing.push((patience) => maps.globals.fill(GLOBAL, patience));
  return missing;
}
