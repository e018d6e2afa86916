/** Reads the active sessions of a user. All times are those of the database's clock. */

import type { SessionId, UserId } from '../../domain/ids.ts';
import { SESSION_ENDED_AT } from '../../store/cache-loader.ts';
import type { Page } from '../../store/paging.ts';
import { countUpTo } from '../../store/prepared.ts';
import type { Queryable } from '../../store/queryable.ts';
import { SESSION_COLUMNS, type SessionRow, type SessionTable } from './entity.ts';

/** Of `sessions s`, those of which a token may work. After `:idleMs` without use, no token of a session works. */
const ACTIVE = `${SESSION_ENDED_AT} is null and s.expires_at > clock_timestamp()
  and s.last_used_at > clock_timestamp() - :idleMs * interval '1 millisecond'`;

const COLUMNS = [...SESSION_COLUMNS.map((name) => `s.${name}`), 'i.name as issuer'];

const active = (q: Queryable, userId: UserId, idleMs: number) =>
  q<SessionTable>('sessions as s')
    .leftJoin('issuers as i', 'i.id', 's.issuer_id')
    .where('s.user_id', userId)
    .whereRaw(ACTIVE, { idleMs });

/** Returns the active sessions of a user, the newest first. */
export async function listActiveSessions(
  q: Queryable,
  userId: UserId,
  idleMs: number,
  { after, take }: Page,
): Promise<readonly SessionRow[]> {
  const sessions = active(q, userId, idleMs);
  if (after !== undefined) void sessions.whereRaw('s.id < ?', [after[0] ?? '']);
  return sessions.orderBy('s.id', 'desc').limit(take).select(COLUMNS);
}

export async function countActiveSessions(q: Queryable, userId: UserId, idleMs: number, most: number): Promise<number> {
  const sql = `select from sessions s where s.user_id = :userId and ${ACTIVE}`;
  return countUpTo(q, { sql, bindings: { userId, idleMs } }, most);
}

/**
 * Returns an active session of a user; undefined if the user has no such session.
 * @param mode `update`: locks the session until the transaction ends
 */
export async function findActiveSession(
  q: Queryable,
  userId: UserId,
  id: SessionId,
  idleMs: number,
  mode: 'read' | 'update',
): Promise<SessionRow | undefined> {
  const found = active(q, userId, idleMs).where('s.id', id);
  return (mode === 'update' ? found.forNoKeyUpdate('s') : found).first(COLUMNS);
}
