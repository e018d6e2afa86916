import { describe, expect, test } from 'vitest';
import { Cooldown } from '../../src/credential-cache/cooldown.ts';
import { LoadLimiter, type Patience } from '../../src/credential-cache/load-limiter.ts';
import type { Loaded } from '../../src/credential-cache/ports.ts';
import {
  ABSENT,
  ABSENT_TTL_MS,
  CacheEntry,
  LOADS_PER_FILL,
  MAX_ABSENT,
  MAX_ENTRY_AGE_MS,
  ReadThroughCache,
} from '../../src/credential-cache/read-through-cache.ts';
import { AT_ONCE, type StepRunner } from '../../src/credential-cache/slices.ts';
import { Fault } from '../../src/domain/errors.ts';
import { inOneStep } from '../../src/domain/steps.ts';
import { ManualRunner } from './support/manual-runner.ts';

interface Value {
  readonly text: string;
}

/** A request that waits two seconds from the start of the test's clock. */
const soon = (client = '', untilMs = 2000): Patience => ({ client, untilMs });

/** A map over loads that answer when the test says so. */
function aMap({
  capacity = 100,
  maxFills = 100,
  maxTombstones = 100,
  runner = AT_ONCE,
  cooldown = new Cooldown(),
}: {
  capacity?: number;
  maxFills?: number;
  maxTombstones?: number;
  runner?: StepRunner;
  cooldown?: Cooldown;
} = {}) {
  const clock = { nowMs: 0 };
  const limiter = new LoadLimiter({ permits: maxFills, maxWaiting: 2, monotonicMs: () => clock.nowMs });
  const loads: PromiseWithResolvers<Loaded<string | undefined>>[] = [];
  const map = new ReadThroughCache<string, string, Value>({
    maxWeight: capacity,
    runner,
    cooldown,
    limiter,
    maxTombstones,
    load: () => {
      const load = Promise.withResolvers<Loaded<string | undefined>>();
      loads.push(load);
      return load.promise;
    },
    compile: (text) =>
      inOneStep(() => {
        if (text === 'cannot be compiled') throw new TypeError('a bug');
        return { value: { text }, weight: text.length };
      }),
    monotonicMs: () => clock.nowMs,
  });
  const answer = (load: number, value: string | undefined, asOf: number): void => loads[load]?.resolve({ value, asOf });
  const put = async (key: string, value: string | undefined, asOf = 0): Promise<void> => {
    const filled = map.fill(key, soon());
    answer(loads.length - 1, value, asOf);
    expect(await filled).toBe(true);
  };
  return { map, clock, limiter, loads, answer, put };
}

