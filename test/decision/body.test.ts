import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isJsonType, readBody, readJsonBody } from '../../src/decision/body.ts';
import {
  MAX_CHOICES,
  MAX_COLLECTIONS,
  MAX_MEMBERS,
  MAX_PROMPTS,
  MAX_RESOURCE_NAME,
} from '../../src/decision/limits.ts';
import { type HeaderValue, REPEATED } from '../../src/decision/model.ts';
import { anyCharacter, runs } from '../support/properties.ts';
import { checkInput } from '../support/world.ts';
import { naiveBody } from './naive-body.ts';

const encoder = new TextEncoder();

function read(text: string, readsPrompts = false) {
  return readJsonBody(encoder.encode(text), readsPrompts);
}

/** Returns the facts of the body, or `malformed`. */
function facts(bytes: Uint8Array, readsPrompts = false) {
  const body = readJsonBody(bytes, readsPrompts);
  if (body.kind === 'problem') return 'malformed';
  const { model, collections, largestLimit, smallestLimit, choices, prompts, reportsUsage, promptTokens, inlineFiles } =
    body;
  return { model, collections, largestLimit, smallestLimit, choices, prompts, reportsUsage, promptTokens, inlineFiles };
}

function naiveFacts(bytes: Uint8Array, readsPrompts = false) {
  const body = naiveBody(bytes, readsPrompts);
  if (body === undefined) return 'malformed';
  const { model, collections, limits, choices, prompts, reportsUsage, promptTokens, inlineFiles } = body;
  const [largestLimit, smallestLimit] = limits.length === 0 ? [] : [Math.max(...limits), Math.min(...limits)];
  return { model, collections, largestLimit, smallestLimit, choices, prompts, reportsUsage, promptTokens, inlineFiles };
}

const listedName = fc.constantFrom(
  'model',
  'max_tokens',
  'max_completion_tokens',
  'max_output_tokens',
  'n',
  'best_of',
  'stream',
  'collection',
  'collections',
  'prompt',
  'stream_options',
);
/** A member name as JSON text: plain, partly escaped, or in another case. */
const nameText = fc.oneof(
  { weight: 8, arbitrary: listedName.map((name) => JSON.stringify(name)) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(listedName, fc.nat(20))
      .map(
        ([name, at]) =>
          `"${[...name].map((one, i) => (i === at % name.length ? `\\u00${one.charCodeAt(0).toString(16)}` : one)).join('')}"`,
      ),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      '"Model"',
      '"MAX_TOKENS"',
      '"N"',
      '"\u017ftream"',
      '"max_to\u212aens"',
      '"\\u017Ftream"',
      '"be\u017ft_of"',
      '"Prompt"',
      '"Stream_Options"',
    ),
  },
  { weight: 4, arbitrary: fc.string({ unit: 'grapheme', maxLength: 4 }).map((name) => JSON.stringify(name)) },
  {
    weight: 4,
    arbitrary: fc.constantFrom('"messages"', '"data"', '"input"', '"tools"', '"x"', '""', '"modes"', '"max-tokens"'),
  },
);
const valueText = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom('"phi-4"', '"hr"', '["hr","x"]', '[]', '16', '0', 'true', 'false', 'null') },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      '""',
      '["hr",null]',
      '[""]',
      '-0',
      '-1',
      '1.0',
      '1e3',
      '01',
      '99999999999999999999',
      '9007199254740993',
      '"\\ud800"',
      '"a\\u0000"',
      'nul',
      '"é"',
    ),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      '["a","b"]',
      '[1, -2.5e1,3]',
      '[[1,2],[3],[]]',
      '["a",1]',
      '[[1],"a"]',
      '[null]',
      '{"a":[1,"b"],"c":2}',
      `{"url":"data:image/png;base64,${'QUJD'.repeat(64)}"}`,
      `"${'QUJD'.repeat(64)}"`,
      '"\\u00E9\\ud83d\\ude42\\n\\ud800 \\u20AC日"',
      '["Data:,AAAA","data",["data:x"]]',
    ),
  },
  { weight: 1, arbitrary: fc.json({ maxDepth: 3 }) },
);
/** Reports whether a piece of a string is valid by itself. */
function isText(bytes: Uint8Array): boolean {
  try {
    JSON.parse(`"${new TextDecoder('utf-8', { fatal: true }).decode(bytes)}"`);
    return true;
  } catch {
    return false;
  }
}

/**
 * A stream, with options of every kind: most of them ask for usage, and some in a way that readers understand
 * differently.
 */
