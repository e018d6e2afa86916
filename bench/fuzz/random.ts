/** Repeatable randomness for test data: the same seed, the same run. */

export interface Random {
  /** An integer from 0 up to but not including `below`. */
  below(below: number): number;
  chance(probability: number): boolean;
  /** One of at least one. */
  pick<T>(values: readonly T[]): T;
}

/** Mulberry32: small, fast, good enough to shake a parser. */
export function createRandom(seed: number): Random {
  let state = seed | 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return {
    below: (below) => Math.floor(next() * below),
    chance: (probability) => next() < probability,
    pick: (values) => {
      const picked = values[Math.floor(next() * values.length)];
      if (picked === undefined) throw new RangeError('nothing to pick from');
      return picked;
    },
  };
}
