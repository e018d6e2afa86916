/** Reads a page of the change feed and the feed's state from one snapshot. */

import pg from 'pg';
import type { Change } from '../credential-cache/ports.ts';
import { Fault } from '../domain/errors.ts';
import { CHANGE_KINDS, type ChangeKind } from '../domain/records.ts';
import type { Database } from './database.ts';
import type { Row } from './pool.ts';

export interface FeedPage {
  readonly epoch: string;
  /** The server's timeline, which changes at every failover; undefined if it is unknown. */
  readonly timeline: string | undefined;
  readonly prunedThrough: number;
  /** The last change in this snapshot. */
  readonly position: number;
  readonly changes: readonly Change[];
  /** Kinds of changes that this program does not know, each once: a newer replica wrote them. */
  readonly unknownKinds: readonly string[];
  /** Sequence number of the page's last row of any kind; undefined if the page is empty. */
  readonly last: number | undefined;
  /** True if the page has as many rows as requested, so that more may follow. */
  readonly full: boolean;
  /** Age of the page's first row by the server's clock; 0 if the page is empty. */
  readonly oldestAgeMs: number;
  /** The server's clock while the statement ran, milliseconds since the epoch. */
  readonly nowMs: number;
}

interface FeedRequest {
  readonly after: number;
  readonly limit: number;
  readonly withTimeline: boolean;
}

/** The timeline: the beginning of the names of WAL files. A standby has none. */
const TIMELINE =
  'case when pg_is_in_recovery() then null else left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) end';

/** Reports whether this role may read the server's timeline; some hosted servers do not permit it. */
export async function canReadTimeline(db: Database): Promise<boolean> {
  try {
    await db.query({ text: `select ${TIMELINE}` });
    return true;
  } catch (error) {
    if (error instanceof pg.DatabaseError) return false;
    throw error;
  }
}

export async function readPage(db: Database, { after, limit, withTimeline }: FeedRequest): Promise<FeedPage> {
  const rows = await db.query({
    name: `feed_page_${limit}${withTimeline ? '_timeline' : ''}`,
    text: `
      select s.epoch, s.pruned_through, greatest((select feed_newest()), s.pruned_through) as position,
        ${withTimeline ? TIMELINE : 'null'} as timeline, extract(epoch from clock_timestamp())::float8 * 1000 as now_ms,
        c.seq, c.kind, c.key, (extract(epoch from clock_timestamp() - c.at) * 1000)::float8 as age_ms
      from feed_state s
      left join feed_page($1, ${limit}) c on true
      order by c.seq`,
    values: [after],
  });
  const [first] = rows;
  if (first === undefined) throw new Fault('the change feed has no state');
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

function kindOf(text: unknown): ChangeKind | undefined {
  return CHANGE_KINDS.find((known) => known === text);
}

function knownChange(row: Row): Change[] {
  const kind = kindOf(row['kind']);
  return kind === undefined ? [] : [{ seq: Number(row['seq']), kind, key: String(row['key']) }];
}
