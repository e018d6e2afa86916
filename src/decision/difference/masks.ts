/** Sets of small numbers as the bits of a bigint. */

const DIGIT_BITS = 4;

/** @param positions in any order */
export function bitsOf(positions: readonly number[]): bigint {
  if (positions.length === 0) return 0n;
  const digits = new Uint8Array(Math.floor(Math.max(...positions) / DIGIT_BITS) + 1);
  for (const position of positions) {
    const digit = Math.floor(position / DIGIT_BITS);
    digits[digit] = (digits[digit] ?? 0) | (1 << (position % DIGIT_BITS));
  }
  return BigInt(
    `0x${[...digits]
      .reverse()
      .map((digit) => digit.toString(16))
      .join('')}`,
  );
}

/** Returns the numbers of a set, in ascending order. */
export function positionsOf(mask: bigint): readonly number[] {
  const positions: number[] = [];
  const digits = mask.toString(16);
  for (let at = digits.length - 1; at >= 0; at--) {
    const digit = Number.parseInt(digits[at] ?? '0', 16);
    const first = (digits.length - 1 - at) * DIGIT_BITS;
    for (let bit = 0; bit < DIGIT_BITS; bit++) if ((digit & (1 << bit)) !== 0) positions.push(first + bit);
  }
  return positions;
}
