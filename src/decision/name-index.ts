/**
 * Finds the pieces of globs in one name without reading the name again. The index of a name is built once, and each
 * search for a piece of any length then reads two rows of bits.
 *
 * Level k has every stretch of 2^k characters by a hash; its row has a bit for each position where the stretch begins.
 * A piece of m characters begins where its first 2^k characters begin and its last 2^k characters begin m - 2^k later,
 * where 2^k is the largest power of two up to m. Two stretches with one hash share a row, so a search may find a piece
 * that is not there, and never misses one. Callers compare each find with the name itself.
 */

import { MAX_RESOURCE_NAME } from './limits.ts';

const BITS = 32;
/** Rows have one word more than a name needs, so that a read at an offset ends within the row. */
const ROW_WORDS = MAX_RESOURCE_NAME / BITS + 1;
/** A power of two, twice the number of positions. */
const SLOTS = 2 * MAX_RESOURCE_NAME;
/** Names that are kept: more than one request can name. */
const MAX_NAMES = 72;

/** A secret of this process: a client that knew the hash could write names whose pieces seem to occur and do not. */
const SEED = Math.floor(Math.random() * 0x1_0000_0000) | 1;

function mix(left: number, right: number): number {
  const joined = Math.imul(left, 0x9e3779b1) ^ Math.imul(right ^ SEED, 0x85ebca6b);
  const spread = Math.imul(joined ^ (joined >>> 15), SEED);
  return (spread ^ (spread >>> 13)) | 0;
}

function unit(code: number): number {
  return mix(code, 0x27d4eb2f);
}

/** Returns the largest k with 2^k up to the length. */
function levelOf(length: number): number {
  return 31 - Math.clz32(length);
}

function hashOf(text: string, at: number, level: number): number {
  if (level === 0) return unit(text.charCodeAt(at));
  const half = 1 << (level - 1);
  return mix(hashOf(text, at, level - 1), hashOf(text, at + half, level - 1));
}

/** Numbers that `packPieces` writes for each piece: length, level, the hashes of its first and of its last stretch. */
const PACKED = 4;

/** The pieces of a glob as searches need them. @param pieces none of them empty */
export function packPieces(pieces: readonly string[]): Int32Array {
  const packed = new Int32Array(PACKED * pieces.length);
  for (const [index, piece] of pieces.entries()) {
    const level = levelOf(piece.length);
    const last = piece.length - (1 << level);
    packed.set([piece.length, level, hashOf(piece, 0, level), hashOf(piece, last, level)], PACKED * index);
  }
  return packed;
}

/**
 * One level of an index. Its table is open addressing; a slot is taken when it carries the number of the current name.
 */
class Level {
  /** The hash of the stretch at each position. */
  readonly hashes = new Int32Array(MAX_RESOURCE_NAME);
  readonly words = new Int32Array(ROW_WORDS * MAX_RESOURCE_NAME);
  /** For each slot the number of its name, the hash and where the row begins. */
  readonly #slots = new Int32Array(4 * SLOTS);
  #name = 0;

  /** Makes a row for each stretch. @param count how many positions a stretch begins at */
  fill(count: number, rowWords: number): void {
    const { hashes, words } = this;
    const slots = this.#slots;
    this.#name++;
    let rows = 0;
    for (let at = 0; at < count; at++) {
      const hash = hashes[at] ?? 0;
      const slot = this.#slot(hash);
      if (slots[slot] !== this.#name) {
        const row = ROW_WORDS * rows++;
        slots[slot] = this.#name;
        slots[slot + 1] = hash;
        slots[slot + 2] = row;
        for (let word = row; word < row + rowWords; word++) words[word] = 0;
      }
      const word = (slots[slot + 2] ?? 0) + (at >> 5);
      words[word] = (words[word] ?? 0) | (1 << (at & 31));
    }
  }

  /** Returns the position at which the row of a stretch begins; negative = it does not occur. */
  row(hash: number): number {
    const slot = this.#slot(hash);
    return this.#slots[slot] === this.#name ? (this.#slots[slot + 2] ?? -1) : -1;
  }

