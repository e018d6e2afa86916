/** Creates texts that repeat (paths, tenants, addresses, media types) once, and finds them by their bytes. */

import { readText } from './wire-read.ts';

interface Entry {
  readonly bytes: Uint8Array;
  readonly text: string;
}

const MAX_BYTES = 64;
/** A power of two. */
const ENTRIES = 1024;

/**
 * One entry for each hash. A new text replaces the one before, so the table is bounded, and a flood of new texts costs
 * no more than decoding them.
 */
const table: (Entry | undefined)[] = new Array<Entry | undefined>(ENTRIES).fill(undefined);

/** Returns the text of `bytes[start, end)`, as `readText` reads it. Not for secrets: the table keeps its texts. */
export function intern(bytes: Buffer, start: number, end: number): string {
  const length = end - start;
  if (length > MAX_BYTES) return readText(bytes, start, end);
  let hash = length;
  for (let i = start; i < end; i++) hash = (Math.imul(hash, 31) + (bytes[i] ?? 0)) | 0;
  const place = (hash ^ (hash >>> 15)) & (ENTRIES - 1);
  const entry = table[place];
  if (entry !== undefined && isSame(entry.bytes, bytes, start, length)) return entry.text;
  const text = readText(bytes, start, end);
  table[place] = { bytes: Uint8Array.prototype.slice.call(bytes, start, end), text };
  return text;
}

function isSame(known: Uint8Array, bytes: Buffer, start: number, length: number): boolean {
  if (known.length !== length) return false;
  for (let i = 0; i < length; i++) if (known[i] !== bytes[start + i]) return false;
  return true;
}
