/**
 * Caches the targets of header blocks by their bytes. A block depends on no earlier one, because the table's size is 0,
 * and the blocks of one Envoy repeat byte for byte.
 *
 * The memo has a fixed number of slots, and the bytes select the slot. An entry that was used since the last miss of
 * its slot stays, so that blocks which never repeat (with a trace id, for example) do not displace those that do. A
 * peer that makes blocks collide pays with the decoding of its own blocks.
 */

const SLOTS = 256;
/** A longer block is decoded each time. */
const MAX_BYTES = 512;

interface Slot<T> {
  readonly bytes: Buffer;
  length: number;
  value: T;
  wasUsed: boolean;
}

export class HeaderMemo<T> {
  readonly #slots: (Slot<T> | undefined)[] = Array.from({ length: SLOTS });

  find(bytes: Buffer, start: number, end: number): T | undefined {
    const length = end - start;
    const slot = this.#slots[slotOf(bytes, start, length)];
    if (slot === undefined || slot.length !== length) return undefined;
    const kept = slot.bytes;
    for (let i = 0; i < length; i++) if (kept[i] !== bytes[start + i]) return undefined;
    slot.wasUsed = true;
    return slot.value;
  }

  /** Called after a miss. */
  keep(bytes: Buffer, start: number, end: number, value: T): void {
    const length = end - start;
    if (length > MAX_BYTES) return;
    const number = slotOf(bytes, start, length);
    const slot = this.#slots[number];
    if (slot === undefined) {
      const kept = Buffer.alloc(MAX_BYTES);
      bytes.copy(kept, 0, start, end);
      this.#slots[number] = { bytes: kept, length, value, wasUsed: false };
    } else if (slot.wasUsed) {
      slot.wasUsed = false;
    } else {
      bytes.copy(slot.bytes, 0, start, end);
      slot.length = length;
      slot.value = value;
    }
  }
}

/** Hashes the length and eight bytes from the whole block, which distinguishes the few blocks that repeat. */
function slotOf(bytes: Buffer, start: number, length: number): number {
  let hash = length;
  const step = (length >> 3) + 1;
  for (let at = start + length - 1; at >= start; at -= step) hash = (Math.imul(hash, 31) + (bytes[at] ?? 0)) | 0;
  return (hash ^ (hash >>> 8) ^ (hash >>> 16)) & (SLOTS - 1);
}
