import { hash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type HeaderValue, REPEATED } from '../../src/decision/model.ts';
import { hasValidChecksum, makeApiKey } from '../../src/identity/api-keys.ts';
import { joinApiKeys, readCredential } from '../../src/identity/credential.ts';

const KEY = makeApiKey();
const LONGEST = 'a'.repeat(16_384);
const WELL_FORMED = /^[A-Za-z0-9\-._~+/]+=*$/;
const JWT = 'eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJ1c3IifQ.c2lnbmF0dXJl';

/** A JWT whose header begins with this text. */
const jwtOf = (start: string) =>
  `${Buffer.from(`${start}"alg":"ES256"}`).toString('base64url')}.eyJzdWIiOiJ1c3IifQ.c2lnbmF0dXJl`;
const isJwt = (text: string) => {
  const parts = text.split('.');
  const header = Buffer.from(parts[0] ?? '', 'base64url').toString('latin1');
  return parts.length === 3 && parts.every((part) => /^[\w-]*$/.test(part)) && /^\{[ \t\n\r"]/.test(header);
};

describe('the Authorization header', () => {
  it('is missing when there is none', () => {
    expect(readCredential(undefined)).toEqual({ kind: 'missing' });
  });

  it.each([`Bearer ${KEY.text}`, `bearer ${KEY.text}`, `BEARER ${KEY.text}`, `Bearer   ${KEY.text}`])(
    'carries an API key, the scheme in any case and with any number of spaces: %s',
    (header) => {
      expect(readCredential(header)).toEqual({ kind: 'api_key', digest: KEY.digest });
    },
  );

  it.each([
    JWT,
    jwtOf('{ '),
    jwtOf('{\n  '),
    jwtOf('{\r\n'),
    jwtOf('{\t'),
    jwtOf('{"":0,'),
    'eyJfb3V0ZXI',
    LONGEST,
    'a'.repeat(1025),
    'pskX',
    'PSK_0',
  ])('carries a token with its SHA-256: %.20s', (token) => {
    expect(readCredential(`Bearer ${token}`)).toEqual({ kind: 'token', token, digest: hash('sha256', token, 'hex') });
  });

  it.each([
    'sk-proj-abcdefgh',
    'abc.def.ghi',
    'a-b._~+/9==',
    'PSK_0000',
    `pskX${KEY.text}`,
    'eyj00000',
    'eyAiYWxn.abcdefgh',
    'eyAiYWxn.abc.def.ghi',
    'eyAiYWxn.abc+.def',
    'e5f60718.abc.def',
    'a'.repeat(1024),
  ])('may carry an imported key of another system, to be looked up by its SHA-256: %.20s', (token) => {
    expect(readCredential(`Bearer ${token}`)).toEqual({ kind: 'api_key', digest: hash('sha256', token, 'hex') });
  });

  it('needs a lookup as a key exactly for psk_ keys with the right checksum, and for other texts of 8 to 1,024 characters that are no JWT', () => {
    const characters = fc.constantFrom(...'AZaz09-._~+/psk_eyJ');
    const body = fc.array(characters, { minLength: 1, maxLength: 60 }).map((parts) => parts.join(''));
    const token = fc
      .tuple(
        fc.constantFrom('', 'psk_', 'eyJ', 'sk-', 'psk', 'eyj', 'eyA.', 'ewo', 'e5.'),
        body,
        fc.constantFrom('', '=', '=='),
      )
      .map((parts) => parts.join(''));
    const long = fc.integer({ min: 1, max: 1100 }).map((length) => 'k'.repeat(length));
    fc.assert(
      fc.property(fc.oneof(token, long, fc.constant(KEY.text)), (text) => {
        const looked = text.startsWith('psk_')
          ? text === KEY.text || hasValidChecksum(text)
          : /^.{8,1024}$/.test(text) && !text.startsWith('eyJ') && !isJwt(text);
        expect(readCredential(`Bearer ${text}`).kind === 'api_key').toBe(looked && WELL_FORMED.test(text));
      }),
    );
  });

  it.each(['psk_', 'psk_x', 'psk_000000000000000000000000000000000Dqkam', `${KEY.text}0`, `${KEY.text}=`])(
    'is refused without a look-up when it looks like a key and has no right checksum: %s',
    (token) => {
      expect(readCredential(`Bearer ${token}`)).toEqual({ kind: 'bad_checksum' });
    },
  );

  it.each<[string, HeaderValue]>([
    ['repeated', REPEATED],
    ['empty', ''],
    ['the scheme alone', 'Bearer'],
    ['no token', 'Bearer '],
    ['no token but spaces', 'Bearer    '],
    ['a tab for the space', `Bearer\t${KEY.text}`],
    ['two credentials in one line', `Bearer ${KEY.text}, Bearer ${KEY.text}`],
    ['two tokens', `Bearer ${KEY.text} ${KEY.text}`],
    ['a comma', 'Bearer a,b'],
    ['space before', ` Bearer ${KEY.text}`],
    ['space behind', `Bearer ${KEY.text} `],
    ['a line feed behind', `Bearer ${KEY.text}\n`],
    ['padding in the middle', 'Bearer a=b'],
    ['padding alone', 'Bearer ='],
    ['a NUL', 'Bearer a\0b'],
    ['a character outside ASCII', 'Bearer tökén'],
    ['over 8 KiB', `Bearer ${LONGEST}a`],
    ['a megabyte of spaces', `Bearer ${' '.repeat(1_000_000)}a`],
  ])('is malformed: %s', (_, header) => {
    expect(readCredential(header)).toEqual({ kind: 'malformed' });
  });

  it.each([
    ['Basic', 'Basic YTpi'],
    ['a longer one', `Bearers ${KEY.text}`],
    ['one without a space behind it', `Bearer${KEY.text}`],
    ['the token alone', KEY.text],
    ['no parameters', 'Negotiate'],
  ])('names another scheme: %s', (_, header) => {
    expect(readCredential(header)).toEqual({ kind: 'other_scheme' });
  });

  it('is read without an exception for any text, and yields a credential only if it has the exact form', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.string().map((text) => `Bearer ${text}`),
        ),
        (header) => {
          const form = readCredential(header);
          const wellFormed = /^bearer +[A-Za-z0-9\-._~+/]+=*$/i.test(header);
          expect(form.kind === 'malformed' || form.kind === 'other_scheme').toBe(!wellFormed);
        },
      ),
    );
  });
});

