import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../support/properties.ts';
import { TTL_MS, World } from './support/world.ts';

const TENANT = 'acme';

const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('create' as const), process: fc.nat({ max: 2 }) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('remove' as const), process: fc.nat({ max: 2 }) }) },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('end' as const),
      told: fc.array(fc.nat({ max: 2 }), { minLength: 1, maxLength: 3 }),
      which: fc.nat({ max: 20 }),
      status: fc.constantFrom(200, 201, 204, 400, 500, 0),
    }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('advance' as const), ms: fc.integer({ min: 1, max: 2000 }) }) },
);

describe('a limit of collections', () => {
  test('is never exceeded by counted collections and creations in progress, and counts each once, however many reports any process receives', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 0, max: 6 }),
        fc.array(step, { maxLength: 80, size: 'max' }),
        async (max, steps) => {
          const world = new World(3, () => 7);
          const removals = new Set<string>();
          let names = 0;
          let made = 0;
          let removed = 0;
          await world.live(200);
          for (const one of steps) {
            if (one.kind === 'create') world.admit(one.process, { createsCollection: true, maxCollections: max });
            else if (one.kind === 'remove') {
              // Only what exists can be removed.
              if ((world.store.collections.get(TENANT) ?? 0) > removals.size) {
                // Each by a name of its own: a name is given back once.
                world.admit(one.process, { removedCollection: `c${names++}` });
                const last = world.running.at(-1);
                if (last !== undefined) removals.add(last.reservation);
              }
            } else if (one.kind === 'advance') await world.live(one.ms, 250);
            else {
              const request = world.running[one.which % Math.max(1, world.running.length)];
              if (request === undefined) continue;
              world.running.splice(world.running.indexOf(request), 1);
              const removes = removals.has(request.reservation);
              const success = removes ? [200, 204].includes(one.status) : one.status >= 200 && one.status < 300;
              const late = world.nowMs - request.admittedMs >= TTL_MS;
              if (late) continue;
              for (const process of one.told) world.end(process, request, { status: one.status });
              if (success && removes) removed += 1;
              else if (success) made += 1;
              removals.delete(request.reservation);
              // Until it is booked, so that what is removed next exists.
              await world.live(600, 200);
            }
            await world.advance(20);
            const under = [...world.store.creations.values()].filter(({ expiresMs }) => expiresMs > world.nowMs).length;
            expect((world.store.collections.get(TENANT) ?? 0) + under).toBeLessThanOrEqual(max);
          }
          await world.live(TTL_MS, 1000);
          expect(world.store.collections.get(TENANT) ?? 0).toBe(made - removed);
        },
      ),
      { numRuns: runs(80) },
    );
  });

  test('refuses the one too many, without a time at which that ends', async () => {
    const world = new World(1, () => 1);
    for (let i = 0; i < 3; i++) world.admit(0, { createsCollection: true, maxCollections: 2 });
    await world.advance(50);
    expect([world.running.length, world.refused]).toEqual([2, ['insufficient_quota']]);
  });

  test('is a fault while the store is away', async () => {
    const world = new World(1, () => 1);
    world.storeUp = false;
    world.admit(0, { createsCollection: true, maxCollections: 2 });
    await world.advance(50);
    expect([world.running.length, world.faults]).toEqual([0, 1]);
  });
});
