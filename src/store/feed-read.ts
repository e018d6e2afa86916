/** One look at the change feed: where it stands and what comes next, all from one snapshot. */

import pg from 'pg';
import type { Change, ChangeKind } from '../credential-cache/ports.ts';
import { Fault } from '../domain/errors.ts';
import type { Database } from './database.ts';
import type { Row } from './pool.ts';

export interface FeedPage {
  readonly epoch: string;
  /** The server's timeline, which changes at every fail-over; undefined where it cannot be told. */
  readonly timeline: string | undefined;
  readonly prunedThrough: number;
  /** The last change in this snapshot. */
  readonly position: number;
  readonly changes: readonly Change[];
  /** The kinds of changes that this program does not know, each once: a newer replica wrote them. */
  readonly unknownKinds: readonly string[];
  /** The sequence number of the page's last row, of a known kind or not; undefined when the page is empty. */
  readonly last: number | undefined;
  /** Reports whether the page has as many rows as were requested, so that more may follow. */
  readonly full: boolean;
  /** Age of the page's first row by the server's clock; 0 when the page is empty. */
  readonly oldestAgeMs: number;
  /** The server's clock while the statement ran, milliseconds since the epoch. */
  readonly nowMs: number;
}

export interface FeedQuestion {
  readonly after: number;
  readonly limit: number;
  readonly withTimeline: boolean;
}

/** The timeline as the names of log files begin with it. A standby cannot tell it. */
const TIMELINE =
  'case when pg_is_in_recovery() then null else left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) end';

/** Whether this server lets us see its timeline; some hosted ones do not. */
export async function tellsTimeline(db: Database): Promise<boolean> {
  try {
    await db.query({ text: `select ${TIMELINE}` });
    return true;
  } catch (error) {
    if (error instanceof pg.DatabaseError) {
      return false;
    }
    throw error;
  }
}

export async function readPage(db: Database, { after, limit, withTimeline }: FeedQuestion): Promise<FeedPage> {
  const rows = await db.query({
    name: `feed_page_${limit}${withTimeline ? '_timeline' : ''}`,
    // What is compared with is put where the planner does not look: else it would plan anew each time, for as long as
    // the reading takes.
    text: `
      select s.epoch, s.pruned_through, greatest((select max(seq) from changes), s.pruned_through) as position,
        ${withTimeline ? TIMELINE : 'null'} as timeline, extract(epoch from clock_timestamp())::float8 * 1000 as now_ms,
        c.seq, c.kind, c.key, (extract(epoch from clock_timestamp() - c.at) * 1000)::float8 as age_ms
      from feed_state s
      left join lateral (
        select seq, kind, key, at from changes where seq > (select $1::bigint) order by seq limit ${limit}
      ) c on true
      order by c.seq`,
    values: [after],
  });
  const [first] = rows;
  if (first === undefined) {
    throw new Fault('the change feed has no state');
  }
  const written = rows.filter((row) => row['seq'] !== null);
  const last = written.at(-1)?.['seq'];
  return {
    epoch: String(first['epoch']),
    timeline: typeof first['timeline'] === 'string' ? first['timeline'] : undefined,
    prunedThrough: Number(first['pruned_through']),
    position: Number(first['position']),
    changes: written.flatMap(knownChange),
    unknownKinds: [...new Set(written.map((row) => String(row['kind'])).filter((kind) => kindOf(kind) === undefined))],
    last: last === undefined ? undefined : Number(last),
    full: written.length === limit,
    nowMs: Number(first['now_ms']),
    oldestAgeMs: written.length === 0 ? 0 : Math.max(0, Number(first['age_ms'])),
  };
}

const KINDS: readonly ChangeKind[] = ['key', 'user', 'session', 'tenant', 'global', 'signing_keys'];

function kindOf(text: unknown): ChangeKind | undefined {
  return KINDS.find((known) => known === text);
}

function knownChange(row: Row): Change[] {
  const kind = kindOf(row['kind']);
  return kind === undefined ? [] : [{ seq: Number(row['seq']), kind, key: String(row['key']) }];
}
