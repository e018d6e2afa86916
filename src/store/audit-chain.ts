/**
 * What the audit log's seals are made over: one canonical text for each row and each seal, the same on every version of PostgreSQL and
 * of this program. A change here breaks every chain there is; a new form would need a new name and the old one beside it.
 */

import { hash } from 'node:crypto';

/** Keyed by something that is not in the database: HMAC-SHA-256 under a key of its own. */
export type Mac = (text: string) => Uint8Array;

/** A row of the log as the chain sees it: every column as text that says exactly what is stored. */
export interface ChainRow {
  readonly id: number;
  /** Seconds since the epoch with all six digits of the microseconds. */
  readonly time: string;
  readonly actor_type: string;
  readonly actor_id: string | null;
  readonly tenant_id: string | null;
  readonly address: string | null;
  readonly action: string;
  readonly target_type: string | null;
  readonly target_id: string | null;
  readonly result: string;
  /** JSON text in whatever layout PostgreSQL gives it. */
  readonly before: string | null;
  readonly after: string | null;
  readonly request_id: string | null;
}

interface SealFrame {
  readonly seq: number;
  /** Seconds since the epoch with six digits. */
  readonly sealedAt: string;
  readonly previousHash: Uint8Array;
}

/** Names rows. `digests` holds DIGEST_BYTES for each id, in their order. */
export interface RowsSeal extends SealFrame {
  readonly kind: 'rows';
  readonly ids: readonly number[];
  readonly digests: Uint8Array;
}

/** Says that everything up to a seal is gone, because it was older than it has to be kept. */
export interface RemovalSeal extends SealFrame {
  readonly kind: 'removal';
  readonly through: number;
  readonly throughHash: Uint8Array;
  /** How many rows have gone so, in this removal and all before. */
  readonly rows: number;
}

export type UnsignedSeal = RowsSeal | RemovalSeal;
export type Seal = UnsignedSeal & { readonly hash: Uint8Array };

export const DIGEST_BYTES = 32;
/** What the first seal has before it, and the digest of a row that was gone before it could be sealed. */
export const ZEROS: Uint8Array = new Uint8Array(DIGEST_BYTES);

/** SHA-256 of the row's canonical text. */
export function rowDigest(row: ChainRow): Uint8Array {
  const members = [
    'postern audit row 1',
    String(row.id),
    row.time,
    row.actor_type,
    row.actor_id,
    row.tenant_id,
    row.address,
    row.action,
    row.target_type,
    row.target_id,
    row.result,
    row.before === null ? null : canonicalJson(row.before),
    row.after === null ? null : canonicalJson(row.after),
    row.request_id,
  ];
  return sha256(JSON.stringify(members));
}

/** The seal's own hash: keyed, so whoever can write the database alone can neither make nor mend one. */
export function sealHash(mac: Mac, seal: UnsignedSeal): Uint8Array {
  const frame = ['postern audit seal 1', seal.kind, seal.seq, seal.sealedAt, hex(seal.previousHash)];
  switch (seal.kind) {
    case 'rows':
      return mac(JSON.stringify([...frame, seal.ids, hex(sha256(seal.digests))]));
    case 'removal':
      return mac(JSON.stringify([...frame, seal.through, hex(seal.throughHash), seal.rows]));
    default:
      return seal satisfies never;
  }
}

/** Signs which seal is the newest. */
export function headMac(mac: Mac, seq: number, hash: Uint8Array): Uint8Array {
  return mac(JSON.stringify(['postern audit head 1', seq, hex(hash)]));
}

/** The part of a seal's digests that belongs to the row at an index. */
export function digestAt(digests: Uint8Array, index: number): Uint8Array {
  return digests.subarray(index * DIGEST_BYTES, (index + 1) * DIGEST_BYTES);
}

export function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

export function sameBytes(left: Uint8Array, right: Uint8Array): boolean {
  return Buffer.compare(left, right) === 0;
}

function sha256(content: string | Uint8Array): Uint8Array {
  return hash('sha256', content, 'buffer');
}

const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
/** Numbers that a double may not give back digit by digit; at times a text that looks like one, which does no harm. */
const ODD_NUMBER = /(?:^|[[:,])\s*-?\d+(?:\d{15}|\.\d|[eE])/;

/**
 * Members sorted by name, no layout, and every digit of a number: read as a double, a large one could be changed unseen. So where there
 * may be such a number, all numbers are read as texts, told from other texts by a first letter.
 */
export function canonicalJson(text: string): string {
  if (!ODD_NUMBER.test(text)) return written(JSON.parse(text), false);
  const marked = text.replace(TOKEN, (token) => (token.startsWith('"') ? `"s${token.slice(1)}` : `"n${token}"`));
  return written(JSON.parse(marked), true);
}

function written(value: unknown, marked: boolean): string {
  if (Array.isArray(value)) return `[${value.map((each) => written(each, marked)).join(',')}]`;
  if (typeof value === 'string' && marked)
    return value.startsWith('n') ? value.slice(1) : JSON.stringify(value.slice(1));
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value)
    .sort(byName)
    .map(([name, each]) => `${JSON.stringify(marked ? name.slice(1) : name)}:${written(each, marked)}`);
  return `{${members.join(',')}}`;
}

function byName([left]: readonly [string, unknown], [right]: readonly [string, unknown]): number {
  return left < right ? -1 : left > right ? 1 : 0;
}
