/** Bodies that a proxy sent as text, in which a character may have replaced bytes that are not UTF-8. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type BodyResult, readBody, readJsonBody } from '../../src/decision/body.ts';
import { enough, runs } from '../support/properties.ts';
import { asText, replacingInvalid } from '../support/text-form.ts';
import { checkInput } from '../support/world.ts';

function readText(text: string): BodyResult {
  return readJsonBody(Buffer.from(text), false, true);
}

const INVALID = [[0xff], [0xc3], [0xe2, 0x82], [0xed, 0xa0, 0x80], [0xf5], [0x80], [0xc0, 0xaf]];
const piece = fc.oneof(
  {
    weight: 6,
    arbitrary: fc
      .string({ unit: fc.constantFrom('a', 'e', 'é', '!', '€', '\u{1f600}'), maxLength: 3 })
      .map((text) => [...Buffer.from(text)]),
  },
  { weight: 1, arbitrary: fc.constantFrom(...INVALID) },
);
/** The bytes between the quotes of a string: a known text with pieces put in, or pieces only. */
const inside = fc
  .tuple(
    fc.constantFrom('', 'model', 'collection', 'max_tokens', 'phi-4', 'hr'),
    fc.nat(12),
    fc.array(piece, { maxLength: 2 }),
  )
  .map(([text, at, pieces]) => {
    const known = [...Buffer.from(text)];
    return Buffer.from([...known.slice(0, at), ...pieces.flat(), ...known.slice(at)]);
  });
const quoted = (bytes: Uint8Array): Buffer => Buffer.concat([Buffer.from('"'), bytes, Buffer.from('"')]);
const value = fc.oneof(
  { weight: 3, arbitrary: inside.map(quoted) },
  {
    weight: 1,
    arbitrary: fc.constantFrom('7', 'true', '[]', '["hr"]', '{"model":"x"}').map((text) => Buffer.from(text)),
  },
);
const member = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.tuple(
      fc.constantFrom('model', 'collection', 'messages').map((name) => Buffer.from(name)),
      value,
    ),
  },
  { weight: 1, arbitrary: fc.tuple(inside, value) },
);
const body = fc.array(member, { minLength: 1, maxLength: 4 }).map((members) => {
  const texts = members.map(([name, content]) => Buffer.concat([quoted(name), Buffer.from(':'), content]));
  return Buffer.concat([
    Buffer.from('{'),
    ...texts.flatMap((text, i) => (i === 0 ? [text] : [Buffer.from(','), text])),
    Buffer.from('}'),
  ]);
});

/**
 * The members that the decision names, as a reader takes them that makes `replacement` of each byte that is not UTF-8.
 */
function lenientNames(bytes: Uint8Array, replacement: string): readonly unknown[] {
  const parsed: Record<string, unknown> = JSON.parse(replacingInvalid(bytes, replacement));
  return [parsed['model'] ?? undefined, parsed['collection'] ?? undefined, parsed['max_tokens'] ?? undefined];
}

describe('a body that a proxy sent as text', () => {
  test('names the model, collection and limit that every reader of the original bytes finds, or is rejected', () => {
    fc.assert(
      fc.property(body, (bytes) => {
        for (const text of [asText(bytes), new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)]) {
          const facts = readText(text);
          if (facts.kind === 'problem') continue;
          const { model, collections, largestLimit } = facts;
          for (const replacement of ['', '\ufffd', 'e', '?']) {
            expect(lenientNames(bytes, replacement)).toEqual([model, collections[0], largestLimit]);
          }
        }
      }),
      { numRuns: runs(3000) },
    );
  });

  test('is read like the same bytes if it is UTF-8, or is rejected', () => {
    let alike = 0;
    fc.assert(
      fc.property(body, (bytes) => {
        const raw = readJsonBody(bytes);
        if (raw.kind === 'problem') return;
        const text = readText(asText(bytes));
        if (text.kind === 'problem') expect(text.detail).toContain('as text');
        else expect(text).toEqual(raw);
        alike += text.kind === 'problem' ? 0 : 1;
      }),
      { numRuns: runs(1000) },
    );
    expect(alike).toBeGreaterThanOrEqual(enough(100));
  });

  test.each([
    ['a model', '{"model":"phi-4!"}', 'model'],
    ['a collection', '{"collection":"hr!"}', 'collection'],
    ['one of several collections', '{"collections":["x","h!r"]}', 'collections'],
    ['the name of a member', '{"mo!del":"phi-4"}', undefined],
    ['a model, as U+FFFD,', '{"model":"phi-4\ufffd"}', 'model'],
    ['the name of a member, as U+FFFD,', '{"mod\ufffdel":"phi-4"}', undefined],
  ])('is malformed if %s contains a character that may have replaced another byte', (_name, text, param) => {
    expect(readText(text)).toMatchObject({
      kind: 'problem',
      code: 'malformed_body',
      ...(param === undefined ? {} : { param }),
    });
    expect(readJsonBody(Buffer.from(text))).toMatchObject({ kind: 'body' });
  });

  test('may contain exclamation marks in members that the decision does not read', () => {
    const text = '{"model":"phi-4","messages":[{"role":"user","content":"Hello!"}],"stop":"!"}';
    expect(readText(text)).toEqual(readJsonBody(Buffer.from(text)));
  });

  test('names a model with an exclamation mark by its escape', () => {
    expect(readText(String.raw`{"model":"phi-4\u0021","x\u0021":1}`)).toMatchObject({ kind: 'body', model: 'phi-4!' });
  });

  test('asks for the usage of a stream only if no name in its options contains an exclamation mark', () => {
    const options = (more: string) => `{"stream":true,"stream_options":{"include_usage":true${more}}}`;
    expect(readText(options(',"x":"!"'))).toMatchObject({ kind: 'body', reportsUsage: true });
    expect(readText(options(',"include_usage!":false'))).toMatchObject({ kind: 'body', reportsUsage: false });
    expect(readText(options(String.raw`,"include_usage\u0021":false`))).toMatchObject({
      kind: 'body',
      reportsUsage: true,
    });
  });

  test('is distinguished from one that was sent as bytes', () => {
    const input = checkInput({ contentType: 'application/json', body: Buffer.from('{"model":"a!"}') });
    expect(readBody(input)).toMatchObject({ model: 'a!' });
    expect(readBody({ ...input, bodyAsText: true })).toMatchObject({ code: 'malformed_body', param: 'model' });
  });
});
