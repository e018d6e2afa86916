/**
 * Reservation ids. A check's answer carries one, and the report of the request's end returns it, to any process.
 *
 * The first 32 hexadecimal digits are one AES block: the process that issued it, the minute, and a number that the
 * process never issues twice. Without the key, it is infeasible to create an id whose process exists. The other 20
 * digits are not encrypted: the tokens that the request may spend, the kind of its end, and the offset of the tenant's
 * clock. A process that never saw the request therefore books it by the same rules and into the same month.
 *
 * One call of the cipher makes 1024 blocks.
 */

import { createCipheriv, createDecipheriv, createHash } from 'node:crypto';
import type { ReservedTokens } from './admission.ts';

export const RESERVATION_KEY_BYTES = 16;

/**
 * The effect of the request's end. `budget`, `reports-usage-held`: the issuer holds amounts for the request, which would
 * be `usage` or `reports-usage` otherwise.
 */
export type ReservationKind = (typeof KINDS)[number];

/** In the order of their numbers in ids. */
const KINDS = [
  'usage',
  'budget',
  'adds-collection',
  'removes-collection',
  'reads-response',
  'reports-usage',
  'reports-usage-held',
] as const;

export interface Reservation {
  readonly processId: string;
  readonly counter: number;
  /** The minute of issue, in minutes since the epoch. */
  readonly minute: number;
  readonly kind: ReservationKind;
  /** Minutes that the tenant's clock was ahead of UTC at the check. */
  readonly offset: number;
  /** The prompt's estimate, at most the largest number that fits. */
  readonly prompt: number;
  /** The answer's bound, at most the largest number that fits; for a removal, the digest of the collection's name. */
  readonly answer: number;
}

interface IssuedId {
  readonly id: string;
  readonly counter: number;
}

const ALGORITHM = 'aes-128-ecb';
const BLOCK_BYTES = 16;
const BLOCK_DIGITS = 2 * BLOCK_BYTES;
const POOL = 1024;
/** Minutes are counted from 2020, in 3 bytes: enough for 31 years. */
const FIRST_MINUTE = Date.UTC(2020, 0, 1) / 60_000;
const OFFSET_BIAS = 0x8000;
const MAX_ANSWER_TOKENS = 0xffff_ffff;
export const MAX_PROMPT_TOKENS = 0xff_ffff;
const ANSWER_DIGITS = 8;
const PROMPT_DIGITS = 6;

const PROCESS_ID = /^[0-9a-f]{16}$/;
const ID = /^[0-9a-f]{52}$/;

/** @param random 8 secure random bytes, so that no two processes of an installation have the same id */
export function processIdOf(random: Uint8Array): string {
  return Buffer.from(random.subarray(0, 8)).toString('hex');
}

export class ReservationIds {
  readonly #key: Uint8Array;
  readonly #processId: Buffer;
  /** In this mode, and without padding, each block is decrypted by itself, so one object reads all ids. */
  readonly #decipher: ReturnType<typeof createDecipheriv>;
  #digits = '';
  #used = POOL;
  #minute = -1;
  /** The number of the pool's first id. */
  #first = 0;
  #head = '';
  #headKind: ReservationKind | undefined;
  #headOffset = 0;

  /** @param processId 16 hexadecimal digits, see `processIdOf` */
  constructor(key: Uint8Array, processId: string) {
    if (key.length !== RESERVATION_KEY_BYTES) throw new RangeError(`a key must have ${RESERVATION_KEY_BYTES} bytes`);
    if (!PROCESS_ID.test(processId)) throw new RangeError('a process id has 16 hexadecimal digits');
    this.#key = key;
    this.#processId = Buffer.from(processId, 'hex');
    this.#decipher = createDecipheriv(ALGORITHM, key, null).setAutoPadding(false);
  }

  issue(minute: number, kind: ReservationKind, offset: number, reserved: ReservedTokens): IssuedId {
    if (this.#used >= POOL || minute !== this.#minute) this.#fill(minute);
    const at = this.#used++;
    const start = at * BLOCK_DIGITS;
    const answer = digitsOf(reserved.answer, MAX_ANSWER_TOKENS, ANSWER_DIGITS);
    const prompt = digitsOf(reserved.prompt, MAX_PROMPT_TOKENS, PROMPT_DIGITS);
    const id = this.#digits.slice(start, start + BLOCK_DIGITS) + this.#headOf(kind, offset) + answer + prompt;
    return { id, counter: this.#first + at };
  }

  /** Returns undefined if the text is not an id. Only the store knows whether the process exists. */
  read(id: string): Reservation | undefined {
    if (!ID.test(id)) return undefined;
    const bytes = Buffer.from(id, 'hex');
    const kind = KINDS[bytes.readUInt8(BLOCK_BYTES)];
    if (kind === undefined) return undefined;
    const plain = this.#decipher.update(bytes.subarray(0, BLOCK_BYTES));
    return {
      processId: plain.toString('hex', 0, 8),
      minute: FIRST_MINUTE + plain.readUIntBE(8, 3),
      counter: plain.readUIntBE(11, 5),
      kind,
      offset: bytes.readUInt16BE(BLOCK_BYTES + 1) - OFFSET_BIAS,
      answer: bytes.readUInt32BE(BLOCK_BYTES + 3),
      prompt: bytes.readUIntBE(BLOCK_BYTES + 7, PROMPT_DIGITS / 2),
    };
  }

  #fill(minute: number): void {
    // The rest of the previous pool is never issued, so that an id always has the minute of its issue.
    this.#first += this.#minute === -1 ? 0 : this.#used;
    this.#minute = minute;
    this.#used = 0;
    const plain = Buffer.alloc(POOL * BLOCK_BYTES);
    for (let i = 0; i < POOL; i++) {
      const at = i * BLOCK_BYTES;
      this.#processId.copy(plain, at);
      plain.writeUIntBE(minute - FIRST_MINUTE, at + 8, 3);
      plain.writeUIntBE(this.#first + i, at + 11, 5);
    }
    const cipher = createCipheriv(ALGORITHM, this.#key, null).setAutoPadding(false);
    this.#digits = Buffer.concat([cipher.update(plain), cipher.final()]).toString('hex');
  }

  /** Caches the last head, because most requests have the same one. */
  #headOf(kind: ReservationKind, offset: number): string {
    if (kind === this.#headKind && offset === this.#headOffset) return this.#head;
    const bytes = Buffer.alloc(3);
    bytes.writeUInt8(KINDS.indexOf(kind), 0);
    bytes.writeUInt16BE(offset + OFFSET_BIAS, 1);
    this.#headKind = kind;
    this.#headOffset = offset;
    this.#head = bytes.toString('hex');
    return this.#head;
  }
}

/**
 * Returns 32 bits of the SHA-256 of a collection's name, never 0, by which the store recognizes a name without keeping
 * it. If two removed names of one tenant have the same digest, they count as one removal: the count may then be one too
 * high, never too low.
 */
export function collectionDigest(name: string): number {
  return createHash('sha256').update(name).digest().readUInt32BE(0) || 1;
}

function digitsOf(tokens: number, max: number, digits: number): string {
  return Math.min(tokens, max).toString(16).padStart(digits, '0');
}

/** Reports whether the issuer holds amounts for the request. */
export function isHeld(kind: ReservationKind): boolean {
  return kind === 'budget' || kind === 'reports-usage-held';
}
