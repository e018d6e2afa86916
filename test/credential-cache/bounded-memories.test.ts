import { hash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Cooldown } from '../../src/credential-cache/cooldown.ts';
import { KnownCredentials } from '../../src/credential-cache/known-credentials.ts';
import { NegativeCache } from '../../src/credential-cache/negative-cache.ts';
import { Tombstones } from '../../src/credential-cache/tombstones.ts';
import { digest, keyId, roleName, tenantId, userId } from './support/ids.ts';
import { ModelStore } from './support/model-store.ts';
import { aKey, aLive, aPolicy, aTenant, aUser, initialState, NOW, OWNED, owned } from './support/world.ts';

describe('tombstones', () => {
  test('a key keeps its newest change, in any order of delivery', () => {
    const tombstones = new Tombstones(10);
    tombstones.add('a', 5);
    tombstones.add('a', 3);
    expect(tombstones.newest('a')).toBe(5);
    expect(tombstones.newest('b')).toBe(0);
  });

  test('an evicted tombstone raises the floor for every key', () => {
    const tombstones = new Tombstones(4);
    for (let seq = 1; seq <= 4; seq++) tombstones.add(`key ${seq}`, seq);
    expect(tombstones.floor).toBe(0);
    tombstones.add('one more', 5);
    expect(tombstones.floor).toBe(2);
    expect(tombstones.newest('never changed')).toBe(2);
    expect(tombstones.newest('key 1')).toBe(2);
  });

  test('a reset sets the given position, also an older one', () => {
    const tombstones = new Tombstones(2);
    for (let seq = 1; seq <= 9; seq++) tombstones.add(`key ${seq}`, seq);
    tombstones.reset(3);
    expect(tombstones.newest('key 9')).toBe(3);
    expect(tombstones.size).toBe(0);
  });

  test('their number is bounded, and their position is never older than the newest change of any key', () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 8 }), fc.array(fc.nat(15), { maxLength: 100 }), (max, keys) => {
        const tombstones = new Tombstones(max);
        const all = new Map<string, number>();
        for (const [index, key] of keys.entries()) {
          tombstones.add(String(key), index + 1);
          all.set(String(key), index + 1);
          expect(tombstones.size).toBeLessThanOrEqual(max);
          for (const [known, seq] of all) expect(tombstones.newest(known)).toBeGreaterThanOrEqual(seq);
          expect(tombstones.newest('never changed')).toBeLessThanOrEqual(index + 1);
        }
      }),
    );
  });
});

test('an empty cache takes less than 4 MB of heap for a million credentials', () => {
  const before = process.memoryUsage().heapUsed;
  aLive(undefined, { maxCredentials: 1_000_000 });
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(4_000_000);
});

describe('keys with many scopes', () => {
  test('weigh as much as several entries, so that keys cannot fill the memory, and each of them still authenticates', async () => {
    const scopes = Array.from({ length: 1000 }, (_, n) => `chat:action-${n}`);
    const keys = Array.from({ length: 200 }, (_, n) =>
      aKey({ id: keyId(n), digest: digest(n), userId: undefined, scopes }),
    );
    const state = initialState();
    const store = new ModelStore({ ...state, keys: new Map(keys.map((key) => [key.digest, key])) });
    const { live } = aLive(store, { maxCredentials: 1000 });
    for (const { digest } of keys) {
      expect((await live.resolve({ kind: 'api_key', digest }, undefined, NOW)).identity.kind).toBe('proved');
    }
    const { size } = live.stats().maps.keys;
    expect(size).toBeGreaterThan(10);
    expect(size).toBeLessThan(100);
  });

  test('authenticate also if one of them exceeds the capacity', async () => {
    const scopes = Array.from({ length: 1000 }, (_, n) => `chat:action-${n}`);
    const state = initialState();
    const store = new ModelStore({ ...state, keys: new Map([[OWNED, aKey({ scopes })]]) });
    const { live } = aLive(store, { maxCredentials: 2 });
    expect((await live.resolve(owned, undefined, NOW)).identity.kind).toBe('proved');
    expect(live.stats().maps.keys.size).toBe(1);
  });
});

test('users with many roles weigh as much as several entries, and the keys of each still authenticate', async () => {
  const roles = Array.from({ length: 100 }, (_, n) => roleName(`${'a-long-name-of-a-role-'.repeat(2)}${n}`));
  const users = Array.from({ length: 100 }, (_, n) => aUser({ id: userId(n + 10), roles }));
  const keys = users.map(({ id }, n) => aKey({ id: keyId(n), digest: digest(n), userId: id }));
  const state = initialState();
  const store = new ModelStore({
    ...state,
    users: new Map(users.map((user) => [user.id, user])),
    keys: new Map(keys.map((key) => [key.digest, key])),
  });
  const { live } = aLive(store, { maxCredentials: 100 });
  for (const key of keys) {
    expect((await live.resolve({ kind: 'api_key', digest: key.digest }, undefined, NOW)).identity.kind).toBe('proved');
  }
  const { size } = live.stats().maps.users;
  expect(size).toBeGreaterThan(10);
  expect(size).toBeLessThan(50);
});

