import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { USAGE_NAMESPACE } from '../../src/extauthz/access-log/metadata.ts';
import { readAccessLog } from '../../src/extauthz/access-log/reader.ts';
import type { FinishedRequest } from '../../src/extauthz/ports.ts';
import { runs } from '../support/properties.ts';
import { entryBytes, accessLog as log, messageOf, RESERVATION, replaced, type Value } from './support/access-log.ts';

const DECISION = {
  reservation: RESERVATION,
  tenant: 'acme',
  key: 'key_1',
  user: 'usr_1',
  model: 'm',
  route: 'POST /v1/x',
};
const USAGE = { prompt_tokens: 11, completion_tokens: 22, cached_tokens: 3, total_tokens: 33, model: 'm-2' };

const ANSWERED = { details: 'via_upstream', forwardedNanos: 5 };

const NOTHING = { finished: [], running: [], unreadable: 0, whole: true };

/** The finished requests of a message without a flaw. */
function ended(message: Buffer): readonly FinishedRequest[] {
  const { finished, ...rest } = readAccessLog(message);
  expect(rest).toEqual({ running: [], unreadable: 0, whole: true });
  return finished;
}

describe('a finished request', () => {
  test('is read with its principal, its usage and its outcome', () => {
    expect(ended(log({ decision: DECISION, usage: USAGE, status: 200, responseBytes: 70_000, ...ANSWERED }))).toEqual([
      {
        ...DECISION,
        usage: { prompt: 11, completion: 22, cached: 3, cacheWrite: 0, total: 33, model: 'm-2' },
        textBytes: undefined,
        status: 200,
        responseBytes: 70_000,
        upstream: 'answered',
      },
    ]);
  });

  test('without the metadata of a check by Postern is not reported, for any other members', () => {
    const { reservation: _none, ...others } = DECISION;
    const forged = { 'some.filter': DECISION };
    expect(readAccessLog(log({ decision: others, usage: USAGE }, { others: forged, usage: USAGE }, {}))).toEqual(
      NOTHING,
    );
  });

  test.each([
    ['at its start', { type: 4 }],
    ['on the upstream side', { type: 9 }],
    ['on the upstream side while it runs', { type: 8, intermediate: true }],
    ['marked as intermediate at its end', { type: 6, intermediate: true }],
  ])('is reported once, when it is over: not %s', (_name, report) => {
    expect(readAccessLog(log({ decision: DECISION, usage: USAGE, ...report }))).toEqual(NOTHING);
  });

  test.each([
    ['a periodic entry', { type: 5, intermediate: true }],
    ['a periodic entry of an Envoy that does not mark it', { type: 5 }],
    ['an intermediate entry without a type', { type: 0, intermediate: true }],
  ])('that is still running is reported by its reservation: %s', (_name, report) => {
    expect(readAccessLog(log({ decision: DECISION, ...report }, report))).toEqual({
      ...NOTHING,
      running: [RESERVATION],
    });
  });

  test.each<[string, Parameters<typeof log>[0], FinishedRequest['upstream']]>([
    ['answered', ANSWERED, 'answered'],
    [
      'forwarded to the upstream in the same nanosecond',
      { forwardedNanos: 0, details: 'downstream_remote_disconnect' },
      'forwarded',
    ],
    [
      'ended by the upstream',
      { forwardedNanos: 1, details: 'upstream_reset_before_response_started{connection_termination}' },
      'forwarded',
    ],
    ['answered by another filter', { details: 'via_upstream_or_so', forwardedNanos: 1 }, 'forwarded'],
    ['left before it was forwarded', { details: 'downstream_remote_disconnect' }, 'untouched'],
  ])("is reported with the upstream's part in it: %s", (_name, told, upstream) => {
    expect(ended(log({ decision: DECISION, status: 200, ...told }))[0]?.upstream).toBe(upstream);
  });

  const usage = (parts: Partial<NonNullable<FinishedRequest['usage']>>): FinishedRequest['usage'] => ({
    prompt: undefined,
    completion: undefined,
    cached: 0,
    cacheWrite: 0,
    total: undefined,
    model: undefined,
    ...parts,
  });
  test.each<[string, Readonly<Record<string, Value>>, FinishedRequest['usage']]>([
    ['a total', { total_tokens: 9 }, usage({ prompt: 9, completion: 0, total: 9 })],
    ['both parts', { prompt_tokens: 4, completion_tokens: 5 }, usage({ prompt: 4, completion: 5, total: 9 })],
    ['a total and one part', { prompt_tokens: 4, total_tokens: 9 }, usage({ prompt: 4, completion: 5, total: 9 })],
    [
      'a total larger than its parts',
      { prompt_tokens: 4, completion_tokens: 5, total_tokens: 11 },
      usage({ prompt: 4, completion: 5, total: 11 }),
    ],
    [
      'a total smaller than its parts',
      { prompt_tokens: 4, completion_tokens: 5, total_tokens: 1 },
      usage({ prompt: 4, completion: 5, total: 9 }),
    ],
    ['a prompt only', { prompt_tokens: 4 }, usage({ prompt: 4 })],
    ['an answer only', { output_tokens: 4 }, usage({ completion: 4 })],
    [
      'an input apart from what the cache had',
      { input_tokens: 1, cache_creation_input_tokens: 2, cache_read_input_tokens: 4, output_tokens: 8 },
      usage({ prompt: 7, completion: 8, cached: 4, cacheWrite: 2, total: 15 }),
    ],
    [
      'a prompt that contains what the cache had',
      { prompt_tokens: 9, cache_read_input_tokens: 4, completion_tokens: 1, total_tokens: 10 },
      usage({ prompt: 9, completion: 1, cached: 4, total: 10 }),
    ],
    ['a number as text', { total_tokens: '9', prompt_tokens: 4 }, usage({ prompt: 4 })],
    ['a fraction', { total_tokens: 1.5 }, undefined],
    ['less than nothing', { total_tokens: 9, prompt_tokens: -1 }, usage({ prompt: 9, completion: 0, total: 9 })],
    ['more than any answer has', { total_tokens: 1e12 }, undefined],
    ['not a number', { total_tokens: Number.NaN }, undefined],
    ['no numbers', { model: 'm' }, undefined],
    ['a wrong kind', { total_tokens: true }, undefined],
  ])('spent %s', (_name, told, expected) => {
    expect(ended(log({ decision: DECISION, usage: told }))[0]?.usage).toEqual(expected);
  });

  test.each([
    [0, 0],
    [209, 209],
    [-1, undefined],
    [1.5, undefined],
    ['9', undefined],
  ])('has a text of %j bytes', (told, expected) => {
    expect(ended(log({ decision: DECISION, usage: { text_bytes: told } }))[0]).toMatchObject({
      usage: undefined,
      textBytes: expected,
    });
  });
});

