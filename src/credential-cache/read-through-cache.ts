/**
 * One kind of thing kept in memory: filled from the store on a miss, held true by the change feed.
 *
 * Invariant: an entry shows every change of its key that has been applied here. It holds because
 *
 * - the feed's numbers are in commit order, and a load brings, out of one snapshot, a value and the feed's position `asOf`. So the
 *   value shows every change numbered `asOf` or below, and a change that it does not show has a higher number;
 * - applying a change removes the entry and notes the change's number as the key's tombstone, in one synchronous step;
 * - a fill lands, in one synchronous step too, only when `asOf` has reached the key's tombstone. Whatever the value does not show is
 *   then still to come, and will remove it. It makes no difference whether the change was applied before the load began, while it
 *   ran, or whether the load saw an old snapshot (a standby that lags);
 * - tombstones that are gone are stood for by the floor, which is never below any of them;
 * - a flush starts a new generation, and a load that began in an earlier one never lands, because after a fail-over the numbers of the
 *   two sides cannot be compared.
 *
 * One rule more than the proof needs: a load that was under way when a change of its key was applied must show a position beyond that
 * change, an equal one is not enough; and a position that is no whole number never lands. Then a source whose position and value are
 * not quite of one snapshot can cost a second load, but cannot bring back what was revoked.
 *
 * Compiling a value may take several turns of the event loop. A change that is applied while it runs counts as one that was applied
 * while the load ran: the rule is checked in the same synchronous step that stores the entry, and a value that cannot land any more is
 * not compiled to its end.
 *
 * What does not land is not used either: the value is loaded again, a bounded number of times. "There is no such thing" lands by the
 * same rule, in a memory of its own that is small and short.
 *
 * This file must not read the wall clock, which an operator may set: ages are measured on the monotonic clock.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { Fault } from '../domain/errors.ts';
import type { Steps } from '../domain/steps.ts';
import type { Cooldown } from './cooldown.ts';
import { type Fill, Fills } from './fills.ts';
import type { KnownCredentials } from './known-credentials.ts';
import type { LoadLimiter, Patience } from './load-limiter.ts';
import { NegativeCache } from './negative-cache.ts';
import type { Loaded } from './ports.ts';
import type { StepRunner } from './slices.ts';
import { Tombstones } from './tombstones.ts';

/** What a look-up finds where the store has nothing. A look-up that finds `undefined` has to load first. */
export const ABSENT: unique symbol = Symbol('the resource does not exist');

export const MAX_ENTRY_AGE_MS = 3_600_000;
export const MAX_ABSENT = 10_000;
export const ABSENT_TTL_MS = 10_000;
export const MAX_TOMBSTONES = 10_000;
/** Loads of one fill, when what they bring may not land. */
export const LOADS_PER_FILL = 3;

/** What decisions see of a record, and how much of the cache's capacity it takes. */
export interface Compiled<Value> {
  /** Frozen. */
  readonly value: Value;
  /** In the unit of `maxWeight`; at least 1. */
  readonly weight: number;
}

export interface ReadThroughCacheParts<Key extends string, Stored, Value> {
  readonly maxEntries: number;
  /** What all entries may weigh together. An entry that alone weighs more gets the full capacity. */
  readonly maxWeight: number;
  /** @param known whether the key was loaded and found before */
  readonly load: (key: Key, known: boolean) => Promise<Loaded<Stored | undefined>>;
  /** Runs once per load that may land. */
  readonly compile: (record: Stored, key: Key) => Steps<Compiled<Value>>;
  readonly runner: StepRunner;
  /** Of keys that were found before. */
  readonly limiter: LoadLimiter;
  /** For keys that anyone may make up: which ones were found before, and the limiter of the others. Absent: all count as found. */
  readonly unseen?: { readonly known: KnownCredentials; readonly limiter: LoadLimiter };
  /** Holds up refills that follow a long one; absent where none is long. */
  readonly cooldown?: Cooldown;
  readonly monotonicMs: () => number;
  readonly maxTombstones: number;
}

export interface MapStats {
  readonly size: number;
  /** What the entries weigh together. */
  readonly weight: number;
  readonly absent: number;
  readonly tombstones: number;
  /** Look-ups answered from memory. */
  readonly hits: number;
  /** Look-ups that had to wait for a load. */
  readonly misses: number;
  /** Loads that came too late to be believed. */
  readonly rejectedFills: number;
}