describe('tenants with large rules', () => {
  test('share a bound in bytes, so that few of them are cached, and requests of each are decided', async () => {
    const resources = Array.from({ length: 200 }, (_, n) => `models/*a*b*c*d*e*f*${n}*`);
    const policies = Array.from({ length: 180 }, (_, n) => ({ ...aPolicy(`policy-${n}`), resources }));
    const ids = Array.from({ length: 12 }, (_, n) => tenantId(`large-${n}`));
    const state = initialState();
    const keys = ids.map((id, n) => aKey({ id: keyId(n), digest: digest(n), userId: undefined, tenantId: id }));
    const store = new ModelStore({
      ...state,
      keys: new Map(keys.map((key) => [key.digest, key])),
      tenants: new Map(ids.map((id) => [id, aTenant({ id, policies })])),
    });
    const { live } = aLive(store);
    for (const key of keys) {
      const { snapshot } = await live.resolve({ kind: 'api_key', digest: key.digest }, undefined, NOW);
      expect(snapshot?.own?.policies.denies.policies).toHaveLength(policies.length);
    }
    const { maps, rulesBytes } = live.stats();
    expect(rulesBytes).toBeLessThanOrEqual(64 * 1024 * 1024);
    expect(maps.tenants.size).toBeLessThan(ids.length);
    expect(maps.tenants.size).toBeGreaterThan(1);
  });
});

describe('known credentials', () => {
  const digests = fc.uniqueArray(fc.stringMatching(/^[0-9a-f]{64}$/), { maxLength: 30 });

  test('the credential that was added last is known, and one that was never added is unknown', () => {
    fc.assert(
      fc.property(digests, digests, (added, others) => {
        const known = new KnownCredentials(100);
        for (const digest of added) {
          known.add(digest);
          expect(known.has(digest)).toBe(true);
        }
        for (const digest of others) if (!added.includes(digest)) expect(known.has(digest)).toBe(false);
      }),
    );
  });

  test('of as many credentials as its capacity, most stay known', () => {
    const known = new KnownCredentials(1000);
    const all = Array.from({ length: 1000 }, (_, n) => hash('sha256', `${n}`, 'hex'));
    for (const digest of all) known.add(digest);
    expect(all.filter((digest) => known.has(digest)).length).toBeGreaterThan(800);
  });
});

describe('the rest after a long refill', () => {
  test('is nine times the duration of the refill, at most 300 ms, and 0 after a short one', () => {
    const cooldown = new Cooldown();
    cooldown.note('short', 1, 0);
    cooldown.note('long', 10, 0);
    cooldown.note('very long', 5000, 0);
    expect(['short', 'long', 'very long', 'other'].map((key) => cooldown.restMs(key, 0))).toEqual([0, 90, 300, 0]);
    expect(cooldown.restMs('long', 89)).toBe(1);
    expect(cooldown.restMs('long', 90)).toBe(0);
  });

  test('limits the loads of a key that changes constantly to a tenth of the time', () => {
    const cooldown = new Cooldown();
    let [nowMs, spentMs] = [0, 0];
    while (nowMs < 10_000) {
      nowMs += cooldown.restMs('key', nowMs) + 20;
      spentMs += 20;
      cooldown.note('key', 20, nowMs);
    }
    expect(spentMs / nowMs).toBeLessThanOrEqual(0.11);
  });

  test('is kept for a bounded number of keys, the latest ones', () => {
    const cooldown = new Cooldown();
    for (let n = 0; n < 3000; n++) cooldown.note(`key ${n}`, 10, 0);
    expect(cooldown.size).toBeLessThanOrEqual(1000);
    expect(cooldown.restMs('key 2999', 0)).toBe(90);
  });
});

describe('bad answers', () => {
  test('are cached until the instant of their expiry, and not at it', () => {
    const remembered = new NegativeCache<string>(10, 100);
    remembered.put('a', 'bad', 1000);
    expect(remembered.get('a', 1099)).toBe('bad');
    expect(remembered.get('a', 1100)).toBeUndefined();
  });

  test('are bounded, and the newest are kept', () => {
    const remembered = new NegativeCache<number>(10, 100);
    for (let index = 0; index < 1000; index++) {
      remembered.put(`key ${index}`, index, 0);
      expect(remembered.size).toBeLessThanOrEqual(10);
      expect(remembered.get(`key ${index}`, 0)).toBe(index);
    }
  });

  test('a deleted answer is removed from both halves', () => {
    const remembered = new NegativeCache<number>(4, 100);
    for (const key of ['a', 'b', 'c']) remembered.put(key, 1, 0);
    for (const key of ['a', 'b', 'c']) {
      remembered.delete(key);
      expect(remembered.get(key, 0)).toBeUndefined();
    }
    expect(remembered.size).toBe(0);
  });
});
