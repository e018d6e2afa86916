/**
 * Huffman decoding (RFC 7541, section 5.2 and appendix B). The code is canonical: codes of one length follow each other
 * in the order of their symbols, so the lengths define it.
 *
 * The decoder is a table of states and half bytes. The shortest code has 5 bits, so a half byte ends at most one
 * symbol.
 */

const EOS = 256;
const LONGEST = 30;

/** Bits of each symbol's code, from 0 to 255, then of EOS. */
// biome-ignore format: sixteen symbols a line
const LENGTHS: readonly number[] = [
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
  28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
  6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
  5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
  13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
  7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
  15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
  6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
  20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
  24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
  22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
  21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
  26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
  19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
  20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
  26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
  30,
];

/**
 * For each state and half byte: the next state in the lower 9 bits, and above them 1 + the symbol that ends. `BROKEN` =
 * no code.
 */
const STEPS = new Uint32Array(256 * 16);
const BROKEN = 0xffffffff;
const STATE_BITS = 9;
const STATE_MASK = (1 << STATE_BITS) - 1;
/** The states in which the text may end: at most 7 bits of padding, all of them 1. */
const MAY_END = new Uint8Array(256);

/** The inner nodes of the code's tree: [child of 0, child of 1]. A leaf is -1 - its symbol. */
type Node = [number | undefined, number | undefined];

function buildTree(): Node[] {
  const nodes: Node[] = [[undefined, undefined]];
  let code = 0;
  for (let length = 1; length <= LONGEST; length++) {
    code *= 2;
    for (let symbol = 0; symbol <= EOS; symbol++) {
      if (LENGTHS[symbol] !== length) continue;
      let at = 0;
      for (let bit = length - 1; bit >= 0; bit--) {
        const side = Math.floor(code / 2 ** bit) % 2 === 0 ? 0 : 1;
        const node = nodes[at];
        if (node === undefined) throw new Error('the Huffman code is not a tree');
        if (bit === 0) node[side] = -1 - symbol;
        else {
          let next = node[side];
          if (next === undefined) {
            next = nodes.push([undefined, undefined]) - 1;
            node[side] = next;
          }
          at = next;
        }
      }
      code += 1;
    }
  }
  return nodes;
}

function buildSteps(nodes: readonly Node[]): void {
  for (let state = 0; state < nodes.length; state++) {
    for (let half = 0; half < 16; half++) STEPS[state * 16 + half] = stepOf(nodes, state, half);
  }
  for (let [state, depth] = [0, 0]; depth <= 7; depth++) {
    MAY_END[state] = 1;
    state = nodes[state]?.[1] ?? 0;
  }
}

function stepOf(nodes: readonly Node[], state: number, half: number): number {
  let at = state;
  let ended = 0;
  for (let bit = 3; bit >= 0; bit--) {
    const next = nodes[at]?.[((half >> bit) & 1) === 0 ? 0 : 1];
    // EOS in a text is an error (section 5.2), and the tree has no other holes.
    if (next === undefined || next === -1 - EOS) return BROKEN;
    if (next < 0) ended = -next;
    at = Math.max(next, 0);
  }
  return (ended << STATE_BITS) | at;
}

buildSteps(buildTree());

/** The decoded bytes are at most 8/5 of the encoded bytes. */
export const MAX_GROWTH = 1.6;

/**
 * Decodes `bytes` from `start` to `end` into `into`, which must have room for 8/5 of them.
 * @returns the number of decoded bytes; -1 if the bytes are no valid code
 */
export function decodeHuffman(bytes: Buffer, start: number, end: number, into: Buffer): number {
  let state = 0;
  let length = 0;
  for (let at = start; at < end; at++) {
    const byte = bytes[at] ?? 0;
    const high = STEPS[state * 16 + (byte >> 4)] ?? BROKEN;
    if (high === BROKEN) return -1;
    if (high > STATE_MASK) into[length++] = (high >>> STATE_BITS) - 1;
    const low = STEPS[(high & STATE_MASK) * 16 + (byte & 15)] ?? BROKEN;
    if (low === BROKEN) return -1;
    if (low > STATE_MASK) into[length++] = (low >>> STATE_BITS) - 1;
    state = low & STATE_MASK;
  }
  return MAY_END[state] === 1 ? length : -1;
}