/**
 * One entry. Others may keep it to find its value again without a look at the map: once the map lets go of it, it no longer holds the
 * value, so that what is derived from many entries keeps none of them in memory.
 */
export class Entry<Value> {
  /** Whole monotonic milliseconds, from before the load began. */
  readonly loadedAtMs: number;
  #value: Value | undefined;

  constructor(value: Value, loadedAtMs: number) {
    this.#value = value;
    this.loadedAtMs = loadedAtMs;
  }

  /** False for ever once the map has let go of it: changed, replaced, flushed or pushed out. */
  get current(): boolean {
    return this.#value !== undefined;
  }

  /**
   * What decisions see; use it in the same synchronous step in which the map gave or confirmed the entry.
   * @throws Fault when the map has let go of the entry
   */
  get value(): Value {
    if (this.#value === undefined) throw new Fault('an entry of the live cache was used after its expiry');
    return this.#value;
  }

  /** For the map alone. */
  release(): void {
    this.#value = undefined;
  }
}

export class ReadThroughCache<Key extends string, Stored, Value extends object> {
  readonly #parts: ReadThroughCacheParts<Key, Stored, Value>;
  readonly #entries: LRUCache<string, Entry<Value>>;
  readonly #absent = new NegativeCache<typeof ABSENT>(MAX_ABSENT, ABSENT_TTL_MS);
  readonly #tombstones: Tombstones;
  readonly #fills = new Fills();
  #generation = 0;
  #hits = 0;
  #misses = 0;
  #rejectedFills = 0;

  constructor(parts: ReadThroughCacheParts<Key, Stored, Value>) {
    this.#parts = parts;
    this.#entries = new LRUCache({
      max: parts.maxEntries,
      maxSize: parts.maxWeight,
      dispose: (entry) => entry.release(),
    });
    this.#tombstones = new Tombstones(parts.maxTombstones);
  }

  /** What is known of the key now; undefined = it has to be loaded. Never waits. */
  peek(key: Key, monotonicMs: number): Value | typeof ABSENT | undefined {
    const entry = this.find(key, monotonicMs);
    return entry === undefined || entry === ABSENT ? entry : entry.value;
  }

  /** Whether `find` would give this entry again. Does not count as a use of it. */
  holds(entry: Entry<Value>, monotonicMs: number): boolean {
    const held = entry.current && monotonicMs - entry.loadedAtMs < MAX_ENTRY_AGE_MS;
    if (held) this.#hits++;
    return held;
  }

  /** `peek`, with the entry in place of its value. */
  find(key: Key, monotonicMs: number): Entry<Value> | typeof ABSENT | undefined {
    const entry = this.#entries.get(key);
    if (entry !== undefined && monotonicMs - entry.loadedAtMs < MAX_ENTRY_AGE_MS) {
      this.#hits++;
      return entry;
    }
    const absent = this.#absent.size === 0 ? undefined : this.#absent.get(key, monotonicMs);
    if (absent !== undefined) this.#hits++;
    return absent;
  }

  /** Reports whether loading the key takes the capacity that is set apart for keys that were found before. */
  isKnown(key: Key): boolean {
    const { unseen } = this.#parts;
    return unseen === undefined || unseen.known.has(key);
  }

  /**
   * Loads the key, or waits for the load under way.
   * @returns true when it can be peeked now, unless something removes it first; false when what came may not be used
   * @throws Fault (by rejecting) when the store cannot answer, too many loads wait, or the patience is over before the load begins
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

  /** Nothing cached or under way is trusted any more, and the feed goes on from `position`. */
  flush(position: number): void {
    this.forget();
    this.#tombstones.reset(position);
  }

  /** Nothing cached or under way is trusted any more; the feed is where it was. */
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
        if (compiled !== undefined && canStore()) {
          this.#store(key, compiled, loadedAtMs);
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

  #storeAbsence(key: Key, loadedAtMs: number): void {
    this.#entries.delete(key);
    this.#absent.put(key, ABSENT, loadedAtMs);
  }

  #store(key: Key, { value, weight }: Compiled<Value>, loadedAtMs: number): void {
    const { maxWeight, unseen } = this.#parts;
    this.#absent.delete(key);
    this.#entries.set(key, new Entry(value, loadedAtMs), { size: Math.min(maxWeight, weight) });
    unseen?.known.add(key);
  }
}
