import { expect, test } from 'vitest';
import { runCampaign } from '../../bench/fuzz/campaign.ts';
import { createGenerator } from '../../bench/fuzz/generator.ts';
import { codeOf, judge } from '../../bench/fuzz/judge.ts';
import { createRandom } from '../../bench/fuzz/random.ts';
import { SEED } from '../support/properties.ts';
import { writeFields } from '../support/protobuf.ts';

test('twenty thousand damaged checks: no crash, no fault, no allow without a valid credential, no other code 0', () => {
  const { outcomes, complaints } = runCampaign(SEED ?? Date.now() % 2 ** 31, 20_000);
  expect(complaints).toEqual([]);
  expect([...outcomes.keys()]).toEqual(
    expect.arrayContaining(['allow', 'public', 'malformed_request', 'invalid_credential', 'no_route']),
  );
});

test('the judge demands no body of a message whose parts come twice, which its own reader does not merge', () => {
  const http = (headers: Uint8Array): Uint8Array =>
    writeFields([
      [2, 'POST'],
      [4, '/v1/chat/completions'],
      [13, headers],
      [13, new Uint8Array()],
    ]);
  const headers = writeFields([
    [
      1,
      writeFields([
        [1, 'content-length'],
        [3, '9'],
      ]),
    ],
  ]);
  const bytes = Buffer.from(writeFields([[1, writeFields([[4, writeFields([[2, http(headers)]])]])]]));
  const answer = Buffer.from(
    writeFields([
      [1, writeFields([[1, 7]])],
      [2, writeFields([[3, '{"code":"unavailable"}']])],
    ]),
  );
  expect(judge({ bytes, mayAllow: undefined }, answer, 'unavailable', []).complaint).toBeUndefined();
});

test('the same seed generates the same checks', () => {
  const run = (): string[] => {
    const next = createGenerator(createRandom(7), { valid: ['Bearer psk_a'] });
    return Array.from({ length: 500 }, () => next().bytes.toString('hex'));
  };
  expect(run()).toEqual(run());
});

test('the judge reports an allow without a valid credential', () => {
  const asked = { bytes: Buffer.from('/v1/models'), mayAllow: undefined };
  const codeZeroBesideDenial = Buffer.from([0x0a, 0x00, 0x12, 0x00]);
  expect(codeOf(Buffer.alloc(0))).toBe(0);
  expect(judge(asked, Buffer.alloc(0), 'no_route', []).complaint).toBeDefined();
  expect(judge(asked, codeZeroBesideDenial, 'allow', []).complaint).toBeDefined();
  expect(judge(asked, Buffer.from([0x0a, 0x02, 0x08, 0x00, 0x1a, 0x00]), 'public', []).complaint).toBeDefined();
});
