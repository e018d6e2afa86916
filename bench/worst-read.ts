/**
 * Bodies of about a given size that may be dear to read: each repeats what one part of the reader has most work with.
 */

const unit = (before: string, text: string, after: string) => (bytes: number) =>
  `${before}${text.repeat(Math.floor((bytes - before.length - after.length) / Buffer.byteLength(text)))}${after}`;

/** Values and white space of an array in any order. */
const TOKENS = [
  '1',
  '[]',
  '{}',
  '""',
  '"é"',
  '"\\n"',
  'true',
  'null',
  '-1.5e3',
  '{"a":1}',
  '[1]',
  ' 1 ',
  '"aaaa"',
] as const;

export const BODY_FAMILIES: Readonly<Record<string, (bytes: number, random: () => number) => string>> = {
  'distinct members': (bytes) => `{${Array.from({ length: Math.floor(bytes / 11) }, (_, i) => `"m${i}":0`).join(',')}}`,
  'numbers of one digit': unit('{"m":[', '1,', '1]}'),
  'numbers with exponents': unit('{"m":[', '1e1,', '1]}'),
  'one number': unit('{"m":', '9', '}'),
  'one limit': unit('{"max_tokens":', '9', '}'),
  'empty arrays': unit('{"messages":[', '[],', '[]]}'),
  'arrays 126 levels deep': unit('{"messages":[', `${'['.repeat(126)}${']'.repeat(126)},`, '[]]}'),
  'empty objects': unit('{"messages":[', '{},', '{}]}'),
  'objects of one member': unit('{"messages":[', '{"":1},', '{}]}'),
  'members within a member': unit('{"m":{', '"":0,', '"":0}}'),
  'empty strings': unit('{"prompt":[', '"",', '""]}'),
  escapes: unit('{"m":"', '\\n', '"}'),
  'escapes of code points': unit('{"m":"', '\\u00e9', '"}'),
  'escapes between letters': unit('{"m":"', 'a\\n', '"}'),
  'characters of two bytes': unit('{"m":"', 'é', '"}'),
  'characters of three bytes': unit('{"m":"', '日', '"}'),
  'characters of four bytes': unit('{"m":"', '😀', '"}'),
  'white space': unit('{', ' ', '"m":1}'),
  '256 members of escapes': (bytes) => {
    const name = '\\u0061'.repeat(Math.min(500, Math.floor(bytes / 256 / 6) - 2));
    return `{${Array.from({ length: 256 }, (_, i) => `"${name}${i}":1`).join(',')}}`;
  },
  '64 long collections': (bytes) => {
    const names = Array.from({ length: 64 }, (_, i) => `"${'\\u0061'.repeat(500)}${i}"`).join(',');
    return unit(`{"collections":[${names}],"m":[`, '1,', '1]}')(bytes);
  },
  'tokens at random': (bytes, random) => {
    let text = '{"m":[';
    while (text.length < bytes - 20) text += `${TOKENS[Math.floor(random() * TOKENS.length)] ?? '1'},`;
    return `${text}1]}`;
  },
};
