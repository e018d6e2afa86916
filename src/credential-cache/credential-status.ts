/**
 * Why a known credential is invalid: each function returns the reason, or undefined if the credential is valid. Pure.
 * Every end is exclusive: at its instant the credential has ended.
 */

import type { InvalidReason } from '../decision/model.ts';
import type { KeyId, UserId } from '../domain/ids.ts';
import type { CachedKey, CachedSession, CachedUser } from './values.ts';

export function keyInvalidReason(key: CachedKey, nowMs: number): InvalidReason | undefined {
  if (key.revoked) return 'revoked';
  if (key.disabled) return 'disabled';
  // The digest of a rotated secret stops at the end of its grace, even if the key expires later.
  if (key.graceUntilMs !== undefined && nowMs >= key.graceUntilMs) return 'revoked';
  if (key.expiresAtMs !== undefined && nowMs >= key.expiresAtMs) return 'key_expired';
  return undefined;
}

/** A key is valid only while its owner is, and only if the owner is a user of the key's tenant. */
export function ownerInvalidReason(key: CachedKey, owner: CachedUser): InvalidReason | undefined {
  if (owner.tenantId !== key.memo.principal.tenantId) return 'user_missing';
  return userInvalidReason(owner);
}

export function userInvalidReason(user: CachedUser): InvalidReason | undefined {
  return user.active ? undefined : 'user_deactivated';
}

/** @param owner the token's user or key: the session of another one proves nothing */
export function sessionInvalidReason(
  session: CachedSession,
  owner: UserId | KeyId,
  nowMs: number,
): InvalidReason | undefined {
  return session.ownerId !== owner || session.ended || nowMs >= session.expiresAtMs ? 'session_ended' : undefined;
}
