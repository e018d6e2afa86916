/**
 * A flood of made-up credentials beside valid ones, over a store that serves slowly. Counted in loads, never in time.
 */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { CredentialCache, Resolution } from '../../src/credential-cache/credential-cache.ts';
import { LIMITS } from '../../src/credential-cache/limits.ts';
import type { TokenVerifier } from '../../src/credential-cache/ports.ts';
import type { CredentialForm } from '../../src/domain/credential.ts';
import type { KeyDigest } from '../../src/domain/ids.ts';
import { PostgresCacheLoader } from '../../src/store/cache-loader.ts';
import type { Statement } from '../../src/store/pool.ts';
import { digestOf, seedKey, seedTenant, seedUser } from '../store/seed.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { digest } from './support/ids.ts';
import { ModelStore, settle } from './support/model-store.ts';
import { aKey, aLive, aPolicy, aTenant, initialState, NOW, OWNED, owned, tenantsOwn } from './support/world.ts';

const FLOOD = 5000;
const ATTACKER = '203.0.113.9';
const madeUp = (n: number): CredentialForm => ({ kind: 'api_key', digest: digest(100_000 + n) });
const ask = (live: CredentialCache, credential: CredentialForm, client: string) =>
  Promise.resolve(live.resolve(credential, undefined, NOW, client));

/** A model store that the test serves one load at a time, oldest first, and a cache over it. */
function aSlowWorld() {
  const store = new ModelStore(initialState(), false);
  const world = aLive(store);
  const serve = async (): Promise<string> => {
    const [load] = store.pending;
    load?.answer();
    await settle();
    return `${load?.kind} ${load?.key}`;
  };
  /** Serves loads until the resolution is there; returns how many it took, and the resolution. */
  const serveUntil = async (pending: Promise<Resolution>): Promise<{ loads: number; resolution: Resolution }> => {
    let resolution: Resolution | undefined;
    void pending.then((found) => {
      resolution = found;
    });
    let loads = 0;
    for (await settle(); resolution === undefined && store.pending.length > 0; loads++) await serve();
    return { loads, resolution: resolution ?? (await pending) };
  };
  const warm = async (...credentials: CredentialForm[]): Promise<void> => {
    store.answersAtOnce = true;
    for (const credential of credentials) await world.live.resolve(credential, undefined, NOW);
    store.answersAtOnce = false;
  };
  return { ...world, store, serve, serveUntil, warm };
}

describe('while 5,000 made-up keys wait for a slow store', () => {
  test('tenants, global policies and a key that was known are loaded with capacity of their own', async () => {
    const { live, store, warm } = aSlowWorld();
    await warm(owned);
    const flood = Array.from({ length: FLOOD }, (_none, n) => ask(live, madeUp(n), ATTACKER));
    await settle();
    expect(live.stats().loads.unseen).toMatchObject({
      inFlight: LIMITS.unseen.permits,
      waiting: FLOOD - LIMITS.unseen.permits,
    });

    store.putKey(aKey({ scopes: ['chat:read'] }));
    store.putTenant(aTenant({ settings: { default_model: 'new' } }));
    store.putGlobals([aPolicy('new')]);
    store.deliver(live, 0);
    const known = ask(live, owned, ATTACKER);
    await settle();
    const begun = store.pending.slice(LIMITS.unseen.permits);
    expect(begun.map(({ kind, key }) => `${kind} ${key}`)).toEqual([`key ${OWNED}`]);
    begun[0]?.answer();
    const rules = () => store.pending.slice(LIMITS.unseen.permits);
    // The tenant's load begins when that of the user has been read, which a busy machine may take several turns for.
    await expect.poll(() => rules().length, { interval: 5 }).toBe(2);
    expect(
      rules()
        .map(({ kind }) => kind)
        .toSorted(),
    ).toEqual(['global', 'tenant']);
    for (const load of rules()) load.answer();
    // No further load is served: it would wait forever for one.
    const resolution = await known;
    expect(resolution.snapshot?.own?.settings.default_model).toBe('new');

    store.answersAtOnce = true;
    for (const load of store.pending) load.answer();
    for (const { identity } of await Promise.all(flood))
      expect(identity).toEqual({ kind: 'invalid', reason: 'unknown' });
    expect(live.stats()).toMatchObject({ waiting: 0, fillsInFlight: 0 });
  });

  test("another client's valid key that was never seen waits for the loads under way, not for those in the queue", async () => {
    const { live, serveUntil } = aSlowWorld();
    const flood = Array.from({ length: FLOOD }, (_none, n) => ask(live, madeUp(n), ATTACKER));
    const { loads, resolution } = await serveUntil(ask(live, tenantsOwn, '198.51.100.7'));
    expect(resolution.identity.kind).toBe('proved');
    // Those before it, its own, its tenant and the global policies, and the few of the flood that began in between.
    expect(loads).toBeLessThanOrEqual(2 * LIMITS.unseen.permits + 5);
    expect(flood).toHaveLength(FLOOD);
  });

  test('an IPv6 /64 counts as one client', async () => {
    const { live, serveUntil } = aSlowWorld();
    for (let n = 0; n < FLOOD; n++) void ask(live, madeUp(n), `2001:db8::${n.toString(16)}`);
    const { loads } = await serveUntil(ask(live, tenantsOwn, '2001:db8:1::1'));
    expect(loads).toBeLessThanOrEqual(2 * LIMITS.unseen.permits + 5);
  });

  test('a load that no check waits for does not start', async () => {
    const { live, clock, store, serve } = aSlowWorld();
    const flood = Array.from({ length: FLOOD }, (_none, n) => ask(live, madeUp(n), ATTACKER));
    const results = Promise.allSettled(flood);
    await settle();
    clock.nowMs += 2000;
    while (store.pending.length > 0) await serve();
    expect(store.loads.size).toBe(LIMITS.unseen.permits);
    expect(live.stats().loads.unseen.abandoned).toBe(FLOOD - LIMITS.unseen.permits);
    expect((await results).filter(({ status }) => status === 'rejected')).toHaveLength(FLOOD - LIMITS.unseen.permits);
  });
});

