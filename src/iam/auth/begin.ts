/**
 * The result of a successful login: a session, its first refresh token, the audit row, and the tokens for the response.
 */

import { makeId, type TenantId, type UserId } from '../../domain/ids.ts';
import { makeRefreshNonce, makeRefreshToken } from '../../identity/opaque-tokens.ts';
import type { Beginning } from '../sessions/queries.ts';
import type { AuthEvent } from './audit.ts';
import { type AuthParts, type IssuedTokens, makeJti, type Provenance } from './parts.ts';
import type { LoginAttempt } from './throttle.ts';

export const MAX_USER_AGENT_LENGTH = 256;

export interface BeginningSession {
  /** The rows, written together with the login's other changes. */
  readonly beginning: Beginning;
  /** Returns the tokens for the user after the commit. Rejects with a Fault if there is no key to sign with. */
  pair(userId: UserId): Promise<IssuedTokens>;
}

interface LoginKind {
  readonly attempt: LoginAttempt;
  /** True if the account's earlier failures no longer count. */
  readonly forgives: boolean;
  readonly cookie: boolean;
  /** Facts for the audit row, in addition to the session's id. */
  readonly details?: AuthEvent['after'];
}

/** @param tenantId the tenant of the proved principal */
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
        tenantId,
        address: from.address,
        action: 'auth.login',
        targetType: 'user',
        result: 'success',
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
