/**
 * A cache of one kind of record, filled from the store on a miss and invalidated by the change feed.
 *
 * Invariant: an entry shows every change of its key that was applied in this process. The reasons are:
 *
 * - The feed's sequence numbers are in commit order, and a load reads a value and the feed's position `asOf` from one
 *   snapshot. The value therefore shows every change numbered `asOf` or below, and a change that it does not show has a
 *   higher number.
 * - Applying a change removes the entry and records the change's number as the key's tombstone, in one synchronous
 *   step.
 * - A fill is stored, also in one synchronous step, only if `asOf` has reached the key's tombstone. Every change that
 *   the value does not show is then still to be applied, and will remove the entry. It makes no difference whether the
 *   change was applied before the load began, while it ran, or whether the load read an old snapshot (a standby that
 *   lags).
 * - The floor replaces dropped tombstones. It is never below any of them.
 * - A change of a group leaves a tombstone of the group. An entry of the group is stored, and used, only if its `asOf` has
 *   reached it.
 * - A flush starts a new generation. A load that began in an earlier generation is never stored, because sequence
 *   numbers from before and after a failover cannot be compared.
 *
 * One rule is stricter than the proof needs. If a change of the key was applied while a load ran, the load must show a
 * position beyond that change; an equal position is not enough. A position that is not a whole number is never stored.
 * A source whose position and value are not quite of one snapshot can then cost a second load, but cannot restore what
 * was revoked.
 *
 * Compiling a value may take several turns of the event loop. A change that is applied while the compilation runs
 * counts as one that was applied while the load ran: the rule is checked in the synchronous step that stores the entry,
 * and a compilation stops when its value can no longer be stored.
 *
 * A value that is not stored is not used. The cache loads it again, a bounded number of times. The absence of a record
 * is stored by the same rule, in a negative cache.
 *
 * This file must not read the wall clock, which an operator may set. Ages are measured on the monotonic clock.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { Fault } from '../domain/errors.ts';
import type { Steps } from '../domain/steps.ts';
import type { CacheMapStats } from '../telemetry/cache-metrics.ts';
import type { Cooldown } from './cooldown.ts';
import { type Fill, Fills } from './fills.ts';
import type { KnownCredentials } from './known-credentials.ts';
import type { LoadLimiter, Patience } from './load-limiter.ts';
import { NegativeCache } from './negative-cache.ts';
import type { Loaded } from './ports.ts';
import type { StepRunner } from './slices.ts';
import { Tombstones } from './tombstones.ts';

/** The result of a lookup if the store has no such record. A lookup that returns `undefined` must load first. */
export const ABSENT: unique symbol = Symbol('the resource does not exist');

export const MAX_ENTRY_AGE_MS = 3_600_000;
export const MAX_ABSENT = 10_000;
export const ABSENT_TTL_MS = 10_000;
export const MAX_TOMBSTONES = 10_000;
/** Loads of one fill, if their values cannot be stored. */
export const LOADS_PER_FILL = 3;

/** The value that decisions read, and its share of the cache's capacity. */
interface Compiled<Value> {
  /** Frozen. */
  readonly value: Value;
  /** In the unit of `maxWeight`; at least 1. */
  readonly weight: number;
}

interface ReadThroughCacheParts<Key extends string, Stored, Value> {
  /** The capacity of the cache. An entry larger than it gets the full capacity. */
  readonly maxWeight: number;
  /** @param known whether the key was loaded and found before */
  readonly load: (key: Key, known: boolean) => Promise<Loaded<Stored | undefined>>;
  /** Runs once for each load that can be stored. */
  readonly compile: (record: Stored, key: Key) => Steps<Compiled<Value>>;
  /**
   * Returns the group that a value belongs to for good. A change of the group changes all of its values. Absent: there are
   * no groups.
   */
  readonly groupOf?: (value: Value) => string | undefined;
  readonly runner: StepRunner;
  /** For keys that were found before. */
  readonly limiter: LoadLimiter;
  /**
   * For keys that any client can invent: the keys that were found before, and the limiter of the others. Absent: all
   * keys count as found.
   */
  readonly unseen?: { readonly known: Pick<KnownCredentials, 'has' | 'add'>; readonly limiter: LoadLimiter };
  /** Delays refills that follow a long one. Absent if no refill is long. */
  readonly cooldown?: Cooldown;
  readonly monotonicMs: () => number;
  readonly maxTombstones: number;
}

