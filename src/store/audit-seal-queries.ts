/** The audit log's seals, the queue of rows that wait for one, and rows as the chain reads them. */

import { Fault } from '../domain/errors.ts';
import type { ChainRow, RemovalSeal, RowsSeal, Seal } from './audit-chain.ts';
import { type Prepared, runPrepared } from './prepared.ts';
import type { Queryable } from './queryable.ts';

/** The newest seal as `audit_chain` has it. */
export interface ChainHead {
  readonly seq: number;
  readonly hash: Uint8Array;
  readonly mac: Uint8Array;
}

/** Text of before and after in one answer at most, but for one row alone: few huge rows fill no memory and hold up no thread. */
const MAX_TEXT_BYTES = 524_288;

const CHAIN_ROW = `cast(extract(epoch from a.time) as text) as time, a.actor_type, a.actor_id, a.tenant_id, a.address, a.action,
  a.target_type, a.target_id, a.result, cast(a.before as text) as before, cast(a.after as text) as after, a.request_id`;

/** Cuts what `inner` selects, by `id`, where its texts get too large. */
function bounded(inner: string): string {
  return `select * from (
    select rows.*, sum(text_bytes) over (order by id) - text_bytes as bytes_before, count(*) over () as found
    from (select *, coalesce(octet_length(before), 0) + coalesce(octet_length(after), 0) as text_bytes from (${inner}) sized) rows
  ) measured where bytes_before < ${MAX_TEXT_BYTES} order by id`;
}

/** A row that waits to be sealed; undefined when it is no longer there. */
export interface WaitingRow {
  readonly id: number;
  readonly row: ChainRow | undefined;
}

export interface WaitingRows {
  readonly rows: readonly WaitingRow[];
  /** Whether more waited than one answer holds. */
  readonly more: boolean;
}

/** What is asked each second. */
const STATEMENTS = {
  anyWaiting: { name: 'audit_any_waiting', text: 'select exists (select from audit_unsealed) as waiting' },
  takeChain: { name: 'audit_take_chain', text: 'select pg_try_advisory_xact_lock($1) as held' },
  chainEnd: {
    name: 'audit_chain_end',
    text: `select c.seq, c.hash, c.mac, (select max(seq) from audit_seals) as last_seal
      from (select) as once left join audit_chain c on true`,
  },
  waiting: {
    name: 'audit_waiting',
    text: bounded(
      `select u.id, a.id is not null as there, ${CHAIN_ROW}
       from (select id from audit_unsealed order by id limit $1) u left join audit_log a on a.id = u.id`,
    ),
  },
  time: { name: 'audit_sealing_time', text: 'select cast(extract(epoch from clock_timestamp()) as text) as now' },
  insertSeal: {
    name: 'audit_insert_seal',
    text: `insert into audit_seals (seq, kind, sealed_at, row_ids, row_digests, removed_through, removed_hash, removed_rows, previous_hash, hash)
      values ($1, $2, timestamptz 'epoch' + cast($3::text || ' seconds' as interval), $4::bigint[], $5, $6, $7, $8, $9, $10)`,
  },
  putHead: {
    name: 'audit_put_chain_head',
    text: `insert into audit_chain (seq, hash, mac) values ($1, $2, $3)
      on conflict (only_row) do update set seq = excluded.seq, hash = excluded.hash, mac = excluded.mac`,
  },
  noLongerWaiting: { name: 'audit_no_longer_waiting', text: 'delete from audit_unsealed where id = any($1::bigint[])' },
} as const satisfies Readonly<Record<string, Prepared>>;

/** Keeps the chain until the transaction ends; false when another keeps it. @param lock one number for all servers */
export async function takeChain(trx: Queryable, lock: number): Promise<boolean> {
  const [row] = await runPrepared<{ held: boolean }>(trx, STATEMENTS.takeChain, [lock]);
  return row?.held === true;
}

/** The first of those that wait, by id. */
export async function waitingRows(q: Queryable, take: number): Promise<WaitingRows> {
  const rows = await runPrepared<ChainRow & { readonly there: boolean; readonly found: number }>(
    q,
    STATEMENTS.waiting,
    [take],
  );
  const found = rows[0]?.found ?? 0;
  return {
    rows: rows.map((row) => ({ id: row.id, row: row.there ? row : undefined })),
    more: found === take || found > rows.length,
  };
}

export async function anyWaiting(q: Queryable): Promise<boolean> {
  const [row] = await runPrepared<{ waiting: boolean }>(q, STATEMENTS.anyWaiting, []);
  return row?.waiting === true;
}

