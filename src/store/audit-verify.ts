/**
 * Verifies the audit log against its seals: every sealed row exists unchanged, no seal is missing or forged, and there
 * is no row that Postern did not write. It reads one snapshot in pages, so it can run beside servers and needs little
 * memory.
 */

import {
  digestAt,
  headMac,
  hex,
  type Mac,
  type RowsSeal,
  rowDigest,
  type Seal,
  sameBytes,
  sealHash,
  type UnsignedSeal,
  ZEROS,
} from './audit-chain.ts';
import { chainEnd, lastRemoval, rowsToCheck, sealsAfter, waitingState } from './audit-seal-queries.ts';
import { type Break, unnamedRow } from './audit-unnamed.ts';
import type { Database } from './database.ts';
import type { Queryable } from './queryable.ts';

/** A seal whose hash was kept outside of the database. The chain must contain it. */
export interface Anchor {
  readonly seq: number;
  /** 64 hexadecimal digits. */
  readonly hash: string;
}

/** Valid MACs of seals, besides that of `secret-key`. */
interface FormerKeys {
  /** MAC of the other `secret-key`, while the installation changes its key. */
  readonly other?: Mac | undefined;
  readonly retired: readonly RetiredMac[];
}

/**
 * MAC of a former `secret-key`, valid for seals up to `through` if that seal has this hash: the former key can forge
 * nothing.
 */
export interface RetiredMac {
  readonly mac: Mac;
  readonly through: number;
  readonly hash: Uint8Array;
}

const NO_FORMER_KEYS: FormerKeys = { retired: [] };

export interface Verification {
  /** The first damage in the order of the chain; rows without a seal come last. Undefined = none. */
  readonly broken: Break | undefined;
  /** Number of sealed rows that were changed or removed. */
  readonly damaged: number;
  /** Number of unchanged sealed rows. */
  readonly rows: number;
  readonly seals: number;
  /** Number of rows that were removed because their retention had ended. */
  readonly removed: number;
  /** Number of rows that wait for a seal. */
  readonly unsealed: number;
  /**
   * Rows that were sealed long after they were written: no server ran in that time, or an attacker had them sealed
   * again.
   */
  readonly late: { readonly rows: number; readonly first: number | undefined };
  readonly newest: { readonly seq: number; readonly hash: string } | undefined;
}

const QUERY_TIMEOUT_MS = 600_000;
const SEALS_PAGE = 200;
const LATE_SECONDS = 3600;
/** Rows read by one statement, so that small seals share statements. */
const GROUP_ROWS = 500;
const GONE = 'it was removed before it could be sealed';

/** Rejects with a Fault if the database does not answer. */
export async function verifyAudit(
  db: Database,
  mac: Mac,
  anchor?: Anchor,
  former = NO_FORMER_KEYS,
): Promise<Verification> {
  const reading = db.reopen({ poolMax: 1, queryTimeoutMs: QUERY_TIMEOUT_MS });
  try {
    return await reading.knex.transaction((trx) => verifyWithin(trx, mac, anchor, former), {
      isolationLevel: 'repeatable read',
      readOnly: true,
    });
  } finally {
    await reading.close();
  }
}

/** Like `verifyAudit`, in a transaction with one snapshot (repeatable read). */
export async function verifyWithin(
  trx: Queryable,
  mac: Mac,
  anchor?: Anchor,
  former = NO_FORMER_KEYS,
): Promise<Verification> {
  const walk = new Walk(trx, mac, anchor, former);
  const waiting = await waitingState(trx);
  const broken =
    (await walk.toTheEnd()) ??
    (waiting.gone === undefined ? undefined : { row: waiting.gone, what: GONE }) ??
    (await unnamedRow(trx, walk.start));
  return { broken, unsealed: waiting.count, ...walk.counts() };
}

interface FoundRow {
  readonly digest: Uint8Array;
  /** Seconds since the epoch. */
  readonly time: number;
}