export interface MapStats extends CacheMapStats {
  /** The used capacity, in the unit of `maxWeight`. */
  readonly weight: number;
}

/**
 * One entry. Other code may keep it, to find its value again without a lookup. When the cache drops the entry, the
 * entry drops its value, so a resolution that is derived from many entries keeps no value in memory.
 */
export class CacheEntry<Value> {
  /** Whole monotonic milliseconds, read before the load began. */
  readonly loadedAtMs: number;
  /** The feed's position in the snapshot that the value was read from. */
  readonly asOf: number;
  #value: Value | undefined;

  constructor(value: Value, loadedAtMs: number, asOf: number) {
    this.#value = value;
    this.loadedAtMs = loadedAtMs;
    this.asOf = asOf;
  }

  /** False after the cache has dropped the entry: it was changed, replaced, flushed or evicted. */
  get current(): boolean {
    return this.#value !== undefined;
  }

  /**
   * The value. Use it in the synchronous step in which the cache returned or confirmed the entry.
   * @throws Fault if the cache has dropped the entry
   */
  get value(): Value {
    if (this.#value === undefined) throw new Fault('an entry of the credential cache was used after its expiry');
    return this.#value;
  }

  /** For the cache only. */
  release(): void {
    this.#value = undefined;
  }
}

export class ReadThroughCache<Key extends string, Stored, Value extends object> {
  readonly #parts: ReadThroughCacheParts<Key, Stored, Value>;
  readonly #entries: LRUCache<string, CacheEntry<Value>>;
  readonly #absent = new NegativeCache<typeof ABSENT>(MAX_ABSENT, ABSENT_TTL_MS);
  readonly #tombstones: Tombstones;
  readonly #groupTombstones: Tombstones;
  readonly #fills = new Fills();
  #generation = 0;
  #hits = 0;
  #misses = 0;
  #rejectedFills = 0;

  constructor(parts: ReadThroughCacheParts<Key, Stored, Value>) {
    this.#parts = parts;
    // With `max`, lru-cache would allocate the places of all entries at once.
    this.#entries = new LRUCache({ maxSize: parts.maxWeight, dispose: (entry) => entry.release() });
    this.#tombstones = new Tombstones(parts.maxTombstones);
    this.#groupTombstones = new Tombstones(parts.maxTombstones);
  }

  /** Returns the value of the key; undefined = it must be loaded. Never waits. */
  peek(key: Key, monotonicMs: number): Value | typeof ABSENT | undefined {
    const entry = this.find(key, monotonicMs);
    return entry === undefined || entry === ABSENT ? entry : entry.value;
  }

  /** Reports whether `find` would return this entry. Does not count as a use of it. */
  holds(entry: CacheEntry<Value>, monotonicMs: number): boolean {
    const held = entry.current && this.#isUsable(entry, monotonicMs);
    if (held) this.#hits++;
    return held;
  }

  /** Like `peek`, but returns the entry in place of its value. */
  find(key: Key, monotonicMs: number): CacheEntry<Value> | typeof ABSENT | undefined {
    const entry = this.#entries.get(key);
    if (entry !== undefined && this.#isUsable(entry, monotonicMs)) {
      this.#hits++;
      return entry;
    }
    const absent = this.#absent.size === 0 ? undefined : this.#absent.get(key, monotonicMs);
    if (absent !== undefined) this.#hits++;
    return absent;
  }

  /** Reports whether a load of the key uses the capacity for keys that were found before. */
  isKnown(key: Key): boolean {
    const { unseen } = this.#parts;
    return unseen === undefined || unseen.known.has(key);
  }