test('while made-up tokens wait, a token that was valid before is verified, and few made-up ones at a time', async () => {
  const pending: { readonly token: string; readonly answer: PromiseWithResolvers<void> }[] = [];
  const { verifier: known } = aLive();
  const verifier: TokenVerifier = {
    hasOwnHeader: () => true,
    async verify(token) {
      const answer = Promise.withResolvers<void>();
      pending.push({ token, answer });
      await answer.promise;
      return known.verify(token);
    },
  };
  const store = new ModelStore(initialState());
  const { live } = aLive(store, { verifier });
  const developer: CredentialForm = { kind: 'token', token: 'developer', digest: 'de'.repeat(32) };
  const first = ask(live, developer, '198.51.100.7');
  pending[0]?.answer.resolve();
  expect((await first).identity.kind).toBe('proved');
  for (let n = 0; n < FLOOD; n++) void ask(live, { kind: 'token', token: `made-up ${n}`, digest: digest(n) }, ATTACKER);
  store.commit('signing_keys', '', {});
  store.deliver(live, 0);
  const again = ask(live, developer, '198.51.100.7');
  await settle();
  expect(pending.slice(1).map(({ token }) => token.startsWith('made-up'))).toEqual([
    ...Array.from({ length: LIMITS.unseen_token.permits }, () => true),
    false,
  ]);
  pending.at(-1)?.answer.resolve();
  expect((await again).identity.kind).toBe('proved');
});

describe('over PostgreSQL', () => {
  let fresh: FreshDatabase;
  beforeAll(async () => {
    fresh = await freshDatabase();
    await seedTenant(fresh.db, 'acme');
  });
  afterAll(() => fresh.close());

  test('5,000 made-up keys are read in few statements, and none of 60 valid cold keys and of the warm ones is a fault', async () => {
    const owner = await seedUser(fresh.db, 'acme');
    const keys: KeyDigest[] = [];
    for (let n = 0; n < 70; n++) {
      keys.push(digestOf(`valid ${n}`));
      await seedKey(fresh.db, 'acme', keys[n] ?? digestOf(''), n % 2 === 0 ? { user_id: owner } : {});
    }
    const asked: string[] = [];
    const counting = {
      ...fresh.db,
      query: (statement: Statement) => {
        asked.push(statement.name ?? '');
        return fresh.db.query(statement);
      },
    };
    const { live } = aLive(undefined, { source: new PostgresCacheLoader(counting) });
    const form = (key: KeyDigest): CredentialForm => ({ kind: 'api_key', digest: key });
    const warm = keys.slice(60);
    for (const key of warm) expect((await ask(live, form(key), '198.51.100.7')).identity.kind).toBe('proved');
    asked.length = 0;

    const flood = Array.from({ length: FLOOD }, (_none, n) => ask(live, form(digestOf(`made up ${n}`)), ATTACKER));
    live.forget();
    const valid = keys.map((key, n) => ask(live, form(key), `198.51.100.${n % 3}`));
    for (const { identity } of await Promise.all(valid)) expect(identity.kind).toBe('proved');
    for (const { identity } of await Promise.all(flood))
      expect(identity).toEqual({ kind: 'invalid', reason: 'unknown' });
    const keyStatements = asked.filter((name) => name.startsWith('live_key'));
    expect(keyStatements.length).toBeLessThanOrEqual((3 * FLOOD) / 100);
    expect(live.stats().loads.unseen).toMatchObject({ rejected: 0, abandoned: 0 });
  });
});
