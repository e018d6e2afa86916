/** Cached keys, users and sessions. There are many, so they are small. */

import { compileGrant } from '../decision/compile.ts';
import { interned } from '../decision/interned.ts';
import type { KeyOwner, KeyPrincipal, Principal, Snapshot, TenantView, UserPrincipal } from '../decision/model.ts';
import { narrowedUser } from '../decision/narrowing.ts';
import { compilePatterns, type PatternSet } from '../decision/permissions.ts';
import type { IssuerId, KeyId, RoleName, SessionId, TenantId, UserId } from '../domain/ids.ts';
import type { KeyRecord, SessionRecord, UserRecord } from '../domain/records.ts';
import { ADMIN } from '../domain/roles.ts';
import type { CachedResolution } from './resolution.ts';

/**
 * The last principal that was derived from an entry and its user. It consists of frozen parts and is replaced when the
 * user's entry is replaced. An unchanged principal therefore stays the same object, and values derived from it can be
 * kept.
 */
export interface PrincipalMemo<P> {
  principal: P;
  /** The last resolution of the credential in its own tenant. */
  resolution: CachedResolution | undefined;
  /** The last reported use, in milliseconds since the epoch. */
  notedAtMs: number;
}

export interface CachedKey extends Pick<KeyRecord, 'expiresAtMs' | 'graceUntilMs' | 'revoked' | 'disabled'> {
  /** Undefined for a key that belongs to its tenant. */
  readonly ownerId: UserId | undefined;
  /** The first principal of an owned key has no owner: only `ownedPrincipal` may return it. */
  readonly memo: PrincipalMemo<KeyPrincipal>;
}

export interface CachedUser {
  /** The user as the owner of keys. */
  readonly owner: KeyOwner;
  readonly tenantId: TenantId;
  readonly active: boolean;
  readonly platformAdmin: boolean;
}

export interface CachedSession extends Pick<SessionRecord, 'id' | 'issuerId' | 'ended' | 'expiresAtMs'> {
  /** Undefined if the row has no owner, which proves nothing. */
  readonly ownerId: UserId | KeyId | undefined;
  readonly scope: PatternSet | undefined;
  readonly memo: SessionMemo;
}

interface SessionMemo extends PrincipalMemo<Principal | undefined> {
  /** The principal of the key from which that of its session was derived. */
  key: KeyPrincipal | undefined;
}

export interface CachedTenant {
  readonly view: TenantView;
  /** The snapshot for the tenant's own credentials: one object for all of them, because there are many. */
  home: Snapshot | undefined;
}

const MAX_INTERNED = 20_000;
const tenantOf = interned(
  MAX_INTERNED,
  (id: TenantId) => id,
  (id) => id,
);
const rolesOf = interned(
  MAX_INTERNED,
  (roles: readonly RoleName[]) => roles.join(),
  (roles): readonly RoleName[] => Object.freeze([...roles]),
);

export function toCachedKey(record: KeyRecord): CachedKey {
  const { id, userId, expiresAtMs, graceUntilMs, revoked, disabled, rateLimitRpm, rateLimits, metadata } = record;
  const principal: KeyPrincipal = Object.freeze({
    kind: 'api_key',
    id,
    tenantId: tenantOf(record.tenantId),
    grant: compileGrant(record.scopes, record.constraints),
    owner: undefined,
    rateLimitRpm,
    ...(rateLimits === undefined ? {} : { rateLimits }),
    ...(metadata === undefined ? {} : { metadata }),
    rotated: graceUntilMs !== undefined,
    provedBy: record.issuerId,
  });
  return Object.freeze({ ownerId: userId, expiresAtMs, graceUntilMs, revoked, disabled, memo: newMemo(principal) });
}

/** Bytes of scopes and constraints in one unit of the cache's capacity. Nearly every key has less. */
const UNIT_BYTES = 4096;
/** Bytes of one text in a set, without its characters. */
const TEXT_BYTES = 64;

/**
 * Returns the units of capacity that a key takes, at least 1. The caller that creates keys chooses their scopes and
 * constraints, so large keys must not take more memory than the cache has.
 */
export function weightOfKey({ scopes, constraints, metadata = {}, rateLimits = [] }: KeyRecord): number {
  const lists = [scopes, constraints.models, constraints.collections, constraints.agents];
  let bytes = bytesOf(Object.entries(metadata).flat()) + bytesOf(rateLimits.flatMap(({ models }) => models));
  for (const list of lists) bytes += bytesOf(list ?? []);
  return 1 + Math.floor(bytes / UNIT_BYTES);
}