test('the reader of the access log reports an answer whose encoding hides its text', () => {
  const [told] = ended(log({ decision: DECISION, usage: { hidden: 1 } }));
  expect(told).toMatchObject({ usage: undefined, textBytes: 'hidden' });
});

describe('the reader', () => {
  const value = fc.oneof(fc.string({ unit: 'grapheme' }), fc.double(), fc.boolean(), fc.constant(null));
  const members = fc.dictionary(
    fc.oneof(fc.string(), fc.constantFrom('reservation', 'tenant', 'total_tokens')),
    value,
    {
      maxKeys: 6,
      noNullPrototype: true,
    },
  );

  /** ASCII of at most 8 KiB. */
  const isCharges = (text: string): boolean => text.length <= 8192 && [...text].every((each) => each <= '\x7f');

  test('agrees with the complete definition on random entries', () => {
    const text = fc.string({ unit: 'grapheme', maxLength: 40 });
    const tokens = fc.nat({ max: 1_000_000_000 });
    const charges = fc.oneof(text, fc.string({ unit: 'binary-ascii', maxLength: 9000 }));
    const told = fc.record({
      decision: fc.record({
        reservation: text,
        tenant: text,
        key: text,
        user: text,
        model: text,
        route: text,
        charges,
      }),
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
        text_bytes: fc.maxSafeNat(),
        model: text,
      }),
      status: fc.nat({ max: 999 }),
      responseBytes: fc.maxSafeNat(),
    });
    fc.assert(
      fc.property(fc.array(told, { maxLength: 4 }), (all) => {
        expect(ended(log(...all))).toEqual(
          all.map(({ decision, usage, status, responseBytes }) => ({
            ...decision,
            charges: isCharges(decision.charges) ? decision.charges : undefined,
            usage: {
              prompt: usage.prompt_tokens,
              completion: usage.completion_tokens,
              cached: usage.cached_tokens,
              cacheWrite: 0,
              total: Math.max(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens),
              model: usage.model,
            },
            textBytes: usage.text_bytes,
            status,
            responseBytes,
            upstream: 'untouched',
          })),
        );
      }),
    );
  });

  test('throws at nothing: cut, changed or random bytes are entries, or no message', () => {
    const whole = log({ decision: DECISION, usage: USAGE, status: 200 }, { decision: DECISION });
    fc.assert(
      fc.property(
        fc.nat({ max: whole.length }),
        fc.nat({ max: whole.length - 1 }),
        fc.nat({ max: 255 }),
        (cut, at, byte) => {
          const changed = Buffer.from(whole);
          changed[at] = byte;
          readAccessLog(changed.subarray(0, cut));
        },
      ),
      { numRuns: runs(2000) },
    );
    fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => void readAccessLog(Buffer.from(bytes))));
    expect(readAccessLog(Buffer.from('garbage')).whole).toBe(false);
  });
});