  /**
   * Loads the key, or waits for the running load.
   * @returns true if the key can be peeked now, unless a change removes it first; false if the loaded value must not be
   *   used
   * @throws Fault (by rejecting) if the store cannot answer, too many loads wait, or the patience ends before the load
   *   begins
   */
  fill(key: Key, patience: Patience): Promise<boolean> {
    this.#misses++;
    const { unseen, limiter } = this.#parts;
    const known = this.isKnown(key);
    return this.#fills.join(key, known ? limiter : (unseen?.limiter ?? limiter), patience, (fill) =>
      this.#loadUntilStored(key, known, fill),
    );
  }

  apply(key: string, seq: number): void {
    this.#entries.delete(key);
    this.#absent.delete(key);
    this.#tombstones.add(key, seq);
    const fill = this.#fills.get(key);
    if (fill !== undefined) fill.overtakenBy = Math.max(fill.overtakenBy, seq);
  }

  /** Applies a change of a group. Its entries are compared when they are used, because a group may have very many. */
  applyToGroup(group: string, seq: number): void {
    this.#groupTombstones.add(group, seq);
  }

  /** Drops all entries and rejects all running fills. The feed continues from `position`. */
  flush(position: number): void {
    this.forget();
    this.#tombstones.reset(position);
    this.#groupTombstones.reset(position);
  }

  /** Drops all entries and rejects all running fills. The feed stays where it is. */
  forget(): void {
    this.#entries.clear();
    this.#absent.clear();
    this.#generation++;
  }

  stats(): MapStats {
    return {
      size: this.#entries.size,
      weight: this.#entries.calculatedSize,
      absent: this.#absent.size,
      tombstones: this.#tombstones.size,
      hits: this.#hits,
      misses: this.#misses,
      rejectedFills: this.#rejectedFills,
    };
  }

  async #loadUntilStored(key: Key, known: boolean, fill: Fill): Promise<boolean> {
    const { load, compile, runner, monotonicMs, cooldown } = this.#parts;
    for (let attempt = 0; attempt < LOADS_PER_FILL; attempt++) {
      const restMs = cooldown?.restMs(key, monotonicMs()) ?? 0;
      if (restMs > 0) await sleep(restMs);
      fill.overtakenBy = -1;
      const generation = this.#generation;
      const loadedAtMs = Math.floor(monotonicMs());
      const { value: record, asOf } = await load(key, known);
      const canStore = (): boolean => generation === this.#generation && this.#canStore(key, asOf, fill);
      if (record === undefined) {
        if (canStore()) {
          this.#storeAbsence(key, loadedAtMs);
          return true;
        }
      } else {
        const { value: compiled, spentMs } = await runner.run(compile(record, key), canStore);
        cooldown?.note(key, spentMs, monotonicMs());
        if (compiled !== undefined && canStore() && this.#showsGroup(compiled.value, asOf)) {
          this.#store(key, compiled, loadedAtMs, asOf);
          return true;
        }
      }
      this.#rejectedFills++;
    }
    return false;
  }

  #canStore(key: Key, asOf: number, fill: Fill): boolean {
    return Number.isSafeInteger(asOf) && asOf >= this.#tombstones.newest(key) && asOf > fill.overtakenBy;
  }

  #isUsable({ value, loadedAtMs, asOf }: CacheEntry<Value>, monotonicMs: number): boolean {
    return monotonicMs - loadedAtMs < MAX_ENTRY_AGE_MS && this.#showsGroup(value, asOf);
  }

  #showsGroup(value: Value, asOf: number): boolean {
    const group = this.#parts.groupOf?.(value);
    return group === undefined || asOf >= this.#groupTombstones.newest(group);
  }

  #storeAbsence(key: Key, loadedAtMs: number): void {
    this.#entries.delete(key);
    this.#absent.put(key, ABSENT, loadedAtMs);
  }

  #store(key: Key, { value, weight }: Compiled<Value>, loadedAtMs: number, asOf: number): void {
    const { maxWeight, unseen } = this.#parts;
    this.#absent.delete(key);
    this.#entries.set(key, new CacheEntry(value, loadedAtMs, asOf), { size: Math.min(maxWeight, weight) });
    unseen?.known.add(key);
  }
}
