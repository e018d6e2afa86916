/** The sessions of a user that can still prove it, as the user sees them. All times are the database's clock. */

import type { SessionId, UserId } from '../../domain/ids.ts';
import { type Page, storedSession } from '../../store/paging.ts';
import { countUpTo } from '../../store/prepared.ts';
import type { Queryable } from '../../store/queryable.ts';

/** A session as its user sees it. */
export interface StoredSession {
  readonly id: SessionId;
  readonly createdAt: Date;
  /** When it was begun or last refreshed. */
  readonly lastUsedAt: Date;
  /** Its absolute end. */
  readonly expiresAt: Date;
  /** From where it was begun; undefined = unknown. */
  readonly address: string | undefined;
  readonly userAgent: string | undefined;
  readonly cookie: boolean;
}

interface SessionRow {
  readonly id: string;
  readonly created_at: Date;
  readonly last_used_at: Date;
  readonly expires_at: Date;
  readonly address: string | null;
  readonly user_agent: string | null;
  readonly cookie: boolean;
}

const SESSION = 'select id, created_at, last_used_at, expires_at, address, user_agent, cookie from sessions';
/** Sessions that can still prove their user. `:idleMs` is how long one may lie unused before none of its tokens works. */
const ACTIVE = `ended_at is null and expires_at > clock_timestamp()
  and last_used_at > clock_timestamp() - :idleMs * interval '1 millisecond'`;

/** The active sessions of a user, the newest first. */
export async function listActiveSessions(
  q: Queryable,
  userId: UserId,
  idleMs: number,
  page: Page,
): Promise<readonly StoredSession[]> {
  const { rows } = await q.raw<{ rows: SessionRow[] }>(
    `${SESSION} where user_id = :userId and ${ACTIVE} and (cast(:after as text) is null or id < :after) order by id desc limit :take`,
    { userId, idleMs, after: page.after?.[0] ?? null, take: page.take },
  );
  return rows.map(toSession);
}

/** Counts the active sessions of a user, up to `most`. */
export async function countActiveSessions(q: Queryable, userId: UserId, idleMs: number, most: number): Promise<number> {
  return countUpTo(
    q,
    { sql: `select from sessions where user_id = :userId and ${ACTIVE}`, bindings: { userId, idleMs } },
    most,
  );
}

/** One active session of a user; undefined when there is none of that id, whosever it is. */
export async function findActiveSession(
  q: Queryable,
  userId: UserId,
  id: SessionId,
  idleMs: number,
): Promise<StoredSession | undefined> {
  return activeSession(q, { userId, id, idleMs }, '');
}

/** The same, held until the transaction ends. */
export async function lockActiveSession(
  q: Queryable,
  userId: UserId,
  id: SessionId,
  idleMs: number,
): Promise<StoredSession | undefined> {
  return activeSession(q, { userId, id, idleMs }, 'for no key update');
}

async function activeSession(
  q: Queryable,
  named: { readonly userId: UserId; readonly id: SessionId; readonly idleMs: number },
  lock: '' | 'for no key update',
): Promise<StoredSession | undefined> {
  const { rows } = await q.raw<{ rows: SessionRow[] }>(
    `${SESSION} where id = :id and user_id = :userId and ${ACTIVE} ${lock}`,
    named,
  );
  return rows[0] && toSession(rows[0]);
}

function toSession(row: SessionRow): StoredSession {
  return {
    id: storedSession(row.id),
    createdAt: row.created_at,
    lastUsedAt: row.last_used_at,
    expiresAt: row.expires_at,
    address: row.address ?? undefined,
    userAgent: row.user_agent ?? undefined,
    cookie: row.cookie,
  };
}
