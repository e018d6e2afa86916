/** Whether a credential that is known still stands. Pure; every end is exclusive: at its instant the credential has ended. */

import type { InvalidReason } from '../decision/model.ts';
import type { UserId } from '../domain/ids.ts';
import type { CachedKey, CachedSession, CachedUser } from './values.ts';

/** Why it proves nobody; undefined = it stands. */
export type Refused = InvalidReason | undefined;

export function keyInvalidReason(key: CachedKey, nowMs: number): Refused {
  if (key.revoked) return 'revoked';
  // A digest that was rotated away stops at the end of its grace, whatever the key's own expiry.
  if (key.graceUntilMs !== undefined && nowMs >= key.graceUntilMs) return 'revoked';
  if (key.expiresAtMs !== undefined && nowMs >= key.expiresAtMs) return 'key_expired';
  return undefined;
}

/** A key stops with its owner, and somebody of another tenant is no owner. */
export function ownerInvalidReason(key: CachedKey, owner: CachedUser): Refused {
  if (owner.tenantId !== key.memo.principal.tenantId) return 'user_missing';
  return userInvalidReason(owner);
}

export function userInvalidReason(user: CachedUser): Refused {
  return user.active ? undefined : 'user_deactivated';
}

/** @param userId whom the token names: a session of somebody else proves nothing */
export function sessionInvalidReason(session: CachedSession, userId: UserId, nowMs: number): Refused {
  return session.userId !== userId || session.ended || nowMs >= session.expiresAtMs ? 'session_ended' : undefined;
}
