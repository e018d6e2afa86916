/** Items that many callers request one at a time, and that are answered in batches. */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Fault } from '../../src/domain/errors.ts';
import { BatchQueue, MAX_BATCH } from '../../src/store/batch-queue.ts';
import { runs } from '../support/properties.ts';

interface Batch {
  readonly items: readonly number[];
  readonly answer: PromiseWithResolvers<readonly string[]>;
}

/** A queue whose batches are answered when the test says so. */
function slowQueue() {
  const batches: Batch[] = [];
  const queue = new BatchQueue<number, string>((items) => {
    const answer = Promise.withResolvers<readonly string[]>();
    batches.push({ items, answer });
    return answer.promise;
  });
  return { queue, batches };
}

const answered = ({ items, answer }: Batch): void => answer.resolve(items.map((item) => `answer ${item}`));
const turn = () => new Promise<void>((done) => setImmediate(done));

test('each of any number of requests gets its own answer, from a batch that began after it', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(fc.integer(), { maxLength: 250 }), { minLength: 1, maxLength: 5 }),
      async (rounds) => {
        const { queue, batches } = slowQueue();
        const all: Promise<string>[] = [];
        let begun = 0;
        for (const items of rounds) {
          begun = batches.length;
          all.push(...items.map((item) => queue.request(item)));
          expect(batches.length).toBe(begun);
          await turn();
          for (const batch of batches.slice(0, 1)) answered(batch);
        }
        for (let i = 0; i < batches.length; i++) {
          const batch = batches[i];
          if (batch !== undefined) answered(batch);
          await turn();
        }
        expect(await Promise.all(all)).toEqual(rounds.flat().map((item) => `answer ${item}`));
        expect(batches.every(({ items }) => items.length >= 1 && items.length <= MAX_BATCH)).toBe(true);
      },
    ),
    { numRuns: runs(40) },
  );
});

test('a single request does not wait for others; many requests share few batches, of at most a hundred', async () => {
  const { queue, batches } = slowQueue();
  const answers = [queue.request(0)];
  await turn();
  expect(batches.map(({ items }) => items.length)).toEqual([1]);
  for (let n = 0; n < 250; n++) answers.push(queue.request(n));
  await turn();
  expect(batches.map(({ items }) => items.length)).toEqual([1, 100]);
  for (let i = 0; i < 4; i++) {
    const batch = batches[i];
    if (batch !== undefined) answered(batch);
    await turn();
  }
  expect(batches.map(({ items }) => items.length)).toEqual([1, 100, 100, 50]);
  expect((await Promise.all(answers)).length).toBe(251);
});

test('a failure rejects every request of its batch, and no later one', async () => {
  const { queue, batches } = slowQueue();
  const failing = Promise.allSettled([queue.request(0), queue.request(1)]);
  await turn();
  batches[0]?.answer.reject(new Fault('the database is gone'));
  expect((await failing).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  const next = queue.request(2);
  await turn();
  batches[1]?.answer.resolve(['two']);
  expect(await next).toBe('two');
});

test('a batch with too few answers is a fault', async () => {
  const { queue, batches } = slowQueue();
  const failing = Promise.allSettled([queue.request(0), queue.request(1)]);
  await turn();
  batches[0]?.answer.resolve(['one']);
  for (const outcome of await failing) expect(outcome).toMatchObject({ reason: expect.any(Fault) });
});

test('at most 10,000 requests wait', async () => {
  const { queue, batches } = slowQueue();
  const all = Promise.allSettled(Array.from({ length: 10_500 }, (_, n) => queue.request(n)));
  await turn();
  for (let i = 0; i < batches.length; i++) {
    const batch = batches[i];
    if (batch !== undefined) answered(batch);
    await turn();
  }
  const refused = (await all).filter(({ status }) => status === 'rejected');
  expect(refused.length).toBe(500);
  expect(refused.every((outcome) => outcome.status === 'rejected' && outcome.reason instanceof Fault)).toBe(true);
});