/** How many wait, and the first of them whose row is gone. */
export async function waitingState(
  q: Queryable,
): Promise<{ readonly count: number; readonly gone: number | undefined }> {
  const { rows } = await q.raw<{ rows: { count: number; gone: number | null }[] }>(
    `select count(*) as count, min(u.id) filter (where a.id is null) as gone
     from audit_unsealed u left join audit_log a on a.id = u.id`,
  );
  return { count: rows[0]?.count ?? 0, gone: rows[0]?.gone ?? undefined };
}

export async function noLongerWaiting(q: Queryable, ids: readonly number[]): Promise<void> {
  await runPrepared(q, STATEMENTS.noLongerWaiting, [ids]);
}

/** Of the rows with these ids, in order of id, those after `after` that fit into one answer; empty when there are no more. */
export async function rowsToCheck(q: Queryable, ids: readonly number[], after: number): Promise<readonly ChainRow[]> {
  const { rows } = await q.raw<{ rows: ChainRow[] }>(
    bounded(`select a.id, ${CHAIN_ROW} from audit_log a where a.id = any(cast(:ids as bigint[])) and a.id > :after`),
    { ids, after },
  );
  return rows;
}

/** Where the chain ends: by its head, and by the seals that are there; undefined where there is none. */
export interface ChainEnd {
  readonly head: ChainHead | undefined;
  readonly lastSeal: number | undefined;
}

interface ChainEndRow {
  readonly seq: number | null;
  readonly hash: Uint8Array | null;
  readonly mac: Uint8Array | null;
  readonly last_seal: number | null;
}

export async function chainEnd(q: Queryable): Promise<ChainEnd> {
  const [row] = await runPrepared<ChainEndRow>(q, STATEMENTS.chainEnd, []);
  const { seq = null, hash = null, mac = null, last_seal = null } = row ?? {};
  const head = seq === null || hash === null || mac === null ? undefined : { seq, hash, mac };
  return { head, lastSeal: last_seal ?? undefined };
}

export async function putChainHead(q: Queryable, { seq, hash, mac }: ChainHead): Promise<void> {
  await runPrepared(q, STATEMENTS.putHead, [seq, hash, mac]);
}

/** What a seal made now says about when it was made: the database's clock, with all its digits. */
export async function sealingTime(q: Queryable): Promise<string> {
  const [row] = await runPrepared<{ now: string }>(q, STATEMENTS.time, []);
  const now = row?.now;
  if (now === undefined) throw new Fault('the database did not return the time');
  return now;
}

export async function insertSeal(q: Queryable, seal: Seal): Promise<void> {
  const { kind, seq, sealedAt, previousHash, hash } = seal;
  const { ids, digests } = kind === 'rows' ? seal : { ids: [], digests: Buffer.alloc(0) };
  const removed = kind === 'removal' ? [seal.through, seal.throughHash, seal.rows] : [null, null, null];
  await runPrepared(q, STATEMENTS.insertSeal, [seq, kind, sealedAt, ids, digests, ...removed, previousHash, hash]);
}

interface SealRow {
  readonly seq: number;
  readonly kind: 'rows' | 'removal';
  readonly sealed_at: string;
  /** As text: the driver gives arrays of bigint so. */
  readonly row_ids: readonly string[];
  readonly row_digests: Uint8Array;
  readonly removed_through: number | null;
  readonly removed_hash: Uint8Array | null;
  readonly removed_rows: number | null;
  readonly previous_hash: Uint8Array;
  readonly hash: Uint8Array;
}

const SEAL = `select seq, kind, cast(extract(epoch from sealed_at) as text) as sealed_at, row_ids, row_digests, removed_through,
    removed_hash, removed_rows, previous_hash, hash
  from audit_seals`;

function toSeal(row: SealRow): Seal {
  const frame = { seq: row.seq, sealedAt: row.sealed_at, previousHash: row.previous_hash, hash: row.hash };
  switch (row.kind) {
    case 'rows': {
      const seal: RowsSeal = { ...frame, kind: 'rows', ids: row.row_ids.map(Number), digests: row.row_digests };
      return { ...seal, hash: row.hash };
    }
    case 'removal': {
      const seal: RemovalSeal = {
        ...frame,
        kind: 'removal',
        through: row.removed_through ?? 0,
        throughHash: row.removed_hash ?? new Uint8Array(),
        rows: row.removed_rows ?? 0,
      };
      return { ...seal, hash: row.hash };
    }
    default:
      return row.kind satisfies never;
  }
}

