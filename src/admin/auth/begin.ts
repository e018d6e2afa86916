/** What a login that succeeded comes with: a session, its first refresh token, the audit row, and the answer. */

import { makeId, type TenantId, type UserId } from '../../domain/ids.ts';
import { makeRefreshNonce, makeRefreshToken } from '../../identity/refresh.ts';
import type { Beginning } from '../../store/queries/sessions.ts';
import { type AuthEvent, auditRow } from './audit.ts';
import { type AuthParts, makeJti, type Provenance, type TokenPair } from './parts.ts';
import type { Attempt } from './throttle.ts';

const MAX_USER_AGENT_LENGTH = 256;

/** Who has proved itself. */
export interface Entrant {
  readonly id: UserId;
  readonly tenantId: TenantId;
  /** Of the password that was checked; empty for a user whose password is a directory's. */
  readonly passwordVersion: string;
}

export interface BeginningSession {
  /** To be written, with whatever else the login changes. */
  readonly beginning: Beginning;
  /** The answer, once that is committed. Rejects with a Fault when there is no key to sign with. */
  pair(): Promise<TokenPair>;
}

export interface LoginKind {
  readonly attempt: Attempt;
  /** The account's failures before it are forgotten. */
  readonly forgives: boolean;
  readonly cookie: boolean;
  /** For the audit, beside the session's id. */
  readonly details?: AuthEvent['after'];
}

export function beginningSession(parts: AuthParts, from: Provenance, entrant: Entrant, login: LoginKind): BeginningSession {
  const { id: userId, tenantId, passwordVersion } = entrant;
  const { attempt, forgives, cookie, details } = login;
  const sessionId = makeId('ses', from.nowMs, parts.random(10));
  const refresh = makeRefreshToken(parts.random);
  return {
    beginning: {
      session: {
        id: sessionId,
        userId,
        lifetimeMs: parts.login.refreshMs,
        cookie,
        address: from.address,
        userAgent: from.userAgent?.slice(0, MAX_USER_AGENT_LENGTH),
      },
      token: { digest: refresh.digest, nonce: makeRefreshNonce(parts.random) },
      passwordVersion,
      attempt,
      forgives,
      audit: auditRow(from, {
        action: 'auth.login',
        actor: userId,
        tenant: tenantId,
        target: { type: 'user', id: userId },
        result: 'success',
        after: { session_id: sessionId, ...details },
      }),
    },
    async pair() {
      const access = await parts.tokens.issue({ userId, sessionId, tenantId, nowMs: from.nowMs, jti: makeJti(parts.random) });
      return { accessToken: access.token, expiresIn: access.expiresIn, refreshToken: refresh.text, cookie };
    },
  };
}