/** One walk along the chain. */
class Walk {
  readonly #trx: Queryable;
  readonly #mac: Mac;
  readonly #anchor: Anchor | undefined;
  readonly #former: FormerKeys;
  #rows = 0;
  #seals = 0;
  #removed = 0;
  #damaged = 0;
  #broken: Break | undefined;
  #late: { rows: number; first: number | undefined } = { rows: 0, first: undefined };
  #seq = 0;
  #hash = ZEROS;
  #anchored = false;
  #start = 0;

  constructor(trx: Queryable, mac: Mac, anchor: Anchor | undefined, former: FormerKeys) {
    this.#trx = trx;
    this.#mac = mac;
    this.#anchor = anchor;
    this.#former = former;
  }

  /** The seal before the first verified one. Seals up to it are not verified. */
  get start(): number {
    return this.#start;
  }

  counts(): Pick<Verification, 'rows' | 'damaged' | 'seals' | 'removed' | 'late' | 'newest'> {
    return {
      rows: this.#rows,
      damaged: this.#damaged,
      seals: this.#seals,
      removed: this.#removed,
      late: this.#late,
      newest: this.#seq === 0 ? undefined : { seq: this.#seq, hash: hex(this.#hash) },
    };
  }

  /** Damage to the chain itself ends the walk. A damaged row does not, so that the walk finds other damaged rows. */
  async toTheEnd(): Promise<Break | undefined> {
    const cut = await this.#toTheCut();
    return this.#broken ?? cut;
  }

  async #toTheCut(): Promise<Break | undefined> {
    const lost = await this.#begin();
    if (lost !== undefined) return lost;
    for (;;) {
      const seals = await sealsAfter(this.#trx, this.#seq, SEALS_PAGE);
      if (seals.length === 0) break;
      for (const group of grouped(seals)) {
        const cut = await this.#follow(group);
        if (cut !== undefined) return cut;
      }
    }
    return (await this.#atHead()) ?? this.#atAnchor();
  }

  /** After a removal the chain begins with the seal after the last removed one. */
  async #begin(): Promise<Break | undefined> {
    const removal = await lastRemoval(this.#trx);
    if (removal?.kind !== 'removal') return undefined;
    if (!this.#isSealed(removal)) {
      return {
        row: undefined,
        what: `seal ${removal.seq}, which records a removal, was changed or was created without secret-key`,
      };
    }
    this.#start = removal.through;
    this.#removed = removal.rows;
    this.#seq = removal.through;
    this.#hash = removal.throughHash;
    this.#meet(removal.through, removal.throughHash);
    return undefined;
  }

  async #follow(group: readonly Seal[]): Promise<Break | undefined> {
    const found = await this.#find(group.flatMap((seal) => (seal.kind === 'rows' ? seal.ids : [])));
    for (const seal of group) {
      const cut = this.#link(seal);
      if (cut !== undefined) return cut;
      if (seal.kind === 'rows') this.#content(seal, found);
      this.#seals++;
      this.#seq = seal.seq;
      this.#hash = seal.hash;
      this.#meet(seal.seq, seal.hash);
    }
    return undefined;
  }

  #isSealed(seal: Seal): boolean {
    const { other, retired } = this.#former;
    const macs = [this.#mac, other, ...retired.map(({ mac, through }) => (seal.seq <= through ? mac : undefined))];
    return macs.some((mac) => mac !== undefined && sameBytes(seal.hash, sealHash(mac, unsigned(seal))));
  }