const usageMember = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.constantFrom('"include_usage":true', '"include_usag\\u0065" : true', '"include_usage":true '),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      '"include_usage":false',
      '"include_usage":null',
      '"include_usage":"true"',
      '"Include_Usage":true',
      '"\u0131nclude_usage":false',
      '"include_usage":tru',
    ),
  },
  { weight: 3, arbitrary: fc.constantFrom('"include_obfuscation":false', '"x":{"include_usage":false}', '"data":"x"') },
);
const streamMembers = fc
  .tuple(
    fc.constantFrom('true', 'true', 'true', 'false', 'null'),
    fc.array(usageMember, { maxLength: 2 }),
    fc.boolean(),
  )
  .map(([stream, list, isFirst]) => {
    const both = [`"stream":${stream}`, `"stream_options": {${list.join(', ')}}`];
    return (isFirst ? both : both.toReversed()).join(',');
  });
const space = fc.constantFrom('', '', ' ', '\n\t', '\r');
const members = fc
  .tuple(
    fc.array(fc.tuple(space, nameText, space, valueText, space), { maxLength: 6 }),
    fc.option(streamMembers, { nil: undefined, freq: 1 }),
  )
  .map(([list, stream]) => [
    ...list.map(([a, name, b, value, c]) => `${a}${name}${b}:${b}${value}${c}`),
    ...(stream === undefined ? [] : [stream]),
  ]);
const document = fc
  .tuple(members, space, fc.constantFrom('', '', '', '', ' x', ','))
  .map(([list, end, after]) => `{${list.join(',')}${end}}${after}`);

describe('the byte reader', () => {
  test('reads the same bodies as JSON.parse with plain strings, and rejects all others', () => {
    fc.assert(
      fc.property(document, fc.boolean(), (text, readsPrompts) => {
        const bytes = encoder.encode(text);
        expect(facts(bytes, readsPrompts)).toEqual(naiveFacts(bytes, readsPrompts));
      }),
      { numRuns: runs(3000) },
    );
  });

  test('agrees on bytes with random damage', () => {
    const damage = fc.array(
      fc.tuple(fc.nat(1000), fc.oneof(fc.nat(255), fc.constantFrom(0x22, 0x5c, 0x7b, 0x7d, 0x2c, 0xc3, 0xed))),
      {
        minLength: 1,
        maxLength: 3,
      },
    );
    fc.assert(
      fc.property(document, damage, (text, changes) => {
        const bytes = encoder.encode(text);
        for (const [at, byte] of changes) bytes[at % bytes.length] = byte;
        expect(facts(bytes)).toEqual(naiveFacts(bytes));
      }),
      { numRuns: runs(1500) },
    );
  });

  test('agrees on strings in which escapes, other scripts and damage are next to each other, wherever they begin', () => {
    const pieces = fc.array(
      fc.constantFrom(
        ...[
          '\\n',
          '\\n',
          '\\"',
          '\\\\',
          '\\/',
          '\\u00e9',
          '\\u20AC',
          '\\ud83d\\ude42',
          '\\u000g',
          '\\x',
          '\\',
          '"',
          '\u0001',
        ].map((text) => encoder.encode(text)),
        ...['a', 'bcd', 'The quick brown fox', 'é', '日本語', '🙂'].map((text) => encoder.encode(text)),
        ...[[0xc3], [0xa9], [0xed, 0xa0, 0x80], [0xff]].map((bytes) => Uint8Array.from(bytes)),
      ),
      { maxLength: 40 },
    );
    const harmless = pieces.map((list) => list.filter((bytes) => isText(bytes)));
    fc.assert(
      fc.property(fc.nat(8), fc.oneof(pieces, harmless), fc.constantFrom('x', 'prompt'), (shift, list, member) => {
        const [before, after] = [`{"${'y'.repeat(shift)}":1,"${member}":"`, '"}'].map((text) => encoder.encode(text));
        const bytes = Buffer.concat([before ?? [], ...list, after ?? []].map((part) => Buffer.from(part)));
        expect(facts(bytes, true)).toEqual(naiveFacts(bytes, true));
      }),
      { numRuns: runs(4000) },
    );
  });

  test('agrees on lists of numbers in any spelling, of which some are none', () => {
    const number = fc.constantFrom(
      '0',
      '1',
      '7',
      '10',
      '12345',
      '99999999999999999999',
      '-1',
      '-0',
      '0.5',
      '1e5',
      '1.5E-3',
    );
    const wrong = fc.constantFrom(
      '01',
      '00',
      '-',
      '1.',
      '.5',
      '1e',
      '',
      '1 2',
      'x',
      '"a"',
      '[1]',
      '{"a":1}',
      '[]',
      '"',
    );
    const item = fc.oneof({ weight: 40, arbitrary: number }, { weight: 1, arbitrary: wrong });
    const comma = fc.oneof(
      { weight: 20, arbitrary: fc.constantFrom(',', ', ') },
      fc.constantFrom(' ,', ',  ', ',\n', ',,', ' '),
    );
    const list = fc.array(fc.tuple(item, comma), { maxLength: 20 });
    fc.assert(
      fc.property(
        list,
        item,
        fc.constantFrom('x', 'prompt'),
        fc.constantFrom(']', ',]', ' ]', ''),
        (items, last, member, end) => {
          const bytes = encoder.encode(`{"${member}":[${items.flat().join('')}${last}${end}}`);
          expect(facts(bytes, true)).toEqual(naiveFacts(bytes, true));
        },
      ),
      { numRuns: runs(4000) },
    );
  });

  test('agrees on any value in place of an object, and on its text cut anywhere', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 4 }), fc.nat(1000), (text, cut) => {
        const wrapped = encoder.encode(`{"x":${text}}`);
        expect(facts(encoder.encode(text))).toEqual(naiveFacts(encoder.encode(text)));
        const part = wrapped.subarray(0, cut % wrapped.length);
        expect(facts(wrapped)).toEqual(naiveFacts(wrapped));
        expect(facts(part)).toBe('malformed');
      }),
      { numRuns: runs(1000) },
    );
  });
});

