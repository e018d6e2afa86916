/**
 * Statements on the audit log's seals, on the queue of rows that wait for a seal, and on rows as the chain reads them.
 */

import { Fault } from '../domain/errors.ts';
import type { ChainRow, Seal } from './audit-chain.ts';
import { type Prepared, runPrepared } from './prepared.ts';
import type { Queryable } from './queryable.ts';

/** The newest seal, as recorded in `audit_chain`. */
interface ChainHead {
  readonly seq: number;
  readonly hash: Uint8Array;
  readonly mac: Uint8Array;
}

/**
 * Bounds the text of `before` and `after` in one result, except for a single larger row, because of memory and
 * processor time.
 */
const MAX_TEXT_BYTES = 524_288;

const CHAIN_ROW = `cast(extract(epoch from a.time) as text) as time, a.actor_type, a.actor_id, a.tenant_id, a.address, a.action,
  a.target_type, a.target_id, a.result, cast(a.before as text) as before, cast(a.after as text) as after, a.request_id`;

/** Limits the rows of `inner`, in order of `id`, to those whose text fits into one result. */
function bounded(inner: string): string {
  return `select * from (
    select rows.*, sum(text_bytes) over (order by id) - text_bytes as bytes_before, count(*) over () as found
    from (select *, coalesce(octet_length(before), 0) + coalesce(octet_length(after), 0) as text_bytes from (${inner}) sized) rows
  ) measured where bytes_before < ${MAX_TEXT_BYTES} order by id`;
}

/** A row that waits for a seal. */
export interface WaitingRow {
  readonly id: number;
  /** Undefined if the row was removed from the log. */
  readonly row: ChainRow | undefined;
}

interface WaitingRows {
  readonly rows: readonly WaitingRow[];
  /** True if more rows wait. */
  readonly more: boolean;
}

/** The statements of each second. */
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

/**
 * Takes the chain's lock until the transaction ends. Returns false if another server holds it.
 * @param lock one number for all servers
 */
export async function takeChain(trx: Queryable, lock: number): Promise<boolean> {
  const [row] = await runPrepared<{ held: boolean }>(trx, STATEMENTS.takeChain, [lock]);
  return row?.held === true;
}

/** The waiting rows with the lowest ids. */
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

/** Returns the number of waiting rows, and the id of the first one that was removed from the log. */
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

/** Returns the first rows with these ids after `after`, in order of id, that fit into one result. */
export async function rowsToCheck(q: Queryable, ids: readonly number[], after: number): Promise<readonly ChainRow[]> {
  const { rows } = await q.raw<{ rows: ChainRow[] }>(
    bounded(`select a.id, ${CHAIN_ROW} from audit_log a where a.id = any(cast(:ids as bigint[])) and a.id > :after`),
    { ids, after },
  );
  return rows;
}

/** The end of the chain: its recorded head, and its last stored seal. Undefined if there is none. */
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

/** The time that a new seal states: the database's clock in seconds, to the microsecond. */
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
  /** pg decodes arrays of bigint as text. */
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
    case 'rows':
      return { ...frame, kind: 'rows', ids: row.row_ids.map(Number), digests: row.row_digests };
    case 'removal':
      return {
        ...frame,
        kind: 'removal',
        through: row.removed_through ?? 0,
        throughHash: row.removed_hash ?? new Uint8Array(),
        rows: row.removed_rows ?? 0,
      };
    default:
      return row.kind satisfies never;
  }
}

/** Unverified facts about the chain. */
interface ChainState {
  /** Number of sealed rows. */
  readonly rows: number;
  readonly seals: number;
  /** Number of rows that wait for a seal, up to `maxUnsealed`. */
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

/** Reads totals that triggers maintain, so its cost does not grow with the log. */
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

/** Returns seals in the order of the chain. */
export async function sealsAfter(q: Queryable, seq: number, take: number): Promise<readonly Seal[]> {
  const { rows } = await q.raw<{ rows: SealRow[] }>(`${SEAL} where seq > :seq order by seq limit :take`, { seq, take });
  return rows.map(toSeal);
}

export async function lastRemoval(q: Queryable): Promise<Seal | undefined> {
  const { rows } = await q.raw<{ rows: SealRow[] }>(`${SEAL} where kind = 'removal' order by seq desc limit 1`);
  return rows[0] && toSeal(rows[0]);
}

/** Returns the first seals that are older than `ageMs`, with the number of rows of each. */
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

/** Deletes the seals up to one, with their rows. Returns the number of deleted rows. */
export async function deleteSealed(q: Queryable, through: number): Promise<number> {
  const { rows } = await q.raw<{ rows: { gone: number }[] }>(
    `with seals as (delete from audit_seals where seq <= :through returning row_ids),
       gone as (delete from audit_log where id in (select unnest(row_ids) from seals) returning id)
     select count(*) as gone from gone`,
    { through },
  );
  return rows[0]?.gone ?? 0;
}

/** Returns the sealed ids in a range, from one page of seals. An id in two seals appears twice. */
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

/** Returns the ids of a table in a range, in ascending order. */
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
