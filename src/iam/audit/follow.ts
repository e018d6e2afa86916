/**
 * Reads the audit log after a cursor, in the order of its seals. A row is sealed after its transaction has committed,
 * so no row is missed. An order by time or id could miss a row that is committed late.
 */

import { Fault } from '../../domain/errors.ts';
import { hex, type Seal } from '../../store/audit-chain.ts';
import { chainState, lastRemoval, sealsAfter } from '../../store/audit-seal-queries.ts';
import type { Queryable } from '../../store/queryable.ts';
import { type AuditCursor, auditRows } from './queries.ts';
import { auditResource } from './read.ts';
import type { AuditResource } from './schemas.ts';

export interface FollowedRow {
  readonly row: AuditResource;
  /** The position after this row. */
  readonly cursor: AuditCursor;
}

interface FollowPage {
  readonly rows: readonly FollowedRow[];
  /** The position after this page. */
  readonly next: AuditCursor;
  /** True if further rows are sealed. */
  readonly more: boolean;
  /** Seals after the cursor that were removed because of their age (audit.retention) before they were delivered. */
  readonly lost: number;
}

/** The database does not have the seal of the cursor. The message has the next step. */
export class UnknownCursorError extends Error {
  override readonly name = 'UnknownCursorError';
}

export const FIRST_CURSOR: AuditCursor = { seal: 0, row: 0, hash: '' };

const HASH_DIGITS = 16;
/** Seals and rows of one page: a seal has up to 500 rows. */
const MAX_SEALS = 20;
const MAX_ROWS = 500;
/** The bound on the stored bytes of one page. One row may exceed it. */
const MAX_BYTES = 512 * 1024;

/** Returns the text of a cursor: `seal:row:hash`. */
export function formatCursor({ seal, row, hash }: AuditCursor): string {
  return `${seal}:${row}:${hash}`;
}

export function parseCursor(text: string): AuditCursor | undefined {
  const [, seal, row, hash] = /^(\d{1,15}):(\d{1,15}):([0-9a-f]{16}|)$/.exec(text) ?? [];
  if (seal === undefined || row === undefined || hash === undefined) return undefined;
  const cursor = { seal: Number(seal), row: Number(row), hash };
  return (cursor.seal === 0) === (hash === '') ? cursor : undefined;
}

/** Returns the position after all sealed rows. */
export async function newestCursor(q: Queryable): Promise<AuditCursor> {
  const { newest } = await chainState(q, 0);
  if (newest === undefined) return FIRST_CURSOR;
  const [seal] = await sealsAfter(q, newest.seq - 1, 1);
  if (seal === undefined) throw new Fault('the newest seal was removed while it was read');
  return endOf(seal);
}

/**
 * Returns the rows after a cursor: those of the next seals, bounded in number and bytes.
 * @throws UnknownCursorError if the cursor is not of this database's chain
 */
export async function followAudit(q: Queryable, from: AuditCursor): Promise<FollowPage> {
  const seals = await sealsAfter(q, Math.max(0, from.seal - 1), MAX_SEALS);
  const lost = await removedAfter(q, from, seals[0]);
  const wanted: { readonly id: number; readonly seal: Seal }[] = [];
  let next = from;
  let taken = 0;
  for (const seal of seals) {
    if (wanted.length >= MAX_ROWS) break;
    const delivered = seal.seq === from.seal ? from.row : 0;
    for (const id of idsOf(seal)) if (id > delivered) wanted.push({ id, seal });
    next = seal.seq === from.seal ? { ...endOf(seal), row: Math.max(from.row, endOf(seal).row) } : endOf(seal);
    taken++;
  }
  const more = taken < seals.length || seals.length === MAX_SEALS;
  if (wanted.length === 0) return { rows: [], next, more, lost };
  const found = await auditRows(
    q,
    wanted.map(({ id }) => id),
    MAX_BYTES,
  );
  const sealOf = new Map(wanted.map(({ id, seal }) => [id, seal]));
  const rows = found.rows.flatMap((row): FollowedRow[] => {
    const seal = sealOf.get(row.id);
    return seal === undefined ? [] : [{ row: auditResource(row), cursor: { ...endOf(seal), row: row.id } }];
  });
  const last = rows.at(-1)?.cursor;
  return found.more && last !== undefined ? { rows, next: last, more: true, lost } : { rows, next, more, lost };
}

/**
 * Checks that the cursor's seal exists, or that a removal of the chain covers it.
 * @returns the number of removed seals after it
 */
async function removedAfter(q: Queryable, from: AuditCursor, first: Seal | undefined): Promise<number> {
  if (from.seal === 0) return 0;
  if (first?.seq === from.seal) {
    if (digitsOf(first) === from.hash) return 0;
    throw unknownCursor(from, 'has another seal of that number');
  }
  const removal = await lastRemoval(q);
  if (removal?.kind === 'removal' && removal.through >= from.seal) return removal.through - from.seal;
  throw unknownCursor(from, 'has no such seal');
}

function unknownCursor({ seal }: AuditCursor, what: string): UnknownCursorError {
  return new UnknownCursorError(
    `The cursor names seal ${seal}, and this database ${what}: it was restored from a backup, or is another one. Compare what was delivered with postern verify-audit; then begin with a new cursor file.`,
  );
}

function endOf(seal: Seal): AuditCursor {
  return { seal: seal.seq, row: idsOf(seal).at(-1) ?? 0, hash: digitsOf(seal) };
}

/** In ascending order, as the sealer writes them. */
function idsOf(seal: Seal): readonly number[] {
  return seal.kind === 'rows' ? seal.ids : [];
}

function digitsOf({ hash }: Seal): string {
  return hex(hash).slice(0, HASH_DIGITS);
}
