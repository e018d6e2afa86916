/** Characters. */
const MAX_KEY_LENGTH = 4096;

/**
 * Keeps equal values once: a hundred thousand keys have few different sets of scopes, and ten thousand tenants often
 * have the same policies. Bounded in number and in size: a full table is cleared, and large values are not kept. Both
 * cost memory and never correctness.
 */
export function interned<K, V>(max: number, keyOf: (input: K) => string, make: (input: K) => V): (input: K) => V {
  const known = new Map<string, V>();
  return (input) => {
    const key = keyOf(input);
    if (key.length > MAX_KEY_LENGTH) return make(input);
    const there = known.get(key);
    if (there !== undefined) return there;
    const made = make(input);
    if (known.size >= max) known.clear();
    known.set(key, made);
    return made;
  };
}