describe('a body is malformed', () => {
  test.each([
    ['a repeated member', '{"model":"a","model":"b"}'],
    ['a repeated member that is not read', '{"x":1,"x":1}'],
    ['a repeated member spelt with an escape', '{"x":1,"\\u0078":1}'],
    ['a member that is read and repeated as null', '{"model":"a","model":null}'],
    ['a member that differs only in case', '{"Model":"a"}'],
    ['the long s', '{"\u017ftream":true}'],
    ['the Kelvin sign', '{"max_to\u212aens":1}'],
    ['the dotless i', '{"collect\u0131on":"a"}'],
    ['a byte-order mark', '\ufeff{}'],
    ['an array', '[]'],
    ['a string', '"model"'],
    ['more after the object', '{} {}'],
    ['a trailing comma', '{"model":"a",}'],
    ['a comment', '{/**/}'],
    ['single quotes', "{'model':'a'}"],
    ['a control character in a string', '{"x":"\u0000"}'],
    ['a line feed in a string', '{"x":"\n"}'],
    ['a bad escape', '{"x":"\\x"}'],
    ['a short escape', '{"x":"\\u12"}'],
    ['a leading zero', '{"x":01}'],
    ['NaN', '{"x":NaN}'],
    ['a model that is an array', '{"model":["a"]}'],
    ['an empty model', '{"model":""}'],
    ['a lone surrogate in a model', '{"model":"\\ud800"}'],
    ['a NUL in a model', '{"model":"phi\\u0000"}'],
    ['an empty collection', '{"collection":""}'],
    ['collections as a string', '{"collections":"hr"}'],
    ['null within collections', '{"collections":["hr",null]}'],
    ['an empty name within collections', '{"collections":[""]}'],
    ['stream as a string', '{"stream":"true"}'],
    ['a limit as a string', '{"max_tokens":"1"}'],
    ['a limit with a sign', '{"max_tokens":-1}'],
    ['minus nought', '{"max_tokens":-0}'],
    ['a limit with a fraction', '{"max_tokens":1.0}'],
    ['a limit with an exponent', '{"max_tokens":1e3}'],
    ['n as null within an array', '{"n":[null]}'],
    ['best_of as a boolean', '{"best_of":true}'],
  ])('with %s', (_, text) => {
    expect(read(text)).toMatchObject({ kind: 'problem', code: 'malformed_body' });
  });

  test.each([
    ['a stray continuation byte', [0x80]],
    ['an overlong slash', [0xc0, 0xaf]],
    ['an encoded surrogate', [0xed, 0xa0, 0x80]],
    ['a character past U+10FFFF', [0xf4, 0x90, 0x80, 0x80]],
    ['a character cut short', [0xe2, 0x82]],
  ])('with %s in a string', (_, bytes) => {
    const body = Uint8Array.from([...encoder.encode('{"x":"'), ...bytes, ...encoder.encode('"}')]);
    expect(readJsonBody(body).kind).toBe('problem');
  });

  test.each(['model', 'collection', 'collections', 'stream', 'n', 'max_tokens', 'stream_options'])(
    'that ends before the value of %s is no JSON, rather than a value of the wrong type',
    (member) => {
      const body = `{"${member}":`;
      expect(read(body)).toEqual({
        kind: 'problem',
        code: 'malformed_body',
        detail: `The body is not valid JSON of at most 128 levels in UTF-8, at byte ${body.length}.`,
      });
    },
  );

  test('the answer names a rejected member as the parameter at fault', () => {
    expect(read('{"max_tokens":1.5}')).toMatchObject({ param: 'max_tokens' });
    expect(read('{"Model":"a"}')).toMatchObject({ param: 'model' });
  });
});

