import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { makeApiKey } from '../../src/identity/api-keys.ts';
import { makeOneTimeToken, makeRefreshToken } from '../../src/identity/opaque-tokens.ts';
import { type Log, startLogging } from '../../src/telemetry/log.ts';
import { maskText } from '../../src/telemetry/masking.ts';
import { runs } from '../support/properties.ts';

function logged(use: (log: Log) => void): {
  readonly text: string;
  readonly lines: readonly Record<string, unknown>[];
} {
  let text = '';
  const { log } = startLogging({ level: 'info', stream: { write: (line) => (text += line) } });
  use(log);
  const lines = text
    .trim()
    .split('\n')
    .map((line): Record<string, unknown> => JSON.parse(line));
  return { text, lines };
}

const JWT = 'eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJ4In0.c2lnbmF0dXJl';

function encoded(text: string): string {
  return text.replace(/./g, (character) => `%${Buffer.from(character).toString('hex').toUpperCase()}`);
}

/** Decodes what is encoded up to twice. */
function decoded(text: string): string {
  return decodeURIComponent(decodeURIComponent(text));
}

describe('a log line', () => {
  it('is JSON with level, time and message', () => {
    const { lines } = logged((log) => log.child({ room: 'store' }).warn({ attempt: 2 }, 'again'));
    expect(lines[0]).toMatchObject({ level: 'warn', room: 'store', attempt: 2, msg: 'again' });
    expect(Date.parse(String(lines[0]?.['time']))).not.toBeNaN();
  });

  it('has the message, code and cause of an error, and no other member of it', () => {
    const cause = new Error('connection refused');
    const error = Object.assign(new Error('cannot read', { cause }), { bindings: ['hunter2'], code: 'ECONN' });
    const { text, lines } = logged((log) => log.error({ err: error }, 'failed'));
    expect(lines[0]).toMatchObject({
      err: { type: 'Error', message: 'cannot read', code: 'ECONN', cause: { message: 'connection refused' } },
    });
    expect(text).not.toContain('hunter2');
  });
});

describe('a secret stays out of the log', () => {
  const names = [
    'authorization',
    'Authorization',
    'password',
    'newPassword',
    'token',
    'refresh_token',
    'accessToken',
    'key',
    'apiKey',
  ];
  const more = [
    'secret',
    'secret-key',
    'secretKey',
    'cookie',
    'set-cookie',
    'private_key',
    'password_hash',
    'client_secret',
  ];

  it.each([...names, ...more])('under the name %s, at any depth, also bound to a child', (name) => {
    const { text } = logged((log) => {
      log.info({ [name]: 'hunter2' });
      log.info({ request: { headers: [{ [name]: 'hunter2' }] } });
      log.child({ request: { [name]: ['hunter2'] } }).info('bound');
    });
    expect(text).not.toContain('hunter2');
  });

  it.each([
    ['an API key', makeApiKey().text],
    ['an API key with a percent-encoded underscore', makeApiKey().text.replace('_', '%5F')],
    ['a refresh token', makeRefreshToken().text],
    ['a one-time token', makeOneTimeToken().text],
    ['an access token', JWT],
    ['a password hash', '$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHQ$aGFzaA'],
  ])('by its form wherever it turns up: %s', (_, secret) => {
    fc.assert(
      fc.property(fc.string(), fc.constantFrom(' ', '"', '/', '=', "'", ':'), (before, mark) => {
        const text = `${before}${mark}${secret}`;
        const { text: written } = logged((log) => {
          log.info(text);
          log.info({ path: text });
          log.error({ err: new Error(text) });
          log.child({ bound: text }).info('x');
        });
        expect(written).not.toContain(secret.slice(8));
      }),
      { numRuns: runs(30) },
    );
  });

  const key = makeApiKey().text;
  it.each([
    ['an API key with its underscore', key, key.replace('_', '%5f')],
    ['an API key with its first letter', key, `%70${key.slice(1)}`],
    ['an API key with every character', key, encoded(key)],
    ['an API key with every character, twice', key, encoded(key).replaceAll('%', '%25')],
    ['an API key with the space before it', key, `%20${key}`],
    ['a JSON Web Token with its dots', JWT, JWT.replaceAll('.', '%2E')],
    ['a JSON Web Token with one character of its claims', JWT, JWT.replace('.e', '.%65')],
    ['a JSON Web Token with every character', JWT, encoded(JWT)],
    ['a JSON Web Token with the slash before it', JWT, `%2F${JWT}`],
  ])('if it is percent-encoded: %s', (_, secret, text) => {
    const { text: written } = logged((log) => {
      log.info({ path: `/v1/a%20b/${text}` });
      log.info(text);
    });
    for (let at = 3; at + 8 <= secret.length; at++) expect(decoded(written)).not.toContain(secret.slice(at, at + 8));
  });

  it('and other percent-encoded text is written unchanged', () => {
    const path = '/v1/models/llama%2D3%2Fx%255Fy%';
    expect(logged((log) => log.info({ path })).lines[0]?.['path']).toBe(path);
  });

  it('of the form of a JSON Web Token, among text that resembles one', () => {
    // The expression that reads some characters many times.
    const naive = /\beyJ[0-9A-Za-z_-]{8,}(\.[0-9A-Za-z_-]*){1,2}/g;
    const part = fc.constantFrom('eyJ', '-', '_', '.', ' ', 'a', 'bcdefghi');
    fc.assert(
      fc.property(fc.array(part, { maxLength: 20 }), (parts) => {
        const text = parts.join('');
        expect(maskText(text)).toBe(text.replace(naive, 'eyJ***'));
      }),
      { numRuns: runs(1000) },
    );
  });

  it.each(['{ "alg":"ES256"}', '{\n"alg":"ES256"}', '{\r\n"alg":"ES256"}', '{\t"alg":"ES256"}'])(
    'of a JSON Web Token whose header has white space: %j',
    (header) => {
      const token = [header, '{"sub":"usr"}', 'signature'].map((part) => Buffer.from(part).toString('base64url'));
      expect(maskText(`token ${token.join('.')} end`)).toBe(`token ${token[0]?.slice(0, 3)}*** end`);
    },
  );

  it('and a host whose name begins like such a token is written unchanged', () => {
    expect(maskText('ewr1-gateway-12345.platform.example.com')).toBe('ewr1-gateway-12345.platform.example.com');
  });

  it.each(['eyJ', 'eyA', 'ewo'])('and a long text that resembles many tokens is read once: %s', (start) => {
    const text = `-${start}`.repeat(1_000_000);
    expect(maskText(text) === text).toBe(true);
    expect(maskText(`${text}aaaaaaaa.e${'y'.repeat(3)}`)).toBe(`-${start}***`);
  });

  it('in a URL: the password goes, the rest stays', () => {
    const { lines } = logged((log) => log.info('cannot reach postgresql://postern:hunter2@db.example/postern'));
    expect(lines[0]?.['msg']).toBe('cannot reach postgresql://postern:***@db.example/postern');
  });

  it('and other text is written unchanged', () => {
    const members = {
      prefix: 'psk_Ab12',
      last_four: 'x9Zz',
      max_tokens: 100,
      key_id: 'key_1',
      route: 'GET /v1/models',
      kid: 'abc',
    };
    expect(logged((log) => log.info(members, 'fine')).lines[0]).toMatchObject(members);
  });
});
