/** Characters. */
const MAX_KEY_LENGTH = 4096;

/**
 * Equal values kept once: a hundred thousand keys have few different sets of scopes, and ten thousand tenants often the same policies.
 * Bounded, in number and in size: when full it forgets all it knows, and what is large, which few would share, is not kept at all. That
 * costs memory and never correctness.
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