describe('a body is read', () => {
  test('null is absent', () => {
    const nulls = '{"model":null,"collection":null,"collections":null,"max_tokens":null,"n":null,"stream":null}';
    expect(read(nulls)).toMatchObject({
      kind: 'body',
      model: undefined,
      collections: [],
      largestLimit: undefined,
      choices: 1,
    });
  });

  test('members within members do not count, nor do names of inherited properties', () => {
    const body = read('{"messages":[{"model":"x","model":"y"}],"__proto__":{"model":"z"},"constructor":1,"model":"m"}');
    expect(body).toMatchObject({ kind: 'body', model: 'm' });
  });

  test('all limits and all collections count', () => {
    const body = read(
      '{"max_tokens":5,"max_completion_tokens":7,"max_output_tokens":6,"n":2,"best_of":3,"collection":"a","collections":["b"]}',
    );
    expect(body).toMatchObject({ largestLimit: 7, smallestLimit: 5, choices: 3, collections: ['a', 'b'] });
  });

  test('a limit too large to count stays the largest number', () => {
    expect(read(`{"max_tokens":${'9'.repeat(5000)}}`)).toMatchObject({ largestLimit: Number.MAX_SAFE_INTEGER });
  });

  test('escapes and other scripts are unescaped in names', () => {
    expect(read('{"model":"\\u006cl\\u00e9 \\ud83d\\ude42/\u65e5"}')).toMatchObject({
      model: 'll\u00e9 \ud83d\ude42/\u65e5',
    });
  });

  test('a lone surrogate elsewhere is no fault of the request', () => {
    expect(read('{"messages":"\\ud800"}').kind).toBe('body');
  });

  test('128 levels are read, 129 are not, and 100,000 do no harm', () => {
    const nested = (levels: number) => `{"x":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`;
    expect(read(nested(128)).kind).toBe('body');
    expect(read(nested(129)).kind).toBe('problem');
    expect(read(nested(100_000)).kind).toBe('problem');
    expect(read(`{"x":${'{"a":'.repeat(127)}1${'}'.repeat(127)}}`).kind).toBe('body');
    expect(read(`{"x":${'{"a":'.repeat(128)}1${'}'.repeat(128)}}`).kind).toBe('problem');
  });

  test('256 members are read, and a repeat among them is found', () => {
    const many = (count: number) => Array.from({ length: count }, (_, i) => `"m${i}":0`).join(',');
    expect(read(`{${many(MAX_MEMBERS)}}`).kind).toBe('body');
    expect(read(`{${many(MAX_MEMBERS - 1)},"m7":0}`)).toMatchObject({
      kind: 'problem',
      detail: expect.stringContaining('once'),
    });
    expect(read(`{${many(MAX_MEMBERS - 1)},"\\u006d254":0}`)).toMatchObject({
      detail: expect.stringContaining('once'),
    });
    expect(read(`{${many(MAX_MEMBERS + 1)}}`)).toMatchObject({
      kind: 'problem',
      detail: expect.stringContaining('256'),
    });
  });

  test('the reader stops at the 257th member: the byte after it, which no JSON holds, is not what is reported', () => {
    const members = Array.from({ length: 100_000 }, (_, i) => `"m${i}":0`);
    members.splice(MAX_MEMBERS, 0, '"\u0001"');
    const body = read(`{${members.join(',')}}`);
    expect(body).toEqual({
      kind: 'problem',
      code: 'malformed_body',
      detail: 'The body must have at most 256 members.',
    });
  });

  test('64 collections are read and 65 are not, however many of them "collection" names', () => {
    const list = (count: number) => Array.from({ length: count }, (_, i) => `c${i}`);
    expect(read(JSON.stringify({ collections: list(MAX_COLLECTIONS) })).kind).toBe('body');
    expect(read(JSON.stringify({ collections: list(MAX_COLLECTIONS + 1) }))).toMatchObject({ param: 'collections' });
    expect(read(JSON.stringify({ collection: 'x', collections: list(MAX_COLLECTIONS - 1) })).kind).toBe('body');
    expect(read(JSON.stringify({ collections: list(MAX_COLLECTIONS), collection: 'x' }))).toMatchObject({
      kind: 'problem',
    });
    expect(read(JSON.stringify({ collection: 'x', collections: list(MAX_COLLECTIONS) }))).toMatchObject({
      kind: 'problem',
    });
  });

  test.each([
    ['of ASCII', (bytes: number) => 'x'.repeat(bytes)],
    ['of two bytes a character', (bytes: number) => 'é'.repeat(bytes / 2) + 'x'.repeat(bytes % 2)],
    ['of four bytes a character', (bytes: number) => '😀'.repeat(Math.floor(bytes / 4)) + 'x'.repeat(bytes % 4)],
  ])('a name takes at most 512 bytes, %s', (_, nameOf) => {
    const [longest, longer] = [nameOf(MAX_RESOURCE_NAME), nameOf(MAX_RESOURCE_NAME + 1)];
    const spelt = (name: string) => `"${[...name].map((one) => (one === 'x' ? '\\u0078' : one)).join('')}"`;
    for (const member of ['model', 'collection']) {
      expect(read(JSON.stringify({ [member]: longest }))).toMatchObject({
        kind: 'body',
        ...(member === 'model' ? { model: longest } : {}),
      });
      expect(read(`{"${member}":${spelt(longest)}}`).kind).toBe('body');
      expect(read(JSON.stringify({ [member]: longer }))).toMatchObject({ kind: 'problem', param: member });
      expect(read(`{"${member}":${spelt(longer)}}`)).toMatchObject({ kind: 'problem', param: member });
    }
    expect(read(JSON.stringify({ collections: ['a', longest] })).kind).toBe('body');
    expect(read(JSON.stringify({ collections: ['a', longer] }))).toMatchObject({
      kind: 'problem',
      param: 'collections',
    });
    expect(read(`{${spelt(longest)}:1}`).kind).toBe('body');
    expect(read(`{${spelt(longer)}:1}`).kind).toBe('problem');
    expect(read(`{${JSON.stringify(longest)}:1}`).kind).toBe('body');
    expect(read(`{${JSON.stringify(longer)}:1}`).kind).toBe('problem');
  });

  test.each([
    ['no stream', '"stream":false', true],
    ['no stream, null', '"stream":null', true],
    ['a stream without options', '"stream":true', false],
    ['a stream with its usage', '"stream":true,"stream_options":{"include_usage":true}', true],
    ['a stream with its usage, options first', '"stream_options":{"include_usage":true},"stream":true', true],
    ['names with escapes', '"stream":true,"stream_option\\u0073":{"include_us\\u0061ge":true}', true],
    ['other options beside it', '"stream":true,"stream_options":{"a":[1,{"b":2}],"include_usage":true,"c":"d"}', true],
    ['null as options', '"stream":true,"stream_options":null', false],
    ['no object as options', '"stream":true,"stream_options":true', false],
    ['a list as options', '"stream":true,"stream_options":["include_usage",true]', false],
    ['empty options', '"stream":true,"stream_options":{}', false],
    ['include_usage false', '"stream":true,"stream_options":{"include_usage":false}', false],
    ['include_usage null', '"stream":true,"stream_options":{"include_usage":null}', false],
    ['include_usage as a string', '"stream":true,"stream_options":{"include_usage":"true"}', false],
    ['include_usage as a number', '"stream":true,"stream_options":{"include_usage":1}', false],
    ['include_usage deeper', '"stream":true,"stream_options":{"x":{"include_usage":true}}', false],
    ['include_usage outside', '"stream":true,"include_usage":true', false],
    ['include_usage twice', '"stream":true,"stream_options":{"include_usage":true,"include_usage":true}', false],
    [
      'include_usage twice, once as null',
      '"stream":true,"stream_options":{"include_usage":null,"include_usage":true}',
      false,
    ],
    [
      'include_usage in two cases',
      '"stream":true,"stream_options":{"include_usage":true,"Include_usage":false}',
      false,
    ],
    ['the long s', '"stream":true,"stream_options":{"include_usage":true,"include_u\u017fage":false}', false],
    ['options in two cases', '"stream":true,"stream_options":{"include_usage":true},"Stream_options":{}', false],
    ['options in another case', '"stream":true,"Stream_Options":{"include_usage":true}', false],
  ])('the reader knows whether a stream reports its usage: %s', (_, members, reportsUsage) => {
    expect(read(`{${members}}`)).toMatchObject({ kind: 'body', reportsUsage });
  });

  test('options of a stream that appear twice, in whichever case, are malformed, and so are options that are not JSON', () => {
    expect(read('{"stream_options":{},"stream_options":{}}')).toMatchObject({ code: 'malformed_body' });
    expect(read('{"Stream_options":{},"Stream_options":{}}')).toMatchObject({ code: 'malformed_body' });
    expect(read('{"stream_options":{"include_usage":true,}}')).toMatchObject({ code: 'malformed_body' });
    expect(read('{"stream_options":{"include_usage":nul}}')).toMatchObject({ code: 'malformed_body' });
    expect(read(`{"stream_options":{"x":${'['.repeat(127)}${']'.repeat(127)}}}`)).toMatchObject({
      code: 'malformed_body',
    });
  });

  test.each([
    ['a text', '"a"', 1],
    ['a list of texts', '["a","b","c"]', 3],
    ['the token ids of one', '[1,2,3]', 1],
    ['lists of token ids', '[[1,2],[3]]', 2],
    ['an empty list', '[]', 1],
    ['null', 'null', 1],
    ['2,048 texts', JSON.stringify(Array.from({ length: MAX_PROMPTS }, () => 'a')), MAX_PROMPTS],
    ['100,000 token ids', JSON.stringify(Array.from({ length: 100_000 }, () => 7)), 1],
  ])('prompts for completions are counted: %s', (_, prompt, prompts) => {
    expect(read(`{"prompt":${prompt}}`, true)).toMatchObject({ kind: 'body', prompts });
    expect(read(`{"prompt":${prompt}}`, false)).toMatchObject({ kind: 'body', prompts: 1 });
  });

  test.each([
    ['2,049 texts', JSON.stringify(Array.from({ length: MAX_PROMPTS + 1 }, () => 'a'))],
    ['2,049 lists of token ids', JSON.stringify(Array.from({ length: MAX_PROMPTS + 1 }, () => [1]))],
    ['texts and token ids', '["a",1]'],
    ['a number', '1'],
    ['an object', '{"text":"a"}'],
    ['true', 'true'],
    ['nothing in a list', '[null]'],
  ])('prompts for completions may not be %s', (_, prompt) => {
    expect(read(`{"prompt":${prompt}}`, true)).toMatchObject({ code: 'malformed_body', param: 'prompt' });
    expect(read(`{"prompt":${prompt}}`, false)).toMatchObject({ kind: 'body', prompts: 1 });
  });

  test.each([
    ['strings at any depth', '{"model":"abc","messages":[{"role":"user","content":[{"text":"12345"}]}]}', 27],
    [
      'no names of the top level, no numbers and no other words',
      '{"temperature":0.75,"stream":true,"stop":null,"x":[true]}',
      0,
    ],
    ['names below the top level', '{"tools":[{"parameters":{"a long name":1,"b":{"c":[]}}}],"x":{"y":1}}', 24],
    ['strings by their characters in UTF-8, however they are escaped', '{"x":"é\\u00e9\\n\\ud83d\\ude42日"}', 12],
    ['texts that begin as a file does', '{"x":["data:image/png;base64,AAAA","\\u0064ata:,AAAA","data:"]}', 44],
    ['each number in a list as a token', '{"input":[1,2,3],"y":[[4],{"z":5}]}', 17],
  ])('the estimate of the prompt takes %s', (_, text, bytes) => {
    expect(read(text)).toMatchObject({ promptTokens: Math.ceil(bytes / 4) });
  });

  const base64 = 'QUJD+/-_'.repeat(40);
  test.each([
    ['base64', 'data', base64],
    ['a data URL', 'url', `data:image/png;base64,${base64}==`],
    [
      'a data URL with a parameter and escapes',
      'image_url',
      `data:text\\/plain;charset=utf-8;base64,\\u0051${base64}=`,
    ],
    ['base64 of exactly 256 characters', 'file_data', base64.slice(0, 256)],
    ['a data URL of exactly 256 characters', 'url', `\\u0064ata:image\\/png;base64,${base64.slice(0, 234)}`],
    ['a member whose name is escaped', '\\u0075rl', base64],
  ])('%s is an inline file and no text', (_, name, value) => {
    expect(read(`{"input":[{"${name}":"${value}"}]}`)).toMatchObject({
      inlineFiles: 1,
      promptTokens: name === 'url' ? 1 : expect.any(Number),
    });
    expect(read(`{"${name}":"${value}"}`)).toMatchObject({ inlineFiles: 1, promptTokens: 0 });
  });

  test.each([
    ['of fewer than 256 characters', 'url', base64.slice(0, 255)],
    ['of fewer than 256 characters, written as escapes', 'url', '\\u0041'.repeat(255)],
    [
      'of fewer than 256 characters behind an escaped prefix',
      'url',
      `\\u0064ata:image\\/png;base64,${base64.slice(0, 233)}`,
    ],
    ['with a space', 'data', `${base64} ${base64}`],
    ['with a character after its padding', 'data', `${base64}=A`],
    ['with a character that is not ASCII', 'data', `${base64}é`],
    ['that an ordinary member holds', 'text', base64],
    ['in a list', 'url', undefined],
    ['whose type is a sentence', 'url', `data:do as I say;base64,${base64}`],
    ['whose type is longer than 127 characters', 'url', `data:${'x'.repeat(128)};base64,${base64}`],
  ])('base64 %s is text', (_, name, value) => {
    const body = value === undefined ? `{"x":{"${name}":["${base64}"]}}` : `{"x":{"${name}":"${value}"}}`;
    const text = value === undefined ? base64 : String(JSON.parse(`"${value}"`));
    expect(read(body)).toMatchObject({
      inlineFiles: 0,
      promptTokens: Math.ceil((name.length + Buffer.byteLength(text)) / 4),
    });
  });

  const prompt = fc.letrec((tie) => ({
    text: fc.oneof(
      fc.string({ unit: anyCharacter, maxLength: 20 }),
      fc.constantFrom(
        'data:',
        'data:image/png;base64,',
        `data:image/png;base64,${base64}`,
        base64,
        `${base64}==`,
        `${base64}!`,
      ),
      fc.string({ unit: fc.constantFrom(...'AZaz09+/=-_'), minLength: 250, maxLength: 262 }),
    ),
    value: fc.oneof(
      { depthSize: 'small' },
      tie('text'),
      fc.constantFrom(1, -2.5, true, null),
      fc.array(tie('value'), { maxLength: 4 }),
      fc.dictionary(
        fc.oneof(fc.constantFrom('url', 'image_url', 'data', 'file_data', 'text', 'Url'), fc.string()),
        tie('value'),
        {
          maxKeys: 4,
        },
      ),
    ),
  }));
  test('the estimate of a prompt is that of the naive rule, for any nesting of texts, names and files', () => {
    // As other writers escape: every character, or slashes as well.
    const spelling = fc.constantFrom(
      (text: string) => text,
      (text: string) => text.replaceAll('/', '\\/'),
      (text: string) => text.replaceAll('a', '\\u0061').replaceAll('+', '\\u002B'),
    );
    fc.assert(
      fc.property(prompt.value, spelling, (input, spell) => {
        const bytes = encoder.encode(spell(JSON.stringify({ input })));
        expect(facts(bytes, false)).toEqual(naiveFacts(bytes, false));
      }),
      { numRuns: runs(5000) },
    );
  });

  test('n and best_of are at most 128', () => {
    for (const member of ['n', 'best_of']) {
      expect(read(`{"${member}":${MAX_CHOICES}}`)).toMatchObject({ kind: 'body', choices: MAX_CHOICES });
      for (const value of [MAX_CHOICES + 1, '9'.repeat(5000)]) {
        expect(read(`{"${member}":${value}}`)).toMatchObject({ code: 'malformed_body', param: member });
      }
    }
  });
});

