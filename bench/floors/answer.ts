/** The answer of every floor. */

/** An empty google.rpc.Status: code 0. */
const STATUS = Buffer.from([0x0a, 0x00]);
/** A field of CheckResponse that this version does not know (15, length-delimited): it only makes the answer longer. */
const FILLER_TAG = 0x7a;
const FILLER_HEAD_BYTES = 3;

/** Returns a CheckResponse with code 0. @param bytes 2, or from 133 to 16,388 */
export function fixedAllow(bytes: number): Buffer {
  const filler = bytes - STATUS.length - FILLER_HEAD_BYTES;
  if (filler < 128) return STATUS;
  const head = Buffer.from([FILLER_TAG, (filler & 127) | 128, filler >> 7]);
  return Buffer.concat([STATUS, head, Buffer.alloc(filler)]);
}
