/** Resource names that many bodies contain, built and validated once and found by their bytes. */

import { type JsonText, textOf } from './json-bytes.ts';

interface Entry {
  readonly bytes: Uint8Array;
  readonly name: string;
}

const MAX_BYTES = 64;
/** A power of two. */
const ENTRIES = 512;

/** One entry for each hash. A new name replaces the entry, so the table is bounded. */
const table: (Entry | undefined)[] = new Array<Entry | undefined>(ENTRIES).fill(undefined);

function isSame(known: Uint8Array, bytes: Uint8Array, start: number, length: number): boolean {
  if (known.length !== length) return false;
  for (let i = 0; i < length; i++) if (known[i] !== bytes[start + i]) return false;
  return true;
}

/**
 * Returns the name between the quotes of a validated string.
 * @param isName reports whether a text may be a name; called once for the same bytes
 * @returns undefined if the text is not a name
 */
export function nameAt(
  text: JsonText,
  start: number,
  end: number,
  isName: (name: string) => boolean,
): string | undefined {
  const { bytes } = text;
  const length = end - start;
  if (length > MAX_BYTES) return checked(textOf(text, start, end), isName);
  let hash = length;
  for (let i = start; i < end; i++) hash = (Math.imul(hash, 31) + (bytes[i] ?? 0)) | 0;
  const place = (hash ^ (hash >>> 15)) & (ENTRIES - 1);
  const entry = table[place];
  if (entry !== undefined && isSame(entry.bytes, bytes, start, length)) return entry.name;
  const name = checked(textOf(text, start, end), isName);
  if (name !== undefined) table[place] = { bytes: Uint8Array.prototype.slice.call(bytes, start, end), name };
  return name;
}

function checked(name: string, isName: (name: string) => boolean): string | undefined {
  return isName(name) ? name : undefined;
}
