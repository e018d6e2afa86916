import fc from 'fast-check';
import { expect, test } from 'vitest';
import { LoginAttemptLimiter } from '../../src/iam/auth/login-attempt-limiter.ts';
import { runs } from '../support/properties.ts';

/** Resolves after all pending microtasks. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Failures as the database counts them: an attempt takes one, and a success gives all back. */
function counter(limit: number): { claim: () => Promise<boolean>; forgive: () => void } {
  let failures = 0;
  return {
    claim: async () => {
      if (failures >= limit) return false;
      failures++;
      return true;
    },
    forgive: () => {
      failures = 0;
    },
  };
}

test('an attempt that is rejected while another runs waits for it, and continues if that one succeeds', async () => {
  const limiter = new LoginAttemptLimiter();
  const { claim, forgive } = counter(1);
  const [first, second] = [limiter.open('a'), limiter.open('a')];
  expect(await first.enter(claim)).toBe(true);
  const outcome = second.enter(claim);
  await settled();
  forgive();
  first.leave();
  expect(await outcome).toBe(true);
  second.leave();
  expect(limiter.size).toBe(0);
});

test('waiting attempts are rejected if the running one fails', async () => {
  const limiter = new LoginAttemptLimiter();
  const { claim } = counter(1);
  const [first, ...others] = Array.from({ length: 4 }, () => limiter.open('a'));
  expect(await first?.enter(claim)).toBe(true);
  const outcomes = others.map((place) => place.enter(claim).finally(() => place.leave()));
  await settled();
  first?.leave();
  expect(await Promise.all(outcomes)).toEqual([false, false, false]);
  expect(limiter.size).toBe(0);
});

test('an attempt whose rejection arrives before the admission of another one still waits for that one', async () => {
  const limiter = new LoginAttemptLimiter();
  const { claim, forgive } = counter(1);
  const [first, second] = [limiter.open('a'), limiter.open('a')];
  const answer = Promise.withResolvers<void>();
  const early = first.enter(async () => {
    const claimed = await claim();
    await answer.promise;
    return claimed;
  });
  const outcome = second.enter(claim);
  await settled();
  answer.resolve();
  expect(await early).toBe(true);
  forgive();
  first.leave();
  expect(await outcome).toBe(true);
  second.leave();
  expect(limiter.size).toBe(0);
});

test('a success between the rejection of an attempt and its wait admits that attempt', async () => {
  const limiter = new LoginAttemptLimiter();
  const { claim, forgive } = counter(1);
  const [first, second] = [limiter.open('a'), limiter.open('a')];
  expect(await first.enter(claim)).toBe(true);
  const outcome = second.enter(async () => {
    const claimed = await claim();
    if (!claimed) {
      forgive();
      first.leave();
    }
    return claimed;
  });
  expect(await outcome).toBe(true);
  second.leave();
});

test('at most 64 attempts wait, and the others are rejected at once with unavailable', async () => {
  const limiter = new LoginAttemptLimiter();
  const { claim } = counter(1);
  const first = limiter.open('a');
  expect(await first.enter(claim)).toBe(true);
  const places = Array.from({ length: 70 }, () => limiter.open('a'));
  const outcomes = places.map((place) =>
    place
      .enter(claim)
      .catch((error: unknown) => error)
      .finally(() => place.leave()),
  );
  await settled();
  first.leave();
  const results = await Promise.all(outcomes);
  expect(results.filter((result) => result === false)).toHaveLength(64);
  expect(results.filter((result) => result !== false)).toEqual(
    Array(6).fill(expect.objectContaining({ code: 'unavailable' })),
  );
  expect(limiter.size).toBe(0);
});

test('a rejected attempt claims again after another one returned a slot that it held briefly', async () => {
  const limiter = new LoginAttemptLimiter();
  const { claim, forgive } = counter(1);
  const [first, second] = [limiter.open('a'), limiter.open('a')];
  const elsewhere = Promise.withResolvers<void>();
  const together = first.enterBy(
    (async () => {
      await claim();
      // The other scope had no attempt left, so the claimed attempt is returned.
      await elsewhere.promise;
      forgive();
      return false;
    })(),
  );
  const outcome = second.enter(claim);
  await settled();
  elsewhere.resolve();
  expect(await together).toBe(false);
  expect(await outcome).toBe(true);
  first.leave();
  second.leave();
  expect(limiter.size).toBe(0);
});

test('every attempt ends, and correct ones alone are never refused, however they overlap', async () => {
  const attempt = fc.record({ right: fc.boolean(), steps: fc.nat({ max: 5 }), together: fc.boolean() });
  await fc.assert(
    fc.asyncProperty(fc.array(attempt, { maxLength: 40 }), fc.integer({ min: 1, max: 5 }), async (attempts, limit) => {
      const limiter = new LoginAttemptLimiter();
      const { claim, forgive } = counter(limit);
      const run = async ({
        right,
        steps,
        together,
      }: {
        right: boolean;
        steps: number;
        together: boolean;
      }): Promise<string> => {
        const place = limiter.open('a');
        try {
          if (!(together && (await place.enterBy(claim()))) && !(await place.enter(claim))) return 'refused';
          for (let i = 0; i < steps; i++) await settled();
          if (right) forgive();
          return right ? 'in' : 'wrong';
        } finally {
          place.leave();
        }
      };
      const outcomes = await Promise.all(attempts.map(run));
      if (attempts.every(({ right }) => right)) expect(outcomes).not.toContain('refused');
      if (!attempts.some(({ right }) => right)) {
        expect(outcomes.filter((outcome) => outcome === 'wrong')).toHaveLength(Math.min(limit, attempts.length));
      }
      expect(limiter.size).toBe(0);
    }),
    { numRuns: runs(100) },
  );
});
