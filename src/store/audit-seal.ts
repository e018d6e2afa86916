/** One step of the sealer: a batch of rows, or of what is too old, in one transaction under the chain's lock. */

import { setImmediate as breath } from 'node:timers/promises';
import { headMac, type Mac, rowDigest, sameBytes, sealHash, type UnsignedSeal, ZEROS } from './audit-chain.ts';
import { insertAudit } from './audit-rows.ts';
import {
  type ChainEnd,
  chainEnd,
  deleteSealed,
  expiredSeals,
  insertSeal,
  lastRemoval,
  noLongerWaiting,
  putChainHead,
  sealingTime,
  takeChain,
  type WaitingRow,
  waitingRows,
} from './audit-seal-queries.ts';
import type { Database } from './database.ts';
import { type Transaction, transaction } from './transaction.ts';

/** One server seals at a time. Any number does, as long as nothing else in the same database uses it for an advisory lock. */
export const CHAIN_LOCK = 726543484;
/** Rows of one seal at most: what a busy server writes in a second. */
const BATCH = 500;
/** Rows whose digests are made in one go: the thread that makes them also decides. */
const AT_ONCE = 20;
/** Of one removal. */
const MAX_REMOVED_SEALS = 1000;
const MAX_REMOVED_ROWS = 2000;

export interface SealedTo {
  readonly seq: number;
  readonly hash: Uint8Array;
}

export interface Step {
  /** Rows sealed, or removed. */
  readonly rows: number;
  /** Whether another step has something to do: more waits already than one does. */
  readonly more: boolean;
  /** The newest seal after this step; undefined when another server is at it. */
  readonly head: SealedTo | undefined;
  /** The head was missing or not signed by us while there are seals: the chain begins anew here, which shows for ever. */
  readonly restarted: boolean;
}

const NOT_OURS: Step = { rows: 0, more: false, head: undefined, restarted: false };

/** Seals the rows that have waited longest. */
export function sealBatch(db: Database, mac: Mac, otherMac?: Mac): Promise<Step> {
  return alone(db, mac, otherMac, async (trx, place) => {
    const { rows: waiting, more } = await waitingRows(trx, BATCH);
    const sealedAt = await sealingTime(trx);
    if (waiting.length === 0) return { rows: 0, more: false, head: place.head, restarted: false };
    const ids = waiting.map(({ id }) => id);
    const digests = await digestsOf(waiting);
    const head = await append(trx, mac, {
      kind: 'rows',
      seq: place.next,
      sealedAt,
      previousHash: place.previous,
      ids,
      digests,
    });
    await noLongerWaiting(trx, ids);
    return { rows: ids.length, more, head, restarted: place.restarted };
  });
}

/** Removes the oldest seals that were made longer ago than `keepMs`, with their rows, and puts a seal on top that says so. */
export function removeBatch(db: Database, mac: Mac, keepMs: number, otherMac?: Mac): Promise<Step> {
  return alone(db, mac, otherMac, async (trx, place) => {
    const expired = withinBounds(await expiredSeals(trx, keepMs, MAX_REMOVED_SEALS));
    const through = expired.at(-1);
    // Without rows there is only the trace of removals before: it may stay until something else goes.
    if (through === undefined || expired.every(({ rows }) => rows === 0)) {
      return { rows: 0, more: false, head: place.head, restarted: false };
    }
    const before = await lastRemoval(trx);
    const rows = await deleteSealed(trx, through.seq);
    const sealedAt = await sealingTime(trx);
    const head = await append(trx, mac, {
      kind: 'removal',
      seq: place.next,
      sealedAt,
      previousHash: place.previous,
      through: through.seq,
      throughHash: through.hash,
      rows: rows + (before?.kind === 'removal' ? before.rows : 0),
    });
    await insertAudit(trx, {
      actorType: 'system',
      actorId: undefined,
      tenantId: undefined,
      address: undefined,
      action: 'audit.remove',
      targetType: undefined,
      targetId: undefined,
      result: 'success',
      before: undefined,
      after: { rows, through_seal: through.seq, kept_seconds: keepMs / 1000 },
      requestId: undefined,
    });
    return { rows, more: true, head, restarted: place.restarted };
  });
}

/** @param otherMac of the other `secret-key` whose head is believed while the installation changes its key */
function alone(
  db: Database,
  mac: Mac,
  otherMac: Mac | undefined,
  work: (trx: Transaction, place: Place) => Promise<Step>,
): Promise<Step> {
  return transaction(db, async (trx) => {
    if (!(await takeChain(trx, CHAIN_LOCK))) return NOT_OURS;
    return work(trx, placeAfter(await chainEnd(trx), otherMac === undefined ? [mac] : [mac, otherMac]));
  });
}

async function digestsOf(waiting: readonly WaitingRow[]): Promise<Uint8Array> {
  const digests: Uint8Array[] = [];
  for (const { row } of waiting) {
    digests.push(row === undefined ? ZEROS : rowDigest(row));
    if (digests.length % AT_ONCE === 0) await breath();
  }
  return Buffer.concat(digests);
}

interface Place {
  readonly head: SealedTo | undefined;
  /** Number of the next seal, and the hash that it follows. */
  readonly next: number;
  readonly previous: Uint8Array;
  readonly restarted: boolean;
}

/**
 * Where the chain goes on. The signed head is believed rather than the last seal that is there: if seals were cut off, the gap stays
 * visible. Without a head that we signed the chain begins anew, which shows just as well.
 */
function placeAfter({ head, lastSeal }: ChainEnd, macs: readonly Mac[]): Place {
  if (head === undefined && lastSeal === undefined)
    return { head: undefined, next: 1, previous: ZEROS, restarted: false };
  const signed = head !== undefined && macs.some((mac) => sameBytes(head.mac, headMac(mac, head.seq, head.hash)));
  const next = Math.max(lastSeal ?? 0, signed ? head.seq : 0) + 1;
  if (!signed) return { head: undefined, next, previous: ZEROS, restarted: true };
  return { head: { seq: head.seq, hash: head.hash }, next, previous: head.hash, restarted: false };
}

async function append(trx: Transaction, mac: Mac, seal: UnsignedSeal): Promise<SealedTo> {
  const hash = sealHash(mac, seal);
  await insertSeal(trx, { ...seal, hash });
  await putChainHead(trx, { seq: seal.seq, hash, mac: headMac(mac, seal.seq, hash) });
  return { seq: seal.seq, hash };
}

/** As many as one transaction removes without holding anybody up; at least one. */
function withinBounds<T extends { readonly rows: number }>(seals: readonly T[]): readonly T[] {
  let rows = 0;
  const end = seals.findIndex((seal) => {
    rows += seal.rows;
    return rows > MAX_REMOVED_ROWS;
  });
  return end === -1 ? seals : seals.slice(0, Math.max(1, end));
}