/** What the tables say of the chain. Nothing here is verified. */
export interface ChainState {
  /** Rows that seals name. */
  readonly rows: number;
  readonly seals: number;
  /** Rows that wait for a seal, up to the number asked for. */
  readonly unsealed: number;
  readonly newest: { readonly seq: number; readonly hash: Uint8Array; readonly sealedAt: Date } | undefined;
}

interface ChainStateRow {
  readonly sealed_rows: number;
  readonly seals: number;
  readonly unsealed: number;
  readonly seq: number | null;
  readonly hash: Uint8Array | null;
  readonly sealed_at: Date | null;
}

/** Reads totals that triggers keep, the newest seal, and at most `maxUnsealed` rows of the queue: the cost does not grow with the log. */
export async function chainState(q: Queryable, maxUnsealed: number): Promise<ChainState> {
  const { rows } = await q.raw<{ rows: ChainStateRow[] }>(
    `select t.sealed_rows, t.seals, s.seq, s.hash, s.sealed_at,
       (select count(*) from (select from audit_unsealed limit :maxUnsealed) waiting) as unsealed
     from audit_totals t left join (select seq, hash, sealed_at from audit_seals order by seq desc limit 1) s on true`,
    { maxUnsealed },
  );
  const [row] = rows;
  if (row === undefined) throw new Fault('the totals of the audit chain are missing');
  const { sealed_rows, seals, unsealed, seq, hash, sealed_at: sealedAt } = row;
  const newest = seq === null || hash === null || sealedAt === null ? undefined : { seq, hash, sealedAt };
  return { rows: sealed_rows, seals, unsealed, newest };
}

/** In the order of the chain. */
export async function sealsAfter(q: Queryable, seq: number, take: number): Promise<readonly Seal[]> {
  const { rows } = await q.raw<{ rows: SealRow[] }>(`${SEAL} where seq > :seq order by seq limit :take`, { seq, take });
  return rows.map(toSeal);
}

export async function lastRemoval(q: Queryable): Promise<Seal | undefined> {
  const { rows } = await q.raw<{ rows: SealRow[] }>(`${SEAL} where kind = 'removal' order by seq desc limit 1`);
  return rows[0] && toSeal(rows[0]);
}

/** The oldest seals that were made longer ago than `ageMs`, with how many rows each names. */
export async function expiredSeals(
  q: Queryable,
  ageMs: number,
  take: number,
): Promise<readonly { readonly seq: number; readonly hash: Uint8Array; readonly rows: number }[]> {
  const { rows } = await q.raw<{ rows: { seq: number; hash: Uint8Array; rows: number; expired: boolean }[] }>(
    `select seq, hash, cardinality(row_ids) as rows,
       sealed_at < clock_timestamp() - make_interval(secs => cast(:age as double precision)) as expired
     from audit_seals order by seq limit :take`,
    { age: ageMs / 1000, take },
  );
  const young = rows.findIndex((row) => !row.expired);
  return young === -1 ? rows : rows.slice(0, young);
}

/** Deletes the seals up to one and the rows that they name; answers how many rows there were. */
export async function deleteSealed(q: Queryable, through: number): Promise<number> {
  const { rows } = await q.raw<{ rows: { gone: number }[] }>(
    `with seals as (delete from audit_seals where seq <= :through returning row_ids),
       gone as (delete from audit_log where id in (select unnest(row_ids) from seals) returning id)
     select count(*) as gone from gone`,
    { through },
  );
  return rows[0]?.gone ?? 0;
}

/** Ids that any seal names and that lie in a range, page by page of seals. An id that two seals name comes twice. */
export async function sealedIds(
  q: Queryable,
  range: { readonly from: number; readonly before: number },
  page: { readonly after: number; readonly take: number },
): Promise<{ readonly ids: readonly number[]; readonly last: number | undefined }> {
  const { rows } = await q.raw<{ rows: { seq: number; ids: readonly string[] }[] }>(
    `select seq, array(select id from unnest(row_ids) id where id >= :from and id < :before) as ids
     from audit_seals where kind = 'rows' and seq > :after order by seq limit :take`,
    { ...range, ...page },
  );
  return { ids: rows.flatMap((row) => row.ids.map(Number)), last: rows.at(-1)?.seq };
}

/** Ids of a table in a range, ascending. */
export async function idsIn(
  q: Queryable,
  table: 'audit_log' | 'audit_unsealed',
  range: { readonly after: number; readonly before: number },
  take: number,
): Promise<readonly number[]> {
  const { rows } = await q.raw<{ rows: { id: number }[] }>(
    `select id from ${table} where id > :after and id < :before order by id limit :take`,
    { ...range, take },
  );
  return rows.map((row) => row.id);
}
