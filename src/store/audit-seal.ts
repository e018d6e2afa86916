/** One batch of the sealer: it seals rows, or removes expired ones, in one transaction under the chain's lock. */

import { pauses } from '../concurrency/pauses.ts';
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

/** Admits one server at a time. Nothing else in the same database may use this number for an advisory lock. */
export const CHAIN_LOCK = 726543484;
/** The largest number of rows of one seal: a busy server writes about this many in a second. */
const BATCH = 500;
/** Bounds of one removal. */
const MAX_REMOVED_SEALS = 1000;
const MAX_REMOVED_ROWS = 2000;

export interface SealedTo {
  readonly seq: number;
  readonly hash: Uint8Array;
}

export interface SealBatchResult {
  /** Number of rows sealed or removed. */
  readonly rows: number;
  /** True if more rows wait than one batch holds. */
  readonly more: boolean;
  /** The newest seal after this batch; undefined if another server holds the lock. */
  readonly head: SealedTo | undefined;
  /**
   * There are seals, but the head was missing or had an invalid signature. A new chain begins here; this stays visible.
   */
  readonly restarted: boolean;
}

const LOCKED_ELSEWHERE: SealBatchResult = { rows: 0, more: false, head: undefined, restarted: false };

/** Seals the waiting rows with the lowest ids. */
export function sealBatch(db: Database, mac: Mac, otherMac?: Mac): Promise<SealBatchResult> {
  return withChainLock(db, mac, otherMac, async (trx, position) => {
    const { rows: waiting, more } = await waitingRows(trx, BATCH);
    const sealedAt = await sealingTime(trx);
    if (waiting.length === 0) return { rows: 0, more: false, head: position.head, restarted: false };
    const ids = waiting.map(({ id }) => id);
    const digests = await digestsOf(waiting);
    const head = await append(trx, mac, {
      kind: 'rows',
      seq: position.next,
      sealedAt,
      previousHash: position.previous,
      ids,
      digests,
    });
    await noLongerWaiting(trx, ids);
    if (position.restarted) await auditRestart(trx);
    return { rows: ids.length, more, head, restarted: position.restarted };
  });
}

/** Removes the seals that are older than `keepMs`, with their rows, and appends a seal that records the removal. */
export function removeBatch(db: Database, mac: Mac, keepMs: number, otherMac?: Mac): Promise<SealBatchResult> {
  return withChainLock(db, mac, otherMac, async (trx, position) => {
    const expired = withinBounds(await expiredSeals(trx, keepMs, MAX_REMOVED_SEALS));
    const through = expired.at(-1);
    // Seals without rows only record earlier removals. They stay until rows are removed.
    if (through === undefined || expired.every(({ rows }) => rows === 0)) {
      return { rows: 0, more: false, head: position.head, restarted: false };
    }
    const before = await lastRemoval(trx);
    const rows = await deleteSealed(trx, through.seq);
    const sealedAt = await sealingTime(trx);
    const head = await append(trx, mac, {
      kind: 'removal',
      seq: position.next,
      sealedAt,
      previousHash: position.previous,
      through: through.seq,
      throughHash: through.hash,
      rows: rows + (before?.kind === 'removal' ? before.rows : 0),
    });
    await insertAudit(trx, {
      actorType: 'system',
      action: 'audit.remove',
      result: 'success',
      after: { rows, through_seal: through.seq, kept_seconds: keepMs / 1000 },
    });
    if (position.restarted) await auditRestart(trx);
    return { rows, more: true, head, restarted: position.restarted };
  });
}

/** Writes the row that announces that a new chain begins. The new chain has it. */
async function auditRestart(trx: Transaction): Promise<void> {
  await insertAudit(trx, {
    actorType: 'system',
    action: 'audit.chain_broken',
    result: 'failure',
    after: { reason: 'The newest seal was missing or not signed with secret-key. Run postern verify-audit.' },
  });
}

/**
 * Runs `work` under the chain's lock, unless another server holds it.
 * @param otherMac MAC of the other `secret-key`, whose head is valid as well while the installation changes its key
 */
function withChainLock(
  db: Database,
  mac: Mac,
  otherMac: Mac | undefined,
  work: (trx: Transaction, position: ChainPosition) => Promise<SealBatchResult>,
): Promise<SealBatchResult> {
  return transaction(db, async (trx) => {
    if (!(await takeChain(trx, CHAIN_LOCK))) return LOCKED_ELSEWHERE;
    return work(trx, positionAfter(await chainEnd(trx), otherMac === undefined ? [mac] : [mac, otherMac]));
  });
}

async function digestsOf(waiting: readonly WaitingRow[]): Promise<Uint8Array> {
  const digests: Uint8Array[] = [];
  // The same thread also serves requests.
  const pause = pauses();
  for (const { row } of waiting) {
    await pause();
    digests.push(row === undefined ? ZEROS : rowDigest(row));
  }
  return Buffer.concat(digests);
}

interface ChainPosition {
  readonly head: SealedTo | undefined;
  /** Number of the next seal, and hash of the seal before it. */
  readonly next: number;
  readonly previous: Uint8Array;
  readonly restarted: boolean;
}

/**
 * Returns the position of the next seal. It follows the signed head, not the last stored seal: if seals were removed,
 * the gap stays visible. Without a signed head a new chain begins, which stays visible as well.
 */
function positionAfter({ head, lastSeal }: ChainEnd, macs: readonly Mac[]): ChainPosition {
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

/** Returns the first seals, at least one, whose rows one transaction removes without delaying others. */
function withinBounds<T extends { readonly rows: number }>(seals: readonly T[]): readonly T[] {
  let rows = 0;
  const end = seals.findIndex((seal) => {
    rows += seal.rows;
    return rows > MAX_REMOVED_ROWS;
  });
  return end === -1 ? seals : seals.slice(0, Math.max(1, end));
}