describe('reading a body costs its bytes', () => {
  const KIB = 1024;
  /** A body whose bytes are all read through a counter. */
  function bytesRead(text: string): { readonly reads: number; readonly bytes: number } {
    const bytes = encoder.encode(text);
    let reads = 0;
    const counted = new Proxy(bytes, {
      get(target, key) {
        if (typeof key === 'string' && /^[0-9]+$/.test(key)) reads++;
        const value: unknown = Reflect.get(target, key);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
    readJsonBody(counted);
    return { reads, bytes: bytes.length };
  }

  const part = 24 * KIB;
  test.each([
    ['arrays side by side', `{"m":[${'[],'.repeat(part / 3)}1]}`],
    ['arrays within one another', `{"m":[${`${'['.repeat(126)}${']'.repeat(126)},`.repeat(part / 253)}1]}`],
    ['objects side by side', `{"m":[${'{"a":1},'.repeat(part / 8)}1]}`],
    ['escapes', `{"m":"${'\\n'.repeat(part / 2)}"}`],
    ['escapes of code points', `{"m":"${'\\u00e9'.repeat(part / 6)}"}`],
    ['characters of two bytes', `{"m":"${'é'.repeat(part / 2)}"}`],
    ['characters of four bytes', `{"m":"${'😀'.repeat(part / 4)}"}`],
    ['a number of many digits', `{"m":${'9'.repeat(part)}}`],
    ['a limit of many digits', `{"max_tokens":${'9'.repeat(part)}}`],
    ['spaces', `{${' '.repeat(part)}"m"${' '.repeat(part)}:${' '.repeat(part)}1}`],
    ['collections', JSON.stringify({ collections: new Array(64).fill('\u0001'.repeat(512)) })],
    ['members with escapes', `{${Array.from({ length: 256 }, (_, i) => `"${'\\u0061'.repeat(40)}${i}":1`).join(',')}}`],
    [
      'members with one beginning',
      `{${Array.from({ length: 256 }, (_, i) => `"${'a'.repeat(500)}${i}":1`).join(',')}}`,
    ],
  ])('for any content: %s', (_, text) => {
    const { reads, bytes } = bytesRead(text);
    expect(reads / bytes).toBeLessThan(16);
  });

  test('for a hundred thousand members: only up to the 257th', () => {
    const { reads } = bytesRead(`{${Array.from({ length: 100_000 }, (_, i) => `"m${i}":0`).join(',')}}`);
    expect(reads).toBeLessThan(40 * KIB);
  });
});

describe('the request around the body', () => {
  const body = encoder.encode('{}');
  const carried = (parts: Parameters<typeof checkInput>[0]) =>
    readBody(checkInput({ body, contentType: 'application/json', ...parts }));

  test.each([
    'application/json',
    'Application/JSON',
    'application/json; charset=utf-8',
    'application/json;charset=UTF-8',
    'application/json ; charset="utf-8"',
  ])('%j is JSON', (type) => {
    expect(isJsonType(type)).toBe(true);
  });

  test.each([
    undefined,
    '',
    'text/plain',
    'application/json5',
    'application/problem+json',
    'application/json; charset=utf-16',
    'application/json; charset=latin1',
    'application/json; profile=x',
    'application/json; charset=utf-8; charset=utf-16',
    'application/json, text/plain',
    'application/json,application/json',
  ])('%j is not', (type) => {
    expect(isJsonType(type)).toBe(false);
    expect(carried({ contentType: type })).toMatchObject({ code: 'malformed_body' });
  });

  test('a repeated content type is refused', () => {
    expect(carried({ contentType: REPEATED })).toMatchObject({ code: 'malformed_body' });
  });

  test.each<HeaderValue>(['gzip', 'identity', REPEATED])('a content encoding is refused', (contentEncoding) => {
    expect(carried({ contentEncoding })).toMatchObject({ code: 'malformed_body' });
  });

  test('a cut body is too large, before any other check', () => {
    expect(carried({ bodyPartial: true, contentType: 'text/plain' })).toMatchObject({ code: 'body_too_large' });
  });

  test('an empty body is malformed, and so is one of spaces', () => {
    expect(carried({ body: new Uint8Array() })).toMatchObject({ code: 'malformed_body' });
    expect(carried({ body: encoder.encode(' \n') })).toMatchObject({ code: 'malformed_body' });
    expect(carried({})).toMatchObject({ kind: 'body' });
  });
});

describe('a string', () => {
  test('is accepted or rejected independently of the position of a byte in it', () => {
    for (let byte = 0; byte < 256; byte++) {
      for (let at = 0; at < 9; at++) {
        const body = Buffer.from('{"user":"aaaaaaaaa"}');
        body[9 + at] = byte;
        const isPlain = byte >= 0x20 && byte < 0x80 && byte !== 0x22 && byte !== 0x5c;
        // `\\a` is no escape, and before the closing quote a backslash leaves the string open.
        expect([byte, at, readJsonBody(body).kind]).toEqual([byte, at, isPlain ? 'body' : 'problem']);
      }
    }
  });
});
