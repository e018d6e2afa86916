/**
 * The canonical text of each audit row and seal, over which seals are computed. It is the same on every version of
 * PostgreSQL and of this program. A change here invalidates every existing chain: a new form needs a new name, and the
 * old one must stay.
 */

import { hash } from 'node:crypto';
import { compareTexts } from '../domain/text.ts';

/** HMAC-SHA-256 under a key that is not in the database. */
export type Mac = (text: string) => Uint8Array;

/** A row of the log with every column as text, without loss of precision. */
export interface ChainRow {
  readonly id: number;
  /** Seconds since the epoch, to the microsecond. */
  readonly time: string;
  readonly actor_type: string;
  readonly actor_id: string | null;
  readonly tenant_id: string | null;
  readonly address: string | null;
  readonly action: string;
  readonly target_type: string | null;
  readonly target_id: string | null;
  readonly result: string;
  /** JSON text as PostgreSQL prints it. */
  readonly before: string | null;
  readonly after: string | null;
  readonly request_id: string | null;
}

interface SealFrame {
  readonly seq: number;
  /** Seconds since the epoch, to the microsecond. */
  readonly sealedAt: string;
  readonly previousHash: Uint8Array;
}

/** Seals rows. `digests` has DIGEST_BYTES for each id, in order. */
export interface RowsSeal extends SealFrame {
  readonly kind: 'rows';
  readonly ids: readonly number[];
  readonly digests: Uint8Array;
}

/** Records that all seals up to `through` were removed, because their retention had ended. */
export interface RemovalSeal extends SealFrame {
  readonly kind: 'removal';
  readonly through: number;
  readonly throughHash: Uint8Array;
  /** Number of rows removed by this and all earlier removals. */
  readonly rows: number;
}

export type UnsignedSeal = RowsSeal | RemovalSeal;
export type Seal = UnsignedSeal & { readonly hash: Uint8Array };

const DIGEST_BYTES = 32;
/** The previous hash of the first seal, and the digest of a row that was removed before it was sealed. */
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
    row.before === null ? null : canonicalizeJsonText(row.before),
    row.after === null ? null : canonicalizeJsonText(row.after),
    row.request_id,
  ];
  return sha256(JSON.stringify(members));
}

/**
 * Returns the seal's hash. Without the key, an attacker with write access to the database cannot create or repair a
 * seal.
 */
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

export function headMac(mac: Mac, seq: number, hash: Uint8Array): Uint8Array {
  return mac(JSON.stringify(['postern audit head 1', seq, hex(hash)]));
}

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
/**
 * Matches numbers that a double may not represent exactly. It may also match text that looks like one, which does no
 * harm.
 */
const ODD_NUMBER = /(?:^|[[:,])\s*-?\d+(?:\d{15}|\.\d|[eE])/;

/**
 * Returns JSON text with sorted members, without whitespace, and with every digit of its numbers. A double would hide a
 * change of a large number, so text that may contain one is parsed with its numbers as strings, marked by a first
 * letter.
 */
export function canonicalizeJsonText(text: string): string {
  if (!ODD_NUMBER.test(text)) return serialize(JSON.parse(text), false);
  const marked = text.replace(TOKEN, (token) => (token.startsWith('"') ? `"s${token.slice(1)}` : `"n${token}"`));
  return serialize(JSON.parse(marked), true);
}

function serialize(value: unknown, marked: boolean): string {
  if (Array.isArray(value)) return `[${value.map((each) => serialize(each, marked)).join(',')}]`;
  if (typeof value === 'string' && marked)
    return value.startsWith('n') ? value.slice(1) : JSON.stringify(value.slice(1));
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value)
    .sort(([left], [right]) => compareTexts(left, right))
    .map(([name, each]) => `${JSON.stringify(marked ? name.slice(1) : name)}:${serialize(each, marked)}`);
  return `{${members.join(',')}}`;
}
