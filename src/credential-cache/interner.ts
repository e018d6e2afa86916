import type { RoleName, TenantId } from '../domain/ids.ts';

/**
 * Keeps one copy of texts and lists that many entries share. Bounded: a full table is cleared, and later copies are not
 * shared with earlier ones.
 */
export class Interner {
  readonly #max: number;
  readonly #tenants = new Map<TenantId, TenantId>();
  readonly #roles = new Map<string, readonly RoleName[]>();

  constructor(max: number) {
    this.#max = max;
  }

  tenant(id: TenantId): TenantId {
    return this.#tenants.get(id) ?? this.#keep(this.#tenants, id, id);
  }

  roles(roles: readonly RoleName[]): readonly RoleName[] {
    const key = roles.join(',');
    return this.#roles.get(key) ?? this.#keep(this.#roles, key, Object.freeze([...roles]));
  }

  #keep<Key, Value>(map: Map<Key, Value>, key: Key, value: Value): Value {
    if (map.size >= this.#max) map.clear();
    map.set(key, value);
    return value;
  }
}
