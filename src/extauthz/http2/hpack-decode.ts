/** Decodes header blocks (RFC 7541, sections 3, 5 and 6). */

import { MAX_BLOCK_BYTES, MAX_HEADER_FIELDS, MAX_HEADER_LIST_BYTES } from './bounds.ts';
import { DynamicTable, sizeOf } from './dynamic-table.ts';
import { decodeHuffman, MAX_GROWTH } from './huffman.ts';
import { STATIC_TABLE } from './static-table.ts';

/**
 * The results of decoding:
 * - `fields`: `decoder.fields` has the header list;
 * - `too-large`: the list exceeds the bound, and the connection can continue;
 * - `broken`: the block is invalid, and no later one can be decoded (section 2.2).
 */
type Decoded = 'fields' | 'too-large' | 'broken';

/** Numbers in header blocks are lengths and indexes, so none of them needs more bits. */
const MAX_INTEGER = 2 ** 24;

/** The buffer of decoded texts. They are copied at once, so every connection shares it. */
const scratch = Buffer.alloc(Math.ceil(MAX_BLOCK_BYTES * MAX_GROWTH));

/** The decoder of one connection. */
export class HeaderDecoder {
  readonly table = new DynamicTable();
  /** Names and values in turn, as Latin-1, of the block that was decoded last. */
  readonly fields: string[] = [];
  #bytes: Buffer = scratch;
  #at = 0;
  #end = 0;
  #listBytes = 0;

  /** @param end at most 64 KiB after `start` */
  decode(bytes: Buffer, start: number, end: number): Decoded {
    this.fields.length = 0;
    this.#bytes = bytes;
    this.#at = start;
    this.#end = end;
    this.#listBytes = 0;
    let mayResize = true;
    let isWhole = true;
    while (isWhole && this.#at < end) {
      const first = bytes[this.#at] ?? 0;
      // Section 4.2: only at the beginning of a block.
      if ((first & 0xe0) === 0x20) isWhole = mayResize && this.#resize();
      else {
        mayResize = false;
        isWhole = first >= 0x80 ? this.#indexed() : this.#literal(first);
      }
    }
    this.#bytes = scratch;
    if (!isWhole) return 'broken';
    return this.#listBytes > MAX_HEADER_LIST_BYTES || this.fields.length > 2 * MAX_HEADER_FIELDS
      ? 'too-large'
      : 'fields';
  }

  /** Section 6.3 */
  #resize(): boolean {
    const size = this.#integer(5);
    return size >= 0 && this.table.resize(size);
  }

  /** Section 6.1 */
  #indexed(): boolean {
    const index = this.#integer(7);
    const name = this.#nameAt(index);
    if (name === undefined) return false;
    const entry =
      index <= STATIC_TABLE.length ? STATIC_TABLE[index - 1] : this.table.at(index - STATIC_TABLE.length - 1);
    this.#take(name, entry?.[1] ?? '');
    return true;
  }

  /** Section 6.2: with incremental indexing, without it, or never indexed. */
  #literal(first: number): boolean {
    const isIndexed = first >= 0x40;
    const index = this.#integer(isIndexed ? 6 : 4);
    if (index < 0) return false;
    const name = index === 0 ? this.#text() : this.#nameAt(index);
    if (name === undefined) return false;
    const value = this.#text();
    if (value === undefined) return false;
    if (isIndexed) this.table.add(name, value);
    this.#take(name, value);
    return true;
  }

  /** Keeps the fields within the bounds, and decodes the rest to update the table. */
  #take(name: string, value: string): void {
    this.#listBytes += sizeOf(name, value);
    if (this.#listBytes > MAX_HEADER_LIST_BYTES || this.fields.length > 2 * MAX_HEADER_FIELDS) return;
    this.fields.push(name, value);
  }

  #nameAt(index: number): string | undefined {
    if (index < 1) return undefined;
    if (index <= STATIC_TABLE.length) return STATIC_TABLE[index - 1]?.[0];
    return this.table.at(index - STATIC_TABLE.length - 1)?.[0];
  }

  /** Section 5.1. @returns -1 if the number is incomplete or too large */
  #integer(prefixBits: number): number {
    const mask = (1 << prefixBits) - 1;
    if (this.#at >= this.#end) return -1;
    let value = (this.#bytes[this.#at++] ?? 0) & mask;
    if (value < mask) return value;
    for (let factor = 1; factor <= MAX_INTEGER; factor *= 128) {
      if (this.#at >= this.#end) return -1;
      const byte = this.#bytes[this.#at++] ?? 0;
      value += (byte & 127) * factor;
      if (value > MAX_INTEGER) return -1;
      if (byte < 128) return value;
    }
    return -1;
  }

  /** Section 5.2. @returns undefined if the text is incomplete or has an invalid Huffman code */
  #text(): string | undefined {
    const isHuffman = ((this.#bytes[this.#at] ?? 0) & 0x80) !== 0;
    const length = this.#integer(7);
    const start = this.#at;
    if (length < 0 || start + length > this.#end) return undefined;
    this.#at = start + length;
    if (!isHuffman) return this.#bytes.toString('latin1', start, this.#at);
    const decoded = decodeHuffman(this.#bytes, start, this.#at, scratch);
    return decoded < 0 ? undefined : scratch.toString('latin1', 0, decoded);
  }
}
