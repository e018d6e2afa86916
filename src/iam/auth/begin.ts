/** What a login that succeeded comes with: a session, its first refresh token, the audit row, and the answer. */

import { makeId, type TenantId, type UserId } from '../../domain/ids.ts';
import { makeRefreshNonce, makeRefreshToken } from '../../identity/opaque-tokens.ts';
import type { Beginning } from '../sessions/queries.ts';
import type { AuthEvent } from './audit.ts';
import { type AuthParts, makeJti, type Provenance, type TokenPair } from './parts.ts';
import type { LoginAttempt } from './throttle.ts';

const MAX_USER_AGENT_LENGTH = 256;

export interface BeginningSession {
  /** To be written, with whatever else the login changes. */
  readonly beginning: Beginning;
  /** The answer, once that is committed for a user. Rejects with a Fault when there is no key to sign with. */
  pair(userId: UserId): Promise<TokenPair>;
}

export interface LoginKind {
  readonly attempt: LoginAttempt;
  /** The account's failures before it are forgotten. */
  readonly forgives: boolean;
  readonly cookie: boolean;
  /** For the audit, beside the session's id. */
  readonly details?: AuthEvent['after'];
}

/** @param tenantId of whoever has proved itself */
export function beginningSession(
  parts: AuthParts,
  from: Provenance,
  tenantId: TenantId,
  login: LoginKind,
): BeginningSession {
  const { attempt, forgives, cookie, details } = login;
  const sessionId = makeId('ses', from.nowMs, parts.random(10));
  const refresh = makeRefreshToken(parts.random);
  return {
    beginning: {
      session: {
        id: sessionId,
        lifetimeMs: parts.login.refreshMs,
        cookie,
        address: from.address,
        userAgent: from.userAgent?.slice(0, MAX_USER_AGENT_LENGTH),
      },
      token: { digest: refresh.digest, nonce: makeRefreshNonce(parts.random) },
      attempt,
      forgives,
      audit: {
        actorType: 'user',
        actorId: undefined,
        tenantId,
        address: from.address,
        action: 'auth.login',
        targetType: 'user',
        targetId: undefined,
        result: 'success',
        before: undefined,
        after: { session_id: sessionId, ...details },
        requestId: from.requestId,
      },
    },
    async pair(userId) {
      const access = await parts.tokens.issue({
        userId,
        sessionId,
        tenantId,
        nowMs: from.nowMs,
        jti: makeJti(parts.random),
      });
      return { accessToken: access.token, expiresIn: access.expiresIn, refreshToken: refresh.text, cookie };
    },
  };
}
