/** Sessions as the API shows them, to their user and to administrators. */

import { parseId, type SessionId } from '../../domain/ids.ts';
import type { AuthParts } from '../auth/parts.ts';
import { notFound } from '../caller/refusals.ts';
import type { StoredSession } from './list-queries.ts';

/** What the API shows of a session. */
export interface SessionResource {
  readonly id: string;
  readonly created_at: string;
  /** When it was begun or last refreshed. */
  readonly last_used_at: string;
  /** When it ends however much it is used. */
  readonly expires_at: string;
  /** From where it was begun. */
  readonly address: string | null;
  readonly user_agent: string | null;
  /** True when its refresh token lives in a browser's cookie. */
  readonly cookie: boolean;
  /** True for the session of the access token that asks. */
  readonly current: boolean;
}

/** What decides how long a session is listed. */
export interface SessionTimes {
  readonly login: Pick<AuthParts['login'], 'refreshIdleMs'>;
  readonly tokens: Pick<AuthParts['tokens'], 'lifetimeMs'>;
}

/** How long after its last refresh a session is still good for something: its refresh token, or an access token, may work. */
export function idleMs({ login, tokens }: SessionTimes): number {
  return Math.max(login.refreshIdleMs, tokens.lifetimeMs);
}

/** @throws Refusal `not_found` for any text that cannot be an id */
export function sessionIdOf(text: string): SessionId {
  const id = parseId('ses', text);
  if (id === undefined) throw notFound('session');
  return id;
}

/** @param current the session of the caller's access token; undefined for API keys */
export function sessionResource(session: StoredSession, current: SessionId | undefined): SessionResource {
  return {
    id: session.id,
    created_at: session.createdAt.toISOString(),
    last_used_at: session.lastUsedAt.toISOString(),
    expires_at: session.expiresAt.toISOString(),
    address: session.address ?? null,
    user_agent: session.userAgent ?? null,
    cookie: session.cookie,
    current: session.id === current,
  };
}