describe('a fill that began before a change', () => {
  test('is not stored if the change is applied while the load runs and its snapshot is older', async () => {
    const { map, answer, loads } = aMap();
    const filled = map.fill('key', soon());
    map.apply('key', 7);
    answer(0, 'before', 6);
    await new Promise(setImmediate);
    expect(map.peek('key', 0)).toBeUndefined();
    expect(loads).toHaveLength(2);
    answer(1, 'after', 7);
    expect(await filled).toBe(true);
    expect(map.peek('key', 0)).toEqual({ text: 'after' });
    expect(map.stats().rejectedFills).toBe(1);
  });

  test('is not stored if its position equals the change, and the next load is stored', async () => {
    const { map, answer } = aMap();
    const filled = map.fill('key', soon());
    map.apply('key', 7);
    answer(0, 'of a position read too late', 7);
    await new Promise(setImmediate);
    expect(map.peek('key', 0)).toBeUndefined();
    answer(1, 'after', 7);
    expect(await filled).toBe(true);
    expect(map.peek('key', 0)).toEqual({ text: 'after' });
  });

  test('is stored if the position of its snapshot is beyond the change', async () => {
    const { map, answer } = aMap();
    const filled = map.fill('key', soon());
    map.apply('key', 7);
    answer(0, 'after', 8);
    expect(await filled).toBe(true);
    expect(map.peek('key', 0)).toEqual({ text: 'after' });
  });

  test('is removed if the change is applied after the load was stored', async () => {
    const { map, put } = aMap();
    await put('key', 'before', 6);
    map.apply('key', 7);
    expect(map.peek('key', 0)).toBeUndefined();
  });

  test('is not stored if it began after the change but read an older snapshot', async () => {
    const { map, answer, loads } = aMap();
    map.apply('key', 7);
    const filled = map.fill('key', soon());
    for (let load = 0; load < LOADS_PER_FILL; load++) {
      answer(load, 'of a standby that lags', 6);
      await new Promise(setImmediate);
    }
    expect(await filled).toBe(false);
    expect(loads).toHaveLength(LOADS_PER_FILL);
    expect(map.peek('key', 0)).toBeUndefined();
  });

  test('is not affected by changes of other keys', async () => {
    const { map, answer } = aMap();
    const filled = map.fill('key', soon());
    map.apply('another', 7);
    answer(0, 'value', 6);
    expect(await filled).toBe(true);
    expect(map.peek('key', 0)).toEqual({ text: 'value' });
  });

  test.each([Number.NaN, -1, 1.5, Number.POSITIVE_INFINITY])(
    'is never stored with the position %d',
    async (position) => {
      const { map, answer } = aMap();
      const filled = map.fill('key', soon());
      for (let load = 0; load < LOADS_PER_FILL; load++) {
        answer(load, 'value', position);
        await new Promise(setImmediate);
      }
      expect(await filled).toBe(false);
      expect(map.peek('key', 0)).toBeUndefined();
    },
  );

  test('is rejected also after its tombstone was evicted: the floor replaces the tombstone', async () => {
    const { map, answer } = aMap({ maxTombstones: 2 });
    const filled = map.fill('key', soon());
    map.apply('key', 1);
    for (let seq = 2; seq <= 4; seq++) map.apply(`another ${seq}`, seq);
    expect(map.stats().tombstones).toBeLessThanOrEqual(2);
    answer(0, 'before', 0);
    await new Promise(setImmediate);
    expect(map.peek('key', 0)).toBeUndefined();
    answer(1, 'begun after the change, seen before it', 0);
    await new Promise(setImmediate);
    expect(map.peek('key', 0)).toBeUndefined();
    answer(2, 'after', 4);
    expect(await filled).toBe(true);
  });
});

describe('a change that is applied while a value is compiled', () => {
  test.each([true, false])(
    'keeps it from landing, also when the snapshot was new enough before (abandoned: %s)',
    async (abandons) => {
      const runner = new ManualRunner(abandons);
      const { map, answer, loads } = aMap({ runner });
      const filled = map.fill('key', soon());
      answer(0, 'before', 6);
      await new Promise(setImmediate);
      runner.step(0);
      map.apply('key', 7);
      runner.finish();
      await new Promise(setImmediate);
      expect(map.peek('key', 0)).toBeUndefined();
      expect(loads).toHaveLength(2);
      answer(1, 'after', 7);
      await new Promise(setImmediate);
      runner.finish();
      expect(await filled).toBe(true);
      expect(map.peek('key', 0)).toEqual({ text: 'after' });
    },
  );

  test('and so does a flush', async () => {
    const runner = new ManualRunner(false);
    const { map, answer } = aMap({ runner });
    const filled = map.fill('key', soon());
    answer(0, 'of the other side of a fail-over', 1000);
    await new Promise(setImmediate);
    runner.step(0);
    map.flush(3);
    runner.finish();
    await new Promise(setImmediate);
    expect(map.peek('key', 0)).toBeUndefined();
    answer(1, 'now', 3);
    await new Promise(setImmediate);
    runner.finish();
    expect(await filled).toBe(true);
  });
});

describe('a flush', () => {
  test('prevents running loads from being stored, for any position', async () => {
    const { map, answer } = aMap();
    const filled = map.fill('key', soon());
    map.flush(3);
    answer(0, 'of the other side of a fail-over', 1000);
    await new Promise(setImmediate);
    expect(map.peek('key', 0)).toBeUndefined();
    answer(1, 'now', 3);
    expect(await filled).toBe(true);
    expect(map.peek('key', 0)).toEqual({ text: 'now' });
  });

  test('clears entries, absences and tombstones, and loads older than its position are rejected', async () => {
    const { map, put, answer } = aMap();
    await put('key', 'value');
    await put('nothing', undefined);
    map.apply('changed', 5);
    map.flush(9);
    expect(map.peek('key', 0)).toBeUndefined();
    expect(map.peek('nothing', 0)).toBeUndefined();
    expect(map.stats()).toMatchObject({ size: 0, absent: 0, tombstones: 0 });
    const filled = map.fill('key', soon());
    answer(2, 'old', 8);
    await new Promise(setImmediate);
    answer(3, 'new', 9);
    expect(await filled).toBe(true);
    expect(map.peek('key', 0)).toEqual({ text: 'new' });
  });

  test('to an older position (a fail-over to a standby that lagged) allows new loads', async () => {
    const { map, put } = aMap({ maxTombstones: 2 });
    for (let seq = 100; seq < 110; seq++) map.apply(`key ${seq}`, seq);
    map.flush(40);
    await put('key 109', 'value', 40);
    expect(map.peek('key 109', 0)).toEqual({ text: 'value' });
  });

  test('that only forgets drops cached entries and running loads, and keeps the tombstones', async () => {
    const { map, put, answer } = aMap();
    await put('key', 'value');
    map.apply('changed', 5);
    const filled = map.fill('changed', soon());
    map.forget();
    expect(map.peek('key', 0)).toBeUndefined();
    answer(1, 'under way', 9);
    await new Promise(setImmediate);
    answer(2, 'older than the change', 4);
    await new Promise(setImmediate);
    expect(map.peek('changed', 0)).toBeUndefined();
    answer(3, 'value', 5);
    expect(await filled).toBe(true);
  });
});

