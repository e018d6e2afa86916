import { expect, test } from 'vitest';
import { runCampaign } from '../../bench/fuzz/campaign.ts';
import { createGenerator } from '../../bench/fuzz/generator.ts';
import { codeOf, judge } from '../../bench/fuzz/judge.ts';
import { createRandom } from '../../bench/fuzz/random.ts';

test('twenty thousand damaged checks: no crash, no fault, no allow without a valid credential, no other code 0', () => {
  const { outcomes, complaints } = runCampaign(Date.now() % 2 ** 31, 20_000);
  expect(complaints).toEqual([]);
  expect([...outcomes.keys()]).toEqual(
    expect.arrayContaining(['allow', 'public', 'malformed_request', 'invalid_credential', 'no_route']),
  );
});

test('the same seed asks the same', () => {
  const run = (): string[] => {
    const next = createGenerator(createRandom(7), { valid: ['Bearer psk_a'] });
    return Array.from({ length: 500 }, () => next().bytes.toString('hex'));
  };
  expect(run()).toEqual(run());
});

test('the judge knows an open door when it sees one', () => {
  const asked = { bytes: Buffer.from('/v1/models'), mayAllow: undefined };
  const codeZeroBesideDenial = Buffer.from([0x0a, 0x00, 0x12, 0x00]);
  expect(codeOf(Buffer.alloc(0))).toBe(0);
  expect(judge(asked, Buffer.alloc(0), 'no_route', []).complaint).toBeDefined();
  expect(judge(asked, codeZeroBesideDenial, 'allow', []).complaint).toBeDefined();
  expect(judge(asked, Buffer.from([0x0a, 0x02, 0x08, 0x00, 0x1a, 0x00]), 'public', []).complaint).toBeDefined();
});