  #link(seal: Seal): Break | undefined {
    const row = seal.kind === 'rows' ? seal.ids[0] : undefined;
    const name = `seal ${seal.seq}${row === undefined ? '' : ', which names it,'}`;
    const expected = this.#seq + 1;
    if (seal.seq !== expected) return { row, what: `before ${name} ${missing(expected, seal.seq - 1)}` };
    if (!this.#isSealed(seal)) return { row, what: `${name} was changed or was created without secret-key` };
    if (!sameBytes(seal.previousHash, this.#hash)) {
      return { row, what: `${name} does not follow seal ${this.#seq}: the chain was cut there` };
    }
    const retired = this.#former.retired.find(({ through }) => through === seal.seq);
    if (retired !== undefined && !sameBytes(retired.hash, seal.hash)) {
      return { row, what: `${name} is not the newest seal before secret-key was changed` };
    }
    return undefined;
  }

  #content(seal: RowsSeal, found: ReadonlyMap<number, FoundRow>): void {
    for (const [index, id] of seal.ids.entries()) {
      const row = found.get(id);
      const what = damage(digestAt(seal.digests, index), row?.digest);
      if (what !== undefined) {
        this.#damaged++;
        this.#broken ??= { row: id, what: `${what} (seal ${seal.seq})` };
        continue;
      }
      this.#rows++;
      if (row !== undefined && Number(seal.sealedAt) - row.time > LATE_SECONDS) this.#noteLate(id);
    }
  }

  #noteLate(id: number): void {
    this.#late = { rows: this.#late.rows + 1, first: this.#late.first ?? id };
  }

  async #find(ids: readonly number[]): Promise<ReadonlyMap<number, FoundRow>> {
    const found = new Map<number, FoundRow>();
    const last = Math.max(...ids);
    for (let after = Math.min(...ids) - 1; after < last; ) {
      const rows = await rowsToCheck(this.#trx, ids, after);
      for (const row of rows) found.set(row.id, { digest: rowDigest(row), time: Number(row.time) });
      after = rows.at(-1)?.id ?? last;
    }
    return found;
  }

  async #atHead(): Promise<Break | undefined> {
    const { head } = await chainEnd(this.#trx);
    if (head === undefined) {
      return this.#seq === 0 ? undefined : { row: undefined, what: 'the record of the newest seal was removed' };
    }
    if (![this.#mac, this.#former.other].some((mac) => mac && sameBytes(head.mac, headMac(mac, head.seq, head.hash)))) {
      return { row: undefined, what: 'the record of the newest seal was changed or was created without secret-key' };
    }
    if (head.seq > this.#seq)
      return { row: undefined, what: `${missing(this.#seq + 1, head.seq)} at the end of the chain` };
    if (head.seq < this.#seq || !sameBytes(head.hash, this.#hash)) {
      return {
        row: undefined,
        what: `the record of the newest seal names seal ${head.seq}, but the chain ends with seal ${this.#seq}`,
      };
    }
    return undefined;
  }

  #meet(seq: number, hash: Uint8Array): void {
    if (this.#anchor?.seq === seq && this.#anchor.hash === hex(hash)) this.#anchored = true;
  }

  #atAnchor(): Break | undefined {
    if (this.#anchor === undefined || this.#anchored) return undefined;
    return { row: undefined, what: `the chain does not pass through the seal ${this.#anchor.seq} that was given` };
  }
}

function damage(sealed: Uint8Array, found: Uint8Array | undefined): string | undefined {
  if (sameBytes(sealed, ZEROS)) return GONE;
  if (found === undefined) return 'it was removed after it was sealed';
  return sameBytes(sealed, found) ? undefined : 'it was changed after it was sealed';
}

function unsigned({ hash: _hash, ...seal }: Seal): UnsignedSeal {
  return seal;
}

function missing(from: number, to: number): string {
  return from === to ? `seal ${from} is missing` : `seals ${from} to ${to} are missing`;
}

/** Groups seals until a group has at least GROUP_ROWS rows. */
function* grouped(seals: readonly Seal[]): Generator<readonly Seal[]> {
  let group: Seal[] = [];
  let rows = 0;
  for (const seal of seals) {
    group.push(seal);
    rows += seal.kind === 'rows' ? seal.ids.length : 0;
    if (rows < GROUP_ROWS) continue;
    yield group;
    group = [];
    rows = 0;
  }
  if (group.length > 0) yield group;
}
