import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { MIN_UNREPORTED, UnreportedEnds } from '../../src/metering/unreported-ends.ts';
import { runs } from '../support/properties.ts';
import { World } from './support/world.ts';

const LIFE_MS = 1000;

/** The watch with a simulated clock, and a store whose answers the test sets. */
function stand() {
  const said: number[] = [];
  const state = { nowMs: 0, settled: false as boolean | Error, isRequested: 0 };
  const ends = new UnreportedEnds({
    store: {
      settledLately: () => {
        state.isRequested += 1;
        return state.settled instanceof Error ? Promise.reject(state.settled) : Promise.resolve(state.settled);
      },
    },
    processId: 'me',
    lifeMs: LIFE_MS,
    monotonicMs: () => state.nowMs,
    onChange: (requests) => said.push(requests),
  });
  const pass = async (ms: number): Promise<void> => {
    for (const end = state.nowMs + ms; state.nowMs < end; ) {
      state.nowMs = Math.min(end, state.nowMs + LIFE_MS / 10);
      await ends.tick();
    }
  };
  const admit = (requests: number): void => {
    for (let i = 0; i < requests; i++) ends.admitted();
  };
  return { ends, said, state, pass, admit };
}

describe('the watch over reported ends', () => {
  test('counts admitted requests as unreported once they are older than a reservation lives, and says so once', async () => {
    const { ends, said, pass, admit } = stand();
    admit(MIN_UNREPORTED);
    await pass(LIFE_MS);
    expect(ends.requests).toBe(0);
    await pass(5 * LIFE_MS);
    expect([ends.requests, said]).toEqual([MIN_UNREPORTED, [MIN_UNREPORTED]]);
  });

  test('says nothing of fewer requests, and nothing of requests whose checks were cancelled', async () => {
    const { ends, said, state, pass, admit } = stand();
    admit(MIN_UNREPORTED - 1);
    await pass(5 * LIFE_MS);
    admit(5);
    for (let i = 0; i < 5; i++) ends.released();
    await pass(5 * LIFE_MS);
    expect([ends.requests, said, state.isRequested]).toEqual([0, [], 0]);
  });

  test('begins again with each report, and says that ends are reported again', async () => {
    const { ends, said, pass, admit } = stand();
    admit(50);
    await pass(3 * LIFE_MS);
    expect(ends.requests).toBe(50);
    ends.reported();
    await pass(5 * LIFE_MS);
    expect([ends.requests, said]).toEqual([0, [50, 0]]);
  });

  test('concludes nothing while another process settles the requests, or while the store cannot be reached', async () => {
    const { ends, said, state, pass, admit } = stand();
    state.settled = true;
    admit(50);
    await pass(3 * LIFE_MS);
    state.settled = new Error('away');
    admit(50);
    await pass(3 * LIFE_MS);
    expect([ends.requests, said]).toEqual([0, []]);
    state.settled = false;
    await pass(LIFE_MS);
    expect(said).toHaveLength(1);
  });

  test('never says that ends are missing while one of them is reported in every life of a reservation', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(30), { minLength: 1, maxLength: 40 }), async (rounds) => {
        const { ends, said, pass, admit } = stand();
        for (const requests of rounds) {
          admit(requests);
          await pass(LIFE_MS / 2);
          ends.reported();
        }
        expect(said).toEqual([]);
      }),
      { numRuns: runs(100) },
    );
  });
});

describe('two processes', () => {
  async function settlingAt(told: 'the issuer' | 'the other process' | 'none'): Promise<readonly number[]> {
    const world = new World(2, () => 5);
    for (let round = 0; round < 100; round++) {
      world.admit(0, { metered: true });
      world.admit(0, { metered: true, monthlyTokens: 1_000_000 });
      await world.live(1000);
      for (const request of world.running.splice(0)) {
        if (told !== 'none') world.end(told === 'the issuer' ? 0 : 1, request, { total: 3 });
      }
    }
    return world.processes.map(({ limits }) => limits.unreported);
  }

  test.each(['the issuer', 'the other process'] as const)('miss no end that is reported to %s', async (told) => {
    expect(await settlingAt(told)).toEqual([0, 0]);
  });

  test('miss the ends of the requests that one of them admitted if neither receives a report', async () => {
    const [issuer, other] = await settlingAt('none');
    expect(issuer).toBeGreaterThan(MIN_UNREPORTED);
    expect(other).toBe(0);
  });
});