  /** The slot of the hash, or the empty one where it would go. */
  #slot(hash: number): number {
    const slots = this.#slots;
    let slot = (hash ^ (hash >>> 16)) & (SLOTS - 1);
    while (slots[4 * slot] === this.#name && slots[4 * slot + 1] !== hash) slot = (slot + 1) & (SLOTS - 1);
    return 4 * slot;
  }
}

/** The index of one name of at most `MAX_RESOURCE_NAME` characters. Levels are made when a piece asks for them. */
export class NameIndex {
  name = '';
  /** How many levels have the hashes of the name, and a bit for each whose rows are the name's. */
  #hashed = 0;
  #filled = 0;
  readonly #levels: Level[] = [];

  reset(name: string): void {
    this.name = name;
    this.#hashed = 0;
    this.#filled = 0;
  }

  /** Reports whether the pieces seem to occur in order, without overlap, from `start` up to `end`; false is certain. */
  mayHold(packed: Int32Array, start: number, end: number): boolean {
    let at = start;
    for (let i = 0; i < packed.length; i += PACKED) {
      const length = packed[i] ?? 0;
      if (at + length > end) return false;
      const wanted = packed[i + 1] ?? 0;
      const level = (this.#filled & (1 << wanted)) === 0 ? this.#fill(wanted) : this.#made(wanted);
      const head = level.row(packed[i + 2] ?? 0);
      if (head < 0) return false;
      const offset = length - (1 << wanted);
      const tail = offset === 0 ? head : level.row(packed[i + 3] ?? 0);
      if (tail < 0) return false;
      const found = firstOf(level.words, head, tail, offset, at, end - length);
      if (found < 0) return false;
      at = found + length;
    }
    return true;
  }

  #fill(wanted: number): Level {
    const { name } = this;
    while (this.#hashed <= wanted) {
      const { hashes } = this.#made(this.#hashed);
      const below = this.#hashed === 0 ? hashes : this.#made(this.#hashed - 1).hashes;
      const half = (1 << this.#hashed) >> 1;
      const count = name.length - (1 << this.#hashed) + 1;
      for (let at = 0; at < count; at++) {
        hashes[at] = half === 0 ? unit(name.charCodeAt(at)) : mix(below[at] ?? 0, below[at + half] ?? 0);
      }
      this.#hashed++;
    }
    const level = this.#made(wanted);
    this.#filled |= 1 << wanted;
    level.fill(Math.max(0, name.length - (1 << wanted) + 1), Math.min((name.length >> 5) + 2, ROW_WORDS));
    return level;
  }

  #made(index: number): Level {
    const there = this.#levels[index];
    if (there !== undefined) return there;
    const made = new Level();
    this.#levels[index] = made;
    return made;
  }
}

/**
 * The first position in `from..to` whose bit is set in one row, and `offset` positions later in the other; negative =
 * none.
 */
function firstOf(words: Int32Array, head: number, tail: number, offset: number, from: number, to: number): number {
  const shift = offset & 31;
  const last = to >> 5;
  let word = from >> 5;
  let wanted = -1 << (from & 31);
  for (let other = tail + (offset >> 5) + word; word <= last; word++, other++) {
    let both = (words[head + word] ?? 0) & wanted;
    if (both !== 0) {
      both &=
        shift === 0
          ? (words[other] ?? 0)
          : ((words[other] ?? 0) >>> shift) | ((words[other + 1] ?? 0) << (BITS - shift));
      if (both !== 0) {
        const found = BITS * word + (31 - Math.clz32(both & -both));
        return found <= to ? found : -1;
      }
    }
    wanted = -1;
  }
  return -1;
}

/**
 * Indexes by their names, the oldest first. The contents of an index depend on its name only, so decisions may share
 * them.
 */
const known = new Map<string, NameIndex>();

/** Returns the index of a name of at most `MAX_RESOURCE_NAME` characters. */
export function indexOfName(name: string): NameIndex {
  const there = known.get(name);
  if (there !== undefined) return there;
  const [oldest] = known.size < MAX_NAMES ? [] : known;
  const index = oldest?.[1] ?? new NameIndex();
  if (oldest !== undefined) known.delete(oldest[0]);
  index.reset(name);
  known.set(name, index);
  return index;
}
