import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parsePath, withoutQuery } from '../../src/decision/paths.ts';
import { anyCharacter, runs } from '../support/properties.ts';

const bytesOf = (text: string): number[] =>
  (text.match(/%[0-9a-fA-F]{2}|./gsu) ?? []).flatMap((one) =>
    one.length === 3 && one.startsWith('%') ? [Number.parseInt(one.slice(1), 16)] : [...new TextEncoder().encode(one)],
  );

/** Each rule of the normal form by itself, on the whole text. */
function naiveSegments(path: string): readonly string[] | undefined {
  if (!path.startsWith('/') || path.includes('//')) return undefined;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what the rule names
  if (/[;#\\\u0000-\u001f\u007f-\uffff]/.test(path)) return undefined;
  if (/%(?![0-9a-fA-F]{2})/.test(path)) return undefined;
  if (/%2f|%5c|%2e|%00/i.test(path)) return undefined;
  for (const escaped of path.match(/%../g) ?? []) {
    if (/[A-Za-z0-9._~-]/.test(String.fromCharCode(Number.parseInt(escaped.slice(1), 16)))) return undefined;
  }
  const segments = path.split('/').slice(1);
  if (segments.at(-1) === '') segments.pop();
  if (segments.some((segment) => segment === '.' || segment === '..')) return undefined;
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  try {
    const decoded = segments.map((segment) => decoder.decode(Uint8Array.from(bytesOf(segment))));
    if (decoded.some((segment) => /\p{Cc}/u.test(segment))) return undefined;
    const lenient = new TextDecoder('utf-8', { ignoreBOM: true });
    const twice = decoded.map((segment) => lenient.decode(Uint8Array.from(bytesOf(segment))));
    return twice.some((segment) => segment === '.' || segment === '..' || /[/\\;\p{Cc}]/u.test(segment))
      ? undefined
      : decoded;
  } catch {
    return undefined;
  }
}

const piece = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom('/', 'v1', 'models', 'a', 'B', '.', '..', '~', '-', ':', '@', '!', '*') },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      '//',
      ';',
      '#',
      '\\',
      '%',
      '%2',
      '%zz',
      '%2f',
      '%2F',
      '%5c',
      '%2e',
      '%00',
      '%41',
      '%7E',
      ' ',
    ),
  },
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      '%20',
      '%25',
      '%C3%A9',
      '%c3',
      '%A9',
      '%E2%82%AC',
      '%ED%A0%80',
      '%C0%AF',
      '%F0%9F%99%82',
      '%0a',
      '%7f',
      '%C2%85',
      '%3b',
      '%23',
      '%3F',
    ),
  },
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      '%252e',
      '%252E%252e',
      '.%252e',
      '%252f',
      '%255C',
      '%253b',
      '%2500',
      '%250a',
      '%25C2%2585',
      '%25c3%25a9',
      '%25c0%25af',
      '%2541',
      '%25zz',
      '%25252e',
      '%25%20',
    ),
  },
  { weight: 1, arbitrary: fc.string({ unit: anyCharacter, maxLength: 2 }) },
);

describe('the normal form of a path', () => {
  test('agrees with each rule read by itself', () => {
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
        const path = `/${pieces.join('')}`;
        const parsed = parsePath(path);
        expect(parsed.kind === 'path' ? parsed.segments : undefined).toEqual(naiveSegments(path));
      }),
      { numRuns: runs(5000) },
    );
  });

  test.each([
    ['', 'no slash at all'],
    ['*', 'the asterisk form'],
    ['v1/models', 'no leading slash'],
    ['http://host/v1/models', 'the absolute form'],
    ['//v1/models', 'what a URL parser takes for a host'],
    ['/v1//models', 'an empty segment'],
    ['/v1/models//', 'two slashes at the end'],
    ['/v1/./models', 'a dot segment'],
    ['/v1/..', 'a dot segment at the end'],
    ['/v1/models;v=1', 'a path parameter'],
    ['/v1/models#x', 'a fragment'],
    ['/v1/a%2fb', 'an encoded slash'],
    ['/v1/a%5Cb', 'an encoded backslash'],
    ['/v1/%2e%2e', 'encoded dots'],
    ['/v1/a%00', 'an encoded NUL'],
    ['/v1/a\\b', 'a backslash'],
    ['/v1/a\u0001', 'a control character'],
    ['/v1/a\u007f', 'DEL'],
    ['/v1/é', 'a character that is not ASCII'],
    ['/v1/%', 'a lone percent sign'],
    ['/v1/%4', 'half an escape'],
    ['/v1/%6dodels', 'an escaped letter'],
    ['/v1/a%7eb', 'an escaped tilde'],
    ['/v1/%ff', 'an escape that is not UTF-8'],
    ['/v1/%c0%af', 'an overlong slash'],
    ['/v1/%ed%a0%80', 'an encoded surrogate'],
    ['/v1/%0a', 'an encoded line feed'],
    ['/v1/%7f', 'an encoded DEL'],
    ['/v1/%c2%80', 'an encoded C1 control'],
    ['/v1/models/..%3b/rag/x', 'an encoded semicolon, which is one when decoded'],
    ['/v1/models/%252e%252e/rag/x', 'dots, decoded twice'],
    ['/v1/models/%252E/rag/x', 'a dot, decoded twice'],
    ['/v1/models/.%252e/rag/x', 'dots, one of them decoded twice'],
    ['/v1/models/..%255crag', 'a backslash, decoded twice'],
    ['/v1/models/..%252frag', 'a slash, decoded twice'],
    ['/v1/models/..%253b/rag', 'a semicolon, decoded twice'],
    ['/v1/models/a%2500', 'NUL, decoded twice'],
    ['/v1/models/a%250d%250a', 'a line end, decoded twice'],
    ['/v1/models/a%257f', 'DEL, decoded twice'],
    ['/v1/models/a%25C2%2585', 'a C1 control, decoded twice'],
    ['/v1/models/a%25zz%252fb', 'a slash, decoded twice, beside an escape that is none'],
    ['/v1/models/%C3%A9%252fb', 'a slash, decoded twice, beside a character that is not ASCII'],
  ])('%j is rejected: %s', (path) => {
    expect(parsePath(path).kind).toBe('malformed');
  });

  test.each([
    ['/v1/models/50%25', '50%'],
    ['/v1/models/a%25zz', 'a%zz'],
    ['/v1/models/%2541', '%41'],
    ['/v1/models/v1%252e5', 'v1%2e5'],
    ['/v1/models/%25252e%25252e', '%252e%252e'],
    ['/v1/models/%25c3%25a9', '%c3%a9'],
    ['/v1/models/%25ff', '%ff'],
    ['/v1/models/a%20b:c@d', 'a b:c@d'],
    ['/v1/models/what%3F%23', 'what?#'],
  ])('%j names the model %j: a second decoding changes no path', (path, model) => {
    expect(parsePath(path)).toEqual({ kind: 'path', segments: ['v1', 'models', model] });
  });

  test('segments are decoded once, and one trailing slash is ignored', () => {
    expect(parsePath('/v1/models/%252541/')).toEqual({ kind: 'path', segments: ['v1', 'models', '%2541'] });
    expect(parsePath('/')).toEqual({ kind: 'path', segments: [] });
    expect(parsePath('/a%20b/...')).toEqual({ kind: 'path', segments: ['a b', '...'] });
  });

  test('the query is cut off at the first question mark, for any query', () => {
    expect(withoutQuery('/v1/models?path=/v1/auth/login?x#y')).toBe('/v1/models');
  });
});