/**
 * Returns the units of capacity that a user takes. An administrator of its tenant chooses its roles and limits by
 * model.
 */
export function weightOfUser({ roles, rateLimits = [] }: UserRecord): number {
  return 1 + Math.floor((bytesOf(roles) + bytesOf(rateLimits.flatMap(({ models }) => models))) / UNIT_BYTES);
}

/** @param id the requested id, so that the row's copy of it need not be kept */
export function toCachedUser(record: UserRecord, id: UserId): CachedUser {
  const roles = rolesOf(record.roles);
  return Object.freeze({
    owner: Object.freeze(
      record.rateLimits === undefined ? { id, roles } : { id, roles, rateLimits: record.rateLimits },
    ),
    tenantId: tenantOf(record.tenantId),
    active: record.status === 'active',
    platformAdmin: roles.includes(ADMIN),
  });
}

export function toCachedSession(record: SessionRecord, id: SessionId): CachedSession {
  const { userId, keyId, issuerId, ended, expiresAtMs } = record;
  const scope = record.scope && compilePatterns(record.scope);
  const memo: SessionMemo = { ...newMemo(undefined), key: undefined };
  return Object.freeze({ id, ownerId: userId ?? keyId, issuerId, scope, ended, expiresAtMs, memo });
}

/** Returns the units of capacity that a session takes. The client that narrows it chooses the scope. */
export function weightOfSession({ scope }: SessionRecord): number {
  return scope === undefined ? 1 : 1 + Math.floor(bytesOf(scope) / UNIT_BYTES);
}

function bytesOf(texts: readonly string[]): number {
  return texts.reduce((bytes, text) => bytes + text.length + TEXT_BYTES, 0);
}

export function newMemo<P>(principal: P): PrincipalMemo<P> {
  return { principal, resolution: undefined, notedAtMs: Number.NEGATIVE_INFINITY };
}

export function ownedPrincipal({ memo }: CachedKey, { owner }: CachedUser): KeyPrincipal {
  if (memo.principal.owner !== owner) {
    memo.principal = Object.freeze({ ...memo.principal, owner });
  }
  return memo.principal;
}

export function sessionPrincipal({ id, scope, memo }: CachedSession, user: CachedUser): UserPrincipal {
  const last = memo.principal;
  const { roles, rateLimits } = user.owner;
  if (
    last?.kind === 'user' &&
    last.roles === roles &&
    last.tenantId === user.tenantId &&
    last.rateLimits === rateLimits
  )
    return last;
  const whole = userPrincipal(user, id);
  const principal = scope === undefined ? whole : Object.freeze(narrowedUser(whole, scope));
  memo.principal = principal;
  return principal;
}

/** Returns the principal of the session of a key without a secret. @param key the key's current principal */
export function keySessionPrincipal({ id, scope, memo }: CachedSession, key: KeyPrincipal): KeyPrincipal {
  const last = memo.principal;
  if (last?.kind === 'api_key' && memo.key === key) return last;
  const principal: KeyPrincipal = Object.freeze({ ...key, provedBy: undefined, sessionId: id, scope });
  memo.key = key;
  memo.principal = principal;
  return principal;
}

/** Returns the principal of the token of an issuer with its current user. */
export function issuerUserPrincipal(
  memo: PrincipalMemo<UserPrincipal | undefined>,
  user: CachedUser,
  issuerId: IssuerId,
): UserPrincipal {
  const last = memo.principal;
  const { id, roles, rateLimits } = user.owner;
  if (last !== undefined && last.id === id && last.roles === roles && last.rateLimits === rateLimits) return last;
  const principal = userPrincipal(user, undefined, issuerId);
  memo.principal = principal;
  return principal;
}

export function userPrincipal(
  { owner, tenantId, platformAdmin }: CachedUser,
  sessionId: SessionId | undefined,
  provedBy?: IssuerId,
): UserPrincipal {
  const { id, roles, rateLimits } = owner;
  const limits = rateLimits === undefined ? {} : { rateLimits };
  return Object.freeze({ kind: 'user', id, tenantId, roles, platformAdmin, sessionId, provedBy, ...limits });
}
