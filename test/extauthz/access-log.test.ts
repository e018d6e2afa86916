import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { FinishedRequest } from '../../src/extauthz/access-log/entry.ts';
import { readAccessLog, USAGE_NAMESPACE } from '../../src/extauthz/access-log/reader.ts';
import { accessLog as log, RESERVATION, type Value } from './support/access-log.ts';

const DECISION = { reservation: RESERVATION, tenant: 'acme', key: 'key_1', user: 'usr_1', model: 'm', route: 'POST /v1/x' };
const USAGE = { prompt_tokens: 11, completion_tokens: 22, cached_tokens: 3, total_tokens: 33, model: 'm-2' };

describe('a finished request', () => {
  test('is read with who it was, what it spent and how it ended', () => {
    expect(
      readAccessLog(log({ decision: DECISION, usage: USAGE, status: 200, requestBytes: 1234, responseBytes: 70_000 })),
    ).toEqual([
      {
        ...DECISION,
        usage: { prompt: 11, completion: 22, cached: 3, total: 33, model: 'm-2' },
        status: 200,
        requestBytes: 1234,
        responseBytes: 70_000,
      },
    ]);
  });

  test('that no check of ours let through is not reported, whatever else it says', () => {
    const { reservation: _none, ...others } = DECISION;
    const forged = { 'some.filter': DECISION };
    expect(readAccessLog(log({ decision: others, usage: USAGE }, { others: forged, usage: USAGE }, {}))).toEqual([]);
  });

  test.each([
    ['on its way', { type: 5 }],
    ['at its start', { type: 4 }],
    ['on the upstream side', { type: 9 }],
    ['marked as intermediate', { intermediate: true }],
  ])('is reported once, when it is over: not %s', (_name, report) => {
    expect(readAccessLog(log({ decision: DECISION, usage: USAGE, ...report }))).toEqual([]);
  });

  test.each<[string, Readonly<Record<string, Value>>, FinishedRequest['usage']]>([
    ['a total alone', { total_tokens: 9 }, { prompt: 9, completion: 0, cached: 0, total: 9, model: undefined }],
    [
      'the parts alone',
      { prompt_tokens: 4, completion_tokens: 5 },
      { prompt: 4, completion: 5, cached: 0, total: 9, model: undefined },
    ],
    [
      'numbers as text',
      { total_tokens: '9', prompt_tokens: '4' },
      { prompt: 4, completion: 5, cached: 0, total: 9, model: undefined },
    ],
    ['a fraction', { total_tokens: 1.5 }, undefined],
    ['less than nothing', { total_tokens: 9, prompt_tokens: -1 }, undefined],
    ['more than any answer has', { total_tokens: 1e12 }, undefined],
    ['not a number', { total_tokens: Number.NaN }, undefined],
    ['text that is none', { total_tokens: 'many' }, undefined],
    ['empty text', { total_tokens: '' }, undefined],
    ['no numbers', { model: 'm' }, undefined],
    ['a wrong kind', { total_tokens: true }, undefined],
  ])('spent %s', (_name, usage, expected) => {
    expect(readAccessLog(log({ decision: DECISION, usage }))?.[0]?.usage).toEqual(expected);
  });
});

describe('the reader', () => {
  const value = fc.oneof(fc.string({ unit: 'grapheme' }), fc.double(), fc.boolean(), fc.constant(null));
  const members = fc.dictionary(fc.oneof(fc.string(), fc.constantFrom('reservation', 'tenant', 'total_tokens')), value, {
    maxKeys: 6,
    noNullPrototype: true,
  });

  test('agrees with the complete definition on random entries', () => {
    const text = fc.string({ unit: 'grapheme', maxLength: 40 });
    const tokens = fc.nat({ max: 1_000_000_000 });
    const told = fc.record({
      decision: fc.record({ reservation: text, tenant: text, key: text, user: text, model: text, route: text }),
      others: fc.dictionary(
        fc.string({ minLength: 1 }).filter((name) => !name.startsWith('envoy.') && name !== USAGE_NAMESPACE),
        members,
        { maxKeys: 3, noNullPrototype: true },
      ),
      usage: fc.record({
        prompt_tokens: tokens,
        completion_tokens: tokens,
        cached_tokens: tokens,
        total_tokens: tokens,
        model: text,
      }),
      status: fc.nat({ max: 999 }),
      requestBytes: fc.maxSafeNat(),
      responseBytes: fc.maxSafeNat(),
    });
    fc.assert(
      fc.property(fc.array(told, { maxLength: 4 }), (all) => {
        expect(readAccessLog(log(...all))).toEqual(
          all.map(({ decision, usage, status, requestBytes, responseBytes }) => ({
            ...decision,
            usage: {
              prompt: usage.prompt_tokens,
              completion: usage.completion_tokens,
              cached: usage.cached_tokens,
              total: usage.total_tokens,
              model: usage.model,
            },
            status,
            requestBytes,
            responseBytes,
          })),
        );
      }),
    );
  });

  test('throws at nothing: cut, changed or random bytes are entries, or no message', () => {
    const whole = log({ decision: DECISION, usage: USAGE, status: 200 }, { decision: DECISION });
    fc.assert(
      fc.property(fc.nat({ max: whole.length }), fc.nat({ max: whole.length - 1 }), fc.nat({ max: 255 }), (cut, at, byte) => {
        const changed = Buffer.from(whole);
        changed[at] = byte;
        readAccessLog(changed.subarray(0, cut));
      }),
      { numRuns: 2000 },
    );
    fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => void readAccessLog(Buffer.from(bytes))));
    expect(readAccessLog(Buffer.from('garbage'))).toBeUndefined();
  });
});