describe('an entry that cannot be read', () => {
  const OTHER = { decision: { ...DECISION, reservation: 'cd'.repeat(23) }, status: 200 };
  const one = (): Buffer => entryBytes({ decision: DECISION, usage: USAGE, status: 200 });
  const beside = (broken: Buffer) => readAccessLog(messageOf([entryBytes(OTHER), broken, entryBytes(OTHER)]));

  test('is counted and skipped, and costs no entry beside it', () => {
    for (const broken of [
      one().subarray(0, -1),
      Buffer.from('garbage'),
      Buffer.from([0x0a, 0x7f]),
      Buffer.from([0x80]),
    ]) {
      const { finished, ...rest } = beside(broken);
      expect(finished.map(({ reservation }) => reservation)).toEqual([
        OTHER.decision.reservation,
        OTHER.decision.reservation,
      ]);
      expect(rest).toEqual({ running: [], unreadable: 1, whole: true });
    }
  });

  test('does not include an entry with a string that is not UTF-8 in a field that metering does not use', () => {
    const path = replaced(one(), '/v1/chat', [0xff, 0xfe, 0xc3, 0x28, 0xe2, 0x82, 0xff, 0xff]);
    const cluster = replaced(path, 'upstream', [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
    expect(readAccessLog(messageOf([cluster]))).toEqual(readAccessLog(messageOf([one()])));
  });

  test('does not include an entry with a model that was cut within a character: U+FFFD replaces the cut', () => {
    const usage = { ...USAGE, model: 'echo-é' };
    const bytes = replaced(entryBytes({ decision: DECISION, usage }), 'echo-', [...Buffer.from('echo'), 0xe2]);
    expect(ended(messageOf([bytes]))[0]).toMatchObject({ ...DECISION, usage: { total: 33, model: 'echo\ufffdé' } });
  });

  test('does not include an entry with an identifier that is not UTF-8 or too long: that field is missing', () => {
    const decision = { ...DECISION, key: 'k'.repeat(513), user: 'usr_9' };
    const bytes = replaced(entryBytes({ decision }), 'usr_9', [0x75, 0x73, 0x72, 0x5f, 0xc3]);
    expect(ended(messageOf([bytes]))[0]).toMatchObject({ tenant: 'acme', user: undefined, key: undefined, model: 'm' });
  });

  test('does not include an entry with a name of any length: the name is cut to 512 bytes at a character border', () => {
    const lengths = [511, 512, 513, 514, 515, 1_000_000];
    for (const character of ['a', 'é', '日', '😀']) {
      for (const length of lengths) {
        const model = `${'x'.repeat(length % 4)}${character.repeat(Math.ceil(length / Buffer.byteLength(character)))}`;
        const [request] = ended(log({ decision: { ...DECISION, model }, usage: { total_tokens: 1, model } }));
        expect(request?.usage?.model).toBe(request?.model);
        const kept = request?.model ?? '';
        expect(model.startsWith(kept)).toBe(true);
        expect(Buffer.byteLength(kept)).toBeLessThanOrEqual(512);
        if (kept !== model) expect(Buffer.byteLength(kept)).toBeGreaterThan(512 - Buffer.byteLength(character));
      }
    }
  });

  test('that is followed by broken framing loses neither what came before nor hides that the message is broken', () => {
    const whole = messageOf([entryBytes(OTHER)]);
    const { finished, ...rest } = readAccessLog(Buffer.concat([whole, Buffer.from('garbage')]));
    expect(finished).toHaveLength(1);
    expect(rest).toEqual({ running: [], unreadable: 0, whole: false });
  });

  test('with any bytes leaves every other entry of random batches unchanged', () => {
    const told = fc.record({
      id: fc.nat({ max: 2 ** 30 }),
      running: fc.boolean(),
      model: fc.string({ unit: 'grapheme', maxLength: 20 }),
      tokens: fc.nat({ max: 1000 }),
      corruption: fc.option(
        fc.oneof(
          fc.record({
            kind: fc.constant('change' as const),
            at: fc.nat(),
            byte: fc.nat({ max: 255 }),
            times: fc.nat({ max: 5 }),
          }),
          fc.record({ kind: fc.constant('cut' as const), at: fc.nat() }),
          fc.record({ kind: fc.constant('replace' as const), bytes: fc.uint8Array({ maxLength: 40 }) }),
        ),
        { freq: 2 },
      ),
    });
    fc.assert(
      fc.property(fc.array(told, { maxLength: 12 }), (all) => {
        const entries = all.map(({ id, running, model, tokens, corruption }, n) => {
          const reservation = `${n}-${id}`;
          const bytes = entryBytes({
            decision: { ...DECISION, reservation, model },
            usage: { total_tokens: tokens, model },
            ...(running ? { type: 5, intermediate: true } : {}),
          });
          return { sound: corruption === null, bytes: corruption === null ? bytes : corrupted(bytes, corruption) };
        });
        const batch = readAccessLog(messageOf(entries.map(({ bytes }) => bytes)));
        const alone = entries.map(({ bytes }) => readAccessLog(messageOf([bytes])));
        expect(batch.whole).toBe(true);
        // Each entry in the batch has the same members as by itself; a valid entry has all of them.
        expect(batch.finished).toEqual(alone.flatMap(({ finished }) => finished));
        expect(batch.running).toEqual(alone.flatMap(({ running }) => running));
        expect(batch.unreadable).toBe(alone.reduce((sum, { unreadable }) => sum + unreadable, 0));
        for (const [n, { sound }] of entries.entries()) {
          const { id = 0, running = false, model = '', tokens = 0 } = all[n] ?? {};
          const reservation = `${n}-${id}`;
          const usage = { prompt: tokens, completion: 0, cached: 0, total: tokens, model };
          if (!sound) continue;
          expect(alone[n]).toMatchObject(
            running
              ? { running: [reservation], finished: [], unreadable: 0 }
              : { running: [], finished: [{ ...DECISION, reservation, model, usage }], unreadable: 0 },
          );
        }
      }),
      { numRuns: runs(400) },
    );
  });
});

type Corruption =
  | { readonly kind: 'change'; readonly at: number; readonly byte: number; readonly times: number }
  | { readonly kind: 'cut'; readonly at: number }
  | { readonly kind: 'replace'; readonly bytes: Uint8Array };

function corrupted(bytes: Buffer, corruption: Corruption): Buffer {
  switch (corruption.kind) {
    case 'change': {
      const changed = Buffer.from(bytes);
      for (let i = 0; i <= corruption.times; i++) changed[(corruption.at + i * 7) % bytes.length] = corruption.byte;
      return changed;
    }
    case 'cut':
      return bytes.subarray(0, corruption.at % bytes.length);
    case 'replace':
      return Buffer.from(corruption.bytes);
    default:
      return corruption satisfies never;
  }
}
