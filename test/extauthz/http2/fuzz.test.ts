/**
 * A short fuzz run of the built-in transport with the whole gate behind it; `bench/fuzz/http2/run.ts` is the long one.
 */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { judgeOne, runPlan, type Tally } from '../../../bench/fuzz/http2/campaign.ts';
import { judgeConnection } from '../../../bench/fuzz/http2/judge.ts';
import { type FuzzTarget, startTarget } from '../../../bench/fuzz/http2/target.ts';
import { createRandom } from '../../../bench/fuzz/random.ts';
import { frame } from '../../../src/extauthz/grpc/messages.ts';
import { SEED } from '../../support/properties.ts';
import { FRAME, frameOf } from '../support/frame-peer.ts';
import { CORPUS } from './corpus.ts';

let target: FuzzTarget;
beforeAll(async () => {
  target = await startTarget();
});
afterAll(async () => {
  await target[Symbol.asyncDispose]();
});

test('20,000 damaged frames and 2,000 damaged connections: no exception, no answer on the wrong stream, no code 0 but of an allow', async () => {
  const random = createRandom(SEED ?? Date.now() % 2 ** 31);
  const frames = await runPlan('frames', random, target, 20_000);
  const connections = await runPlan('connections', random, target, 2000);
  expect([frames.complaints, connections.complaints]).toEqual([[], []]);
  // The run is worth nothing if nothing is allowed.
  expect(Math.min(frames.allows, connections.allows)).toBeGreaterThan(100);
  await expect.poll(() => target.calls.stats).toMatchObject({ open: 0, unfinished: 0, unfinishedBytes: 0 });
}, 60_000);

test.each(CORPUS)('of the corpus, %s', async (_name, hex) => {
  const tally: Tally = { connections: 0, frames: 0, allows: 0, complaints: [] };
  await judgeOne(Buffer.from(hex.replace(/\s/g, ''), 'hex'), target, tally);
  expect(tally.complaints).toEqual([]);
});

test('the judge reports an answer on a stream without a request, and code 0 without a credential', () => {
  const allow = frame(Buffer.from([0x0a, 0x00, 0x1a, 0x00]));
  const answer = frameOf(FRAME.data, 0, 3, allow);
  expect(judgeConnection(frameOf(FRAME.data, 0, 1, Buffer.from('secret')), answer, ['secret']).complaint).toContain(
    'sent nothing',
  );
  expect(judgeConnection(frameOf(FRAME.data, 0, 3, Buffer.from('other')), answer, ['secret']).complaint).toContain(
    'no valid credential',
  );
  expect(judgeConnection(frameOf(FRAME.data, 0, 3, Buffer.from('secret')), answer, ['secret'])).toEqual({
    allows: 1,
    complaint: undefined,
  });
});
