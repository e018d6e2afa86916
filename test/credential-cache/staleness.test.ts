import { describe, expect, test } from 'vitest';
import { Fault } from '../../src/domain/errors.ts';
import { ModelStore } from './support/model-store.ts';
import { aKey, aLive, initialState, NOW, owned } from './support/world.ts';

const MAX_STALENESS_MS = 300_000;

/** A cache over a feed that is read when the test says so. */
function aLiveOverAFeed(polledAtMs: number) {
  const attempts: PromiseWithResolvers<void>[] = [];
  const feed = {
    polledAtMs,
    catchUp: () => {
      const attempt = Promise.withResolvers<void>();
      attempts.push(attempt);
      return attempt.promise;
    },
  };
  const world = aLive(new ModelStore(initialState()), { feed, maxStalenessMs: MAX_STALENESS_MS });
  return { ...world, feed, attempts };
}

describe('the staleness bound', () => {
  test('cached data is used up to the bound, and not beyond it', async () => {
    const { live, clock, attempts } = aLiveOverAFeed(1000);
    await live.resolve(owned, undefined, NOW);
    clock.nowMs = 1000 + MAX_STALENESS_MS;
    expect(live.resolve(owned, undefined, NOW)).not.toBeInstanceOf(Promise);
    clock.nowMs++;
    const resolution = live.resolve(owned, undefined, NOW);
    attempts[0]?.reject(new Fault('no connection'));
    await expect(resolution).rejects.toThrow(Fault);
  });

  test('when the feed is readable again, its changes are applied before a request is answered', async () => {
    const { live, store, clock, feed, attempts } = aLiveOverAFeed(1000);
    await live.resolve(owned, undefined, NOW);
    store.putKey(aKey({ revoked: true }));
    clock.nowMs += MAX_STALENESS_MS + 1;
    const resolution = live.resolve(owned, undefined, NOW);
    store.deliver(live, 0);
    feed.polledAtMs = clock.nowMs;
    attempts[0]?.resolve();
    expect((await resolution).identity).toEqual({ kind: 'invalid', reason: 'revoked' });
  });

  test('all waiting requests share one attempt to read the feed, and the next request starts another attempt', async () => {
    const { live, clock, feed, attempts } = aLiveOverAFeed(Number.NEGATIVE_INFINITY);
    const waiting = Array.from({ length: 50 }, () => live.resolve(owned, undefined, NOW));
    expect(attempts).toHaveLength(1);
    attempts[0]?.reject(new Error('no connection'));
    for (const result of await Promise.allSettled(waiting)) expect(result).toMatchObject({ reason: expect.any(Fault) });
    const again = live.resolve(owned, undefined, NOW);
    expect(attempts).toHaveLength(2);
    feed.polledAtMs = clock.nowMs;
    attempts[1]?.resolve();
    expect((await again).identity.kind).toBe('proved');
  });

  test('before the first poll nothing is loaded', () => {
    const { live, store, attempts } = aLiveOverAFeed(Number.NEGATIVE_INFINITY);
    expect(live.resolve(owned, undefined, NOW)).toBeInstanceOf(Promise);
    expect(store.loads.size).toBe(0);
    expect(attempts).toHaveLength(1);
  });

  test('a feed that was read without a recent poll is a fault, and not a loop', async () => {
    const { live, attempts } = aLiveOverAFeed(Number.NaN);
    const resolution = live.resolve(owned, undefined, NOW);
    attempts[0]?.resolve();
    await expect(resolution).rejects.toThrow(Fault);
    expect(attempts).toHaveLength(1);
  });
});
