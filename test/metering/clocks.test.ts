import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../support/properties.ts';
import { RateWorld, WINDOW_MS } from './support/rate-world.ts';
import { World } from './support/world.ts';

const MINUTE_MS = 60_000;
const TENANT = 'acme';
const skew = fc.constantFrom(0, -5, 5, -11, 11, -120, 120).map((minutes) => minutes * MINUTE_MS);
const skews = fc.array(skew, { minLength: 3, maxLength: 3 });

function only(world: World) {
  const [request] = world.running.splice(0, 1);
  if (request === undefined) throw new Error('nothing was admitted');
  return request;
}

describe('processes whose machines have wrong clocks', () => {
  test('book every end in the month and on the day of the store, whichever process admitted the request', async () => {
    await fc.assert(
      fc.asyncProperty(
        skews,
        fc.integer({ min: -3, max: 3 }),
        fc.nat({ max: 2 }),
        fc.nat({ max: 2 }),
        async (localSkewsMs, minutes, admits, hears) => {
          const world = new World(3, () => 5, localSkewsMs);
          world.nowMs = Date.UTC(2026, 11, 1) + minutes * MINUTE_MS - 30_000;
          await world.live(400);
          const period = new Date(world.nowMs).toISOString().slice(0, 7);
          world.admit(admits, { metered: true, monthlyTokens: 1000, askedTokens: 10 });
          await world.live(400);
          world.end(hears, only(world), { total: 7 });
          await world.live(2000);
          expect([world.faults, world.refused]).toEqual([0, []]);
          expect(world.store.budget(TENANT, period).spent).toBe(7);
        },
      ),
      { numRuns: runs(60) },
    );
  });

  test('admit no more requests of a window, and no more tokens of a month, than the limits', async () => {
    await fc.assert(
      fc.asyncProperty(skews, async (localSkewsMs) => {
        const world = new World(3, () => 5, localSkewsMs);
        world.nowMs = Date.UTC(2026, 11, 1) - 2 * MINUTE_MS;
        await world.live(400);
        for (let i = 0; i < 60; i++)
          world.admit(i % 3, { metered: true, monthlyTokens: 200, askedTokens: 10, tenantRpm: 40 });
        await world.live(1000);
        expect(world.running.length).toBe(20);
        expect(world.store.budgets.size).toBe(1);
        for (const granted of world.store.windows.values()) expect(granted).toBeLessThanOrEqual(40);
      }),
      { numRuns: runs(30) },
    );
  });
});

describe("the store's clock, when it is set", () => {
  test.each([-20, -3, -1, 1, 20])(
    'by %i windows moves the windows, and each limit can be used in them',
    async (windows) => {
      const world = new RateWorld(2, () => 1);
      const use = async (): Promise<number> => {
        const before = world.admitted.length;
        for (let i = 0; i < 20; i++) world.take(i % 2, 'key:k', 10);
        await world.advance(30);
        return world.admitted.length - before;
      };
      // The process has been in use for some windows.
      for (let i = 0; i < 4; i++) {
        expect(await use()).toBe(10);
        await world.advance(WINDOW_MS - 30);
      }
      world.storeShiftMs = windows * WINDOW_MS;
      // Within 5 s each process learns the time; the windows of its first answers may be those that were.
      for (let second = 0; second < 6; second++) {
        for (const [i] of world.processes.entries()) await world.tick(i);
        await world.advance(WINDOW_MS);
      }
      world.granted.clear();
      for (let i = 0; i < 3; i++) {
        expect(await use()).toBe(10);
        await world.advance(WINDOW_MS - 30);
      }
    },
  );
});
