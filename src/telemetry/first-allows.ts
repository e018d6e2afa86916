/**
 * Remembers which allows of a UTC day were recorded, by tenant, principal, route and model, so that the first of each is
 * kept. Every allow calls it. Its memory is one table of a fixed size with fingerprints of 64 bits.
 */

import type { Allow } from '../decision/model.ts';

interface FirstAllowsOptions {
  /** The number of fingerprints that the table holds, a power of two. Default: 262,144, which take 2 MiB. */
  readonly entries?: number;
  /** The maximum number of fingerprints of one tenant. Default: 10,000. */
  readonly perTenant?: number;
}

/** The firsts of one tenant and day, in each gate and in the database. */
const MAX_FIRSTS_OF_TENANT = 10_000;

const DAY_MS = 86_400_000;
/** The entries that a lookup compares before it treats an allow as recorded. */
const MAX_PROBES = 32;
/** Characters of a model's name that count. */
const MAX_NAME = 128;

export class FirstAllows {
  readonly #entries: number;
  readonly #perTenant: number;
  /** Two words for each entry; both 0: free. Signed, because larger numbers would be objects in memory. */
  readonly #table: Int32Array;
  readonly #ofTenants = new Map<string, number>();
  #day = -1;
  /** The place and the fingerprint of the last first. */
  #at = 0;
  #high = 0;
  #low = 0;
  #tenant = '';

  constructor({ entries = 262_144, perTenant = MAX_FIRSTS_OF_TENANT }: FirstAllowsOptions = {}) {
    this.#entries = entries;
    this.#perTenant = perTenant;
    this.#table = new Int32Array(2 * entries);
  }

  /** Reports whether the allow is the first of its kind on that day and can be remembered. */
  isFirst({ tenant, principal, route, model }: Allow, startedAtMs: number): boolean {
    const day = Math.floor(startedAtMs / DAY_MS);
    if (day !== this.#day) this.#begin(day);
    const name = model ?? '';
    let high = hashOf(principal.id, hashOf(route.template, route.method.length));
    let low = hashOf(name, hashOf(tenant.id, high));
    high = Math.imul(high ^ low, 0x9e3779b1);
    if (high === 0 && low === 0) low = 1;
    const at = this.#placeOf(high, low);
    if (at < 0 || (this.#ofTenants.get(tenant.id) ?? 0) >= this.#perTenant) return false;
    this.#at = at;
    this.#high = high;
    this.#low = low;
    this.#tenant = tenant.id;
    return true;
  }

  /** Remembers the allow of the last lookup, which was a first. Returns its name for the day. */
  remember(): string {
    this.#table[this.#at] = this.#high;
    this.#table[this.#at + 1] = this.#low;
    this.#ofTenants.set(this.#tenant, (this.#ofTenants.get(this.#tenant) ?? 0) + 1);
    return [this.#day, this.#high, this.#low].join(' ');
  }

  #begin(day: number): void {
    this.#day = day;
    this.#table.fill(0);
    this.#ofTenants.clear();
  }

  /** Returns the free place of a fingerprint; -1 if it is in the table, or if there is no place. */
  #placeOf(high: number, low: number): number {
    const table = this.#table;
    const mask = this.#entries - 1;
    for (let probe = 0; probe < MAX_PROBES; probe++) {
      const at = 2 * ((low + probe) & mask);
      const first = table[at];
      const second = table[at + 1];
      if (first === high && second === low) return -1;
      if (first === 0 && second === 0) return at;
    }
    return -1;
  }
}

/** FNV-1a. A collision only leaves the allow to the sample. */
function hashOf(text: string, seed: number): number {
  let hash = seed ^ 0x811c9dc5;
  const end = Math.min(text.length, MAX_NAME);
  for (let i = 0; i < end; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash;
}