describe('fills', () => {
  test('100 concurrent requests for one key share one load, and all of them complete', async () => {
    const { map, loads, answer, limiter } = aMap();
    const fills = Array.from({ length: 100 }, () => map.fill('key', soon()));
    expect(loads).toHaveLength(1);
    expect(limiter.stats().inFlight).toBe(1);
    answer(0, 'value', 0);
    expect(await Promise.all(fills)).toEqual(fills.map(() => true));
    expect(limiter.stats().inFlight).toBe(0);
  });

  test('a load that fails is a Fault for every waiting request, and stores nothing', async () => {
    const { map, loads, limiter, put } = aMap();
    const fills = [map.fill('key', soon()), map.fill('key', soon())];
    loads[0]?.reject(new Fault('the store does not answer'));
    for (const result of await Promise.allSettled(fills))
      expect(result).toMatchObject({ status: 'rejected', reason: expect.any(Fault) });
    expect(map.peek('key', 0)).toBeUndefined();
    expect(limiter.stats().inFlight).toBe(0);
    await put('key', 'value');
    expect(map.peek('key', 0)).toEqual({ text: 'value' });
  });

  test('any other error of the store or of compiling becomes a Fault', async () => {
    const { map, loads, answer } = aMap();
    const failing = map.fill('key', soon());
    loads[0]?.reject(new TypeError('a bug'));
    await expect(failing).rejects.toThrow(Fault);
    const uncompiled = map.fill('key', soon());
    answer(1, 'cannot be compiled', 0);
    await expect(uncompiled).rejects.toThrow(Fault);
    expect(map.peek('key', 0)).toBeUndefined();
  });

  test('above the bound on loads the next ones wait, in order; above the bound on waiting a load is a Fault', async () => {
    const { map, loads, answer } = aMap({ maxFills: 2 });
    const fills = ['a', 'b', 'c', 'd'].map((key) => map.fill(key, soon()));
    await expect(map.fill('e', soon())).rejects.toThrow(Fault);
    const joined = map.fill('c', soon());
    expect(loads).toHaveLength(2);
    for (let load = 0; load < 4; load++) {
      answer(load, 'value', 0);
      await new Promise(setImmediate);
    }
    expect(await Promise.all([...fills, joined])).toEqual([true, true, true, true, true]);
  });

  test('a load that no request waits for any longer does not begin; one that a later request joined does', async () => {
    const { map, clock, loads, answer, limiter } = aMap({ maxFills: 1 });
    const first = map.fill('a', soon());
    const left = map.fill('b', soon());
    const joined = [map.fill('c', soon()), map.fill('c', soon('', 5000))];
    clock.nowMs = 2000;
    answer(0, 'value', 0);
    await expect(left).rejects.toThrow(Fault);
    expect(await first).toBe(true);
    await new Promise(setImmediate);
    expect(loads).toHaveLength(2);
    answer(1, 'value', 0);
    expect(await Promise.all(joined)).toEqual([true, true]);
    expect(limiter.stats()).toEqual({ inFlight: 0, waiting: 0, rejected: 0, abandoned: 1 });
  });
});

