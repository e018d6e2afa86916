/**
 * Equal values kept once: a hundred thousand keys have few different sets of scopes, and ten thousand tenants often the same policies.
 * Bounded: when full it forgets all it knows, which costs memory and never correctness.
 */
export function interned<K, V>(max: number, keyOf: (input: K) => string, make: (input: K) => V): (input: K) => V {
  const known = new Map<string, V>();
  return (input) => {
    const key = keyOf(input);
    const there = known.get(key);
    if (there !== undefined) return there;
    const made = make(input);
    if (known.size >= max) known.clear();
    known.set(key, made);
    return made;
  };
}
