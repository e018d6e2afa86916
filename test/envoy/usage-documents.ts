/** Random JSON texts with a usage and a text in them, in every form that JSON has for a name, a number and a string. */

import fc from 'fast-check';

const SPACE = fc.constantFrom('', '', ' ', '\t');

/** A string as JSON text: as it is, or with every character escaped. */
function stringText(text: string, escaped: boolean): string {
  if (!escaped) return JSON.stringify(text);
  return `"${Array.from({ length: text.length }, (_, i) => `\\u${text.charCodeAt(i).toString(16).padStart(4, '0')}`).join('')}"`;
}

const TEXT = fc.oneof(
  fc.string({ unit: 'grapheme' }),
  fc.constantFrom('\\', '"', '\\"', '{', '}', '"usage":{', 'usage', '\n', '\ud800', '\\u0041', 'data:x'),
);
const STRING = fc.tuple(TEXT, fc.nat({ max: 5 })).map(([text, form]) => stringText(text, form === 0));

const COUNT = fc.oneof(
  { weight: 4, arbitrary: fc.nat({ max: 1_000_000 }).map(String) },
  { weight: 1, arbitrary: fc.nat({ max: 1_000_000 }).map((count) => `${count}.0`) },
  { weight: 1, arbitrary: fc.nat({ max: 1000 }).map((count) => `${count}E+3`) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 100_000 }).map((count) => `${count}0e-1`) },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      '1.5',
      '-3',
      '-0',
      '0.0',
      '15e-1',
      '1e9',
      '1000000001',
      '1e400',
      '"7"',
      'null',
      'true',
      '[5]',
      '{"x":5}',
    ),
  },
);

type Member = readonly [name: string, value: string];

/** An object of these members; of those with one name, only the first. */
function objectText(members: readonly Member[], space: string, escaped: boolean): string {
  const seen = new Set<string>();
  const once = members.filter(([name]) => !seen.has(name) && seen.add(name) !== undefined);
  const texts = once.map(([name, value]) => `${space}${stringText(name, escaped)}${space}:${space}${value}${space}`);
  return `{${texts.join(',')}}`;
}

function objectOf(member: fc.Arbitrary<Member>, maxLength = 5): fc.Arbitrary<string> {
  return fc
    .tuple(fc.array(member, { maxLength }), SPACE, fc.nat({ max: 7 }))
    .map(([members, space, form]) => objectText(members, space, form === 0));
}

const named = (names: readonly string[], value: fc.Arbitrary<string>): fc.Arbitrary<Member> =>
  fc.tuple(fc.constantFrom(...names), value);

const { junk: JUNK } = fc.letrec<{ junk: string }>((tie) => ({
  junk: fc.oneof(
    { depthSize: 'small' },
    STRING,
    fc.constantFrom('17', '-0.5e-7', 'true', 'null'),
    fc.array(tie('junk'), { maxLength: 3 }).map((items) => `[${items.join(',')}]`),
    objectOf(
      fc.tuple(fc.oneof(TEXT, fc.constantFrom('usage', 'total_tokens', 'content', 'choices', 'text')), tie('junk')),
      3,
    ),
  ),
}));

const DETAILS = objectOf(named(['cached_tokens', 'reasoning_tokens', 'audio_tokens', 'total_tokens'], COUNT), 3);
const USAGE = fc.oneof(
  {
    weight: 8,
    arbitrary: objectOf(
      fc.oneof(
        { weight: 3, arbitrary: named(['prompt_tokens', 'completion_tokens', 'total_tokens'], COUNT) },
        { weight: 2, arbitrary: named(['input_tokens', 'output_tokens', 'cached_tokens'], COUNT) },
        { weight: 1, arbitrary: named(['cache_creation_input_tokens', 'cache_read_input_tokens'], COUNT) },
        {
          weight: 2,
          arbitrary: named(
            ['prompt_tokens_details', 'input_tokens_details', 'completion_tokens_details', 'output_tokens_details'],
            fc.oneof(DETAILS, fc.constantFrom('null', '[{"cached_tokens":9}]', '7')),
          ),
        },
        { weight: 1, arbitrary: fc.tuple(TEXT, JUNK) },
      ),
      7,
    ),
  },
  { weight: 1, arbitrary: JUNK },
);

/** Values in which texts are, under their names and others, in objects and lists. */
const { held: HELD } = fc.letrec<{ held: string }>((tie) => ({
  held: fc.oneof(
    { depthSize: 'small' },
    STRING,
    fc.constantFrom('17', 'null'),
    fc.array(tie('held'), { maxLength: 3 }).map((items) => `[${items.join(',')}]`),
    objectOf(
      fc.tuple(
        fc.constantFrom(
          'content',
          'text',
          'delta',
          'arguments',
          'thinking',
          'message',
          'role',
          'id',
          'usage',
          'tool_calls',
        ),
        tie('held'),
      ),
      4,
    ),
  ),
}));

/** A JSON object without line breaks between its members. */
export const DOCUMENT: fc.Arbitrary<string> = objectOf(
  fc.oneof(
    { weight: 4, arbitrary: named(['usage'], USAGE) },
    {
      weight: 2,
      arbitrary: named(
        ['response', 'message'],
        objectOf(fc.oneof(named(['usage'], USAGE), named(['output', 'x'], HELD)), 3),
      ),
    },
    { weight: 4, arbitrary: named(['choices', 'delta', 'output', 'content', 'data', 'text'], HELD) },
    { weight: 2, arbitrary: fc.tuple(fc.oneof(TEXT, fc.constantFrom('response', 'total_tokens')), JUNK) },
  ),
  6,
);

const DELTA_SHAPES: readonly ((text: string) => string)[] = [
  (text) => `{"id":"c","model":"m","choices":[{"index":0,"delta":{"content":${text}},"finish_reason":null}]}`,
  (text) => `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":${text}}}`,
  (text) => `{"choices":[{"delta":{"content":${text}}}],"usage":{"prompt_tokens":4,"completion_tokens":2}}`,
  (text) => `{"choices":[{"delta":{"content":${text},"refusal":""}}]}`,
  (text) => `{"delta":${text}}`,
];

/** The events of a stream of text: runs of events that differ in one string only. */
export const DELTAS: fc.Arbitrary<readonly string[]> = fc
  .array(fc.tuple(fc.nat({ max: DELTA_SHAPES.length - 1 }), fc.array(STRING, { minLength: 1, maxLength: 4 })), {
    minLength: 1,
    maxLength: 4,
  })
  .map((runs) => runs.flatMap(([shape, texts]) => texts.map((text) => DELTA_SHAPES[shape]?.(text) ?? '')));