describe('a key whose refills take long', () => {
  test('is loaded again only after a rest, while other keys are loaded at once', async () => {
    const cooldown = new Cooldown();
    const { map, clock, answer, loads } = aMap({ cooldown });
    clock.nowMs = 1000;
    cooldown.note('key', 5, 1000);
    const held = map.fill('key', soon());
    const other = map.fill('other', soon());
    expect(loads).toHaveLength(1);
    answer(0, 'value', 0);
    expect(await other).toBe(true);
    clock.nowMs = 1045;
    await expect.poll(() => loads.length).toBe(2);
    answer(1, 'value', 0);
    expect(await held).toBe(true);
  });
});

describe('cached entries', () => {
  test('an entry is valid for an hour after the start of its load, and not at the end of it', async () => {
    const { map, clock, answer } = aMap();
    const filled = map.fill('key', soon());
    clock.nowMs = 500;
    answer(0, 'value', 0);
    await filled;
    expect(map.peek('key', MAX_ENTRY_AGE_MS - 1)).toEqual({ text: 'value' });
    expect(map.peek('key', MAX_ENTRY_AGE_MS)).toBeUndefined();
  });

  test('the entries never exceed the capacity, and the least recently used is evicted first', async () => {
    const { map, put } = aMap({ capacity: 3 });
    for (const key of ['a', 'b', 'c']) await put(key, key);
    map.peek('a', 0);
    await put('d', 'd');
    expect(map.stats().size).toBe(3);
    expect(map.peek('b', 0)).toBeUndefined();
    expect(map.peek('a', 0)).toEqual({ text: 'a' });
  });

  test('the weight never exceeds the capacity, and a heavier entry is cached as the only one', async () => {
    const { map, put } = aMap({ capacity: 10 });
    for (const key of ['a', 'b', 'c']) await put(key, 'four');
    expect(map.stats()).toMatchObject({ size: 2, weight: 8 });
    await put('d', 'more than ten');
    expect(map.stats()).toMatchObject({ size: 1, weight: 10 });
    expect(map.peek('d', 0)).toEqual({ text: 'more than ten' });
  });

  test('an entry that left the cache no longer has its value, so that a reference to it keeps no memory', async () => {
    const { map, put } = aMap({ capacity: 1 });
    await put('changed', 'v');
    const changed = map.find('changed', 0);
    map.apply('changed', 1);
    await put('evicted', 'v', 1);
    const evicted = map.find('evicted', 0);
    await put('another', 'v', 1);
    for (const entry of [changed, evicted]) {
      if (!(entry instanceof CacheEntry)) throw new Error('there was no entry');
      expect(entry.current).toBe(false);
      expect(() => entry.value).toThrow(Fault);
    }
  });

  test('an absence is cached for ten seconds', async () => {
    const { map, put } = aMap();
    await put('key', undefined);
    expect(map.peek('key', ABSENT_TTL_MS - 1)).toBe(ABSENT);
    expect(map.peek('key', ABSENT_TTL_MS)).toBeUndefined();
  });

  test('a flood of unknown keys is bounded and evicts no valid entry', async () => {
    const { map, put } = aMap({ capacity: 10 });
    await put('good', 'value');
    for (let index = 0; index < MAX_ABSENT + 100; index++) await put(`unknown ${index}`, undefined);
    expect(map.stats().absent).toBeLessThanOrEqual(MAX_ABSENT);
    expect(map.peek('good', 0)).toEqual({ text: 'value' });
  });

  test('a change removes an absence', async () => {
    const { map, put } = aMap();
    await put('key', undefined);
    map.apply('key', 1);
    expect(map.peek('key', 0)).toBeUndefined();
    await put('key', 'made', 1);
    expect(map.peek('key', 0)).toEqual({ text: 'made' });
  });

  test('an absence is stored by the same rule as a value', async () => {
    const { map, answer } = aMap();
    const filled = map.fill('key', soon());
    map.apply('key', 1);
    answer(0, undefined, 0);
    await new Promise(setImmediate);
    expect(map.peek('key', 0)).toBeUndefined();
    answer(1, 'made', 1);
    await filled;
    expect(map.peek('key', 0)).toEqual({ text: 'made' });
  });

  test('an absence replaces an expired entry, and an entry replaces an expired absence', async () => {
    const { map, clock, put } = aMap();
    await put('key', 'value');
    clock.nowMs = MAX_ENTRY_AGE_MS;
    await put('key', undefined);
    expect(map.peek('key', clock.nowMs)).toBe(ABSENT);
    clock.nowMs += ABSENT_TTL_MS;
    await put('key', 'again');
    expect(map.peek('key', clock.nowMs)).toEqual({ text: 'again' });
    expect(map.stats()).toMatchObject({ size: 1, absent: 0 });
  });
});
