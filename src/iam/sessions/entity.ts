/** Sessions: the definition of their columns and of what the API shows, to their user and to administrators. */

import type { IssuerId, KeyId, SessionId, UserId } from '../../domain/ids.ts';
import {
  column,
  columnsOf,
  derived,
  hidden,
  joined,
  type ResourceOf,
  type RowOf,
  resourceOf,
  shownComponent,
  type TableOf,
  unselected,
} from '../schema/entity.ts';
import { dateTime, described, flagOf, nullable, shownTextOrNull } from '../schema/keywords.ts';
import { instant, prefixedId, text, texts } from '../schema/resource-parts.ts';

const session = {
  id: column(prefixedId('ses')),
  /** Null: the session belongs to a key. */
  user_id: hidden<UserId | null>(),
  api_key_id: hidden<KeyId | null>(),
  /** The issuer whose token began the session. Null: a password did. */
  issuer_id: hidden<IssuerId | null>(),
  created_at: column(instant),
  last_used_at: column(dateTime('The time at which the session began or was last refreshed.')),
  expires_at: column(dateTime('The time at which the session ends even if it is used.')),
  address: column(shownTextOrNull('The client address at login.')),
  user_agent: column(nullable(text)),
  cookie: column(flagOf("The refresh token is kept in a browser's cookie.")),
  issuer: joined(shownTextOrNull('The name of the issuer whose token began the session.')),
  scope: column(
    nullable(
      described(texts, 'The permission patterns that narrow the session. Null: it has all permissions of its user.'),
    ),
  ),
  current: derived(flagOf("Whether this is the session of the request's access token.")),
  ended_at: unselected<Date | null>(),
  refreshes: unselected<number>(),
};

export const SESSION_COLUMNS = columnsOf(session);

export interface SessionRow extends RowOf<typeof session> {}
export interface SessionTable extends TableOf<typeof session> {}
export interface SessionResource extends ResourceOf<typeof session> {}

export const Session = shownComponent('Session', session);

/** @param current the session of the caller's access token; undefined for API keys */
export function sessionResource(row: SessionRow, current: SessionId | undefined): SessionResource {
  return resourceOf(session, row, { current: row.id === current });
}

/** The lifetimes that decide how long a session is listed. */
export interface SessionTimes {
  readonly login: { readonly refreshIdleMs: number };
  readonly tokens: { readonly lifetimeMs: number };
}

/**
 * Returns the milliseconds after the last refresh during which a refresh token or an access token of the session may
 * work.
 */
export function idleMs({ login, tokens }: SessionTimes): number {
  return Math.max(login.refreshIdleMs, tokens.lifetimeMs);
}