describe('a header for an API key', () => {
  const OTHER = makeApiKey();
  const header = fc.constantFrom<HeaderValue>(
    undefined,
    REPEATED,
    '',
    KEY.text,
    OTHER.text,
    'sk-proj-abcdefgh',
    JWT,
    `Bearer ${KEY.text}`,
    'a,b',
  );
  const bearer = fc.constantFrom<HeaderValue>(
    undefined,
    REPEATED,
    '',
    `Bearer ${KEY.text}`,
    `bearer  ${OTHER.text}`,
    `Bearer ${JWT}`,
    'Basic a',
  );

  it('carries a key alone, as Authorization would carry it', () => {
    for (const text of [KEY.text, 'sk-proj-abcdefgh', `${KEY.text}0`]) {
      expect(readCredential(undefined, text)).toEqual(readCredential(`Bearer ${text}`));
    }
  });

  it('counts only if every credential that came is the same API key', () => {
    const textOf = (value: HeaderValue): HeaderValue =>
      typeof value === 'string' ? (/^bearer +(.*)$/i.exec(value)?.[1] ?? REPEATED) : value;
    fc.assert(
      fc.property(bearer, header, header, (authorization, xApiKey, apiKey) => {
        const form = readCredential(authorization, joinApiKeys(xApiKey, apiKey));
        const keys = [xApiKey, apiKey].filter((value) => value !== undefined);
        if (keys.length === 0) {
          expect(form).toEqual(readCredential(authorization));
          return;
        }
        const all = authorization === undefined ? keys : [...keys, textOf(authorization)];
        const [first] = all;
        const alone = typeof first === 'string' ? readCredential(`Bearer ${first}`) : undefined;
        const isOneKey = alone?.kind === 'api_key' && all.every((value) => value === first);
        expect(form).toEqual(isOneKey ? alone : { kind: 'malformed' });
      }),
    );
  });
});
