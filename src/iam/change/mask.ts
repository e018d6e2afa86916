/** Keeps secrets out of the audit log, whatever a use case hands it. */

const SECRET =
  /^(?:key|digest|previous_digest|token|nonce|secret|.*password(?!_changed_at$).*|.*_(?:token|secret|digest|hash|sealed))$/i;

/** A copy without the values of members that hold secrets; undefined stays undefined. */
export function masked(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(masked);
  if (typeof value !== 'object' || value === null || value instanceof Date) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name,
      SECRET.test(name) && member !== null ? '[masked]' : masked(member),
    ]),
  );
}
