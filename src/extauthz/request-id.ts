/**
 * Creates request ids at the rate of checks. They are the ids of `makeId('req', …)`, and the part that depends on the
 * clock is written once per millisecond.
 */

import { makeId, type RequestId } from '../domain/ids.ts';
import type { RandomPool } from './random-pool.ts';

const RANDOM_BYTES = 10;
/** The length of `req_` and 48 bits of time. */
const PREFIX_LENGTH = 14;
const IDS_PER_DRAW = 64;
const NO_RANDOM = new Uint8Array(RANDOM_BYTES);
const DIGITS = Buffer.from('0123456789abcdefghjkmnpqrstvwxyz');

export function createRequestIds(pool: RandomPool): (nowMs: number) => RequestId {
  let prefixMs = Number.NaN;
  const id = Buffer.from(makeId('req', 0, NO_RANDOM));
  let random: Uint8Array = NO_RANDOM;
  let used = random.length;
  return (nowMs) => {
    if (nowMs !== prefixMs) {
      id.write(makeId('req', nowMs, NO_RANDOM));
      prefixMs = nowMs;
    }
    if (used === random.length) {
      random = pool.take(IDS_PER_DRAW * RANDOM_BYTES);
      used = 0;
    }
    putFiveBytes(id, PREFIX_LENGTH, random, used);
    putFiveBytes(id, PREFIX_LENGTH + 8, random, used + 5);
    used += RANDOM_BYTES;
    return id.toString('latin1') as RequestId;
  };
}

/** Writes 40 bits as eight digits of base 32, the highest first. */
function putFiveBytes(id: Buffer, place: number, random: Uint8Array, at: number): void {
  const [a, b, c, d, e] = [
    random[at] ?? 0,
    random[at + 1] ?? 0,
    random[at + 2] ?? 0,
    random[at + 3] ?? 0,
    random[at + 4] ?? 0,
  ];
  let high = (a << 12) | (b << 4) | (c >> 4);
  let low = ((c & 15) << 16) | (d << 8) | e;
  for (let i = 3; i >= 0; i--) {
    id[place + i] = DIGITS[high & 31] ?? 0;
    id[place + 4 + i] = DIGITS[low & 31] ?? 0;
    high >>= 5;
    low >>= 5;
  }
}
