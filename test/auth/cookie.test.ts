import { describe, expect, test } from 'vitest';
import { type HeaderValue, REPEATED } from '../../src/decision/model.ts';
import { type ForwardedScheme, forwardedScheme, trustProxies } from '../../src/http/client-address.ts';
import { type CookieName, clearCookie, cookieName, readCookie, setCookie } from '../../src/iam/auth/cookie.ts';
import { isOwnOrigin, pageScheme } from '../../src/iam/auth/origin.ts';

describe('only pages of our own may use the cookie', () => {
  interface More {
    readonly scheme?: ForwardedScheme;
    readonly origins?: readonly string[];
  }
  const check = (verdict: boolean, origin: HeaderValue, host: HeaderValue, { scheme, origins }: More = {}): void => {
    const configured = origins === undefined ? '' : ` with ${origins.join(' ')}`;
    test(`${String(origin)} at ${String(host)}${configured}, forwarded as ${String(scheme)}: ${verdict}`, () => {
      expect(isOwnOrigin({ origin, host, scheme }, origins)).toBe(verdict);
    });
  };
  check(true, 'https://ai.example.com', 'ai.example.com');
  check(true, 'https://AI.example.com', 'ai.example.com:443');
  check(false, 'https://ai.example.com', 'ai.example.com:80');
  check(false, 'https://ai.example.com:8443', 'ai.example.com');
  check(false, 'https://evil.example', 'ai.example.com');
  check(false, 'https://ai.example.com.evil.example', 'ai.example.com');
  check(false, 'https://evil.example/ai.example.com', 'ai.example.com');
  check(false, 'https://ai.example.com@evil.example', 'ai.example.com');
  check(false, 'null', 'ai.example.com');
  check(false, 'null', 'null');
  check(false, '', '');
  check(false, 'http://', '');
  check(false, undefined, 'ai.example.com');
  check(false, REPEATED, 'ai.example.com');
  check(false, 'https://ai.example.com', REPEATED);
  check(false, 'https://ai.example.com', undefined);

  // Without a word of a trusted proxy: TLS, or this machine.
  check(false, 'http://ai.example.com', 'ai.example.com');
  check(false, 'http://ai.example.com', 'ai.example.com:80');
  check(false, 'http://ai.example.com', 'ai.example.com:443');
  check(false, 'http://192.0.2.1', '192.0.2.1');
  check(false, 'http://localhost.evil.example', 'localhost.evil.example');
  check(false, 'http://127.0.0.1.evil.example', '127.0.0.1.evil.example');
  check(false, 'http://notlocalhost', 'notlocalhost');
  for (const host of [
    '127.0.0.1:10000',
    'localhost:10000',
    'localhost',
    'console.localhost:8080',
    '[::1]:8080',
    '127.1.2.3',
  ]) {
    check(true, `http://${host}`, host);
    check(true, `https://${host}`, host);
    check(false, `http://${host}`, host, { scheme: 'https' });
    check(true, `http://${host}`, host, { scheme: 'http' });
  }

  check(true, 'https://ai.example.com', 'ai.example.com', { scheme: 'https' });
  check(false, 'http://ai.example.com', 'ai.example.com', { scheme: 'https' });
  check(true, 'http://ai.example.com', 'ai.example.com', { scheme: 'http' });
  check(true, 'http://ai.example.com', 'ai.example.com:80', { scheme: 'http' });
  check(false, 'https://ai.example.com', 'ai.example.com', { scheme: 'http' });
  check(false, 'https://ai.example.com', 'ai.example.com', { scheme: 'unreadable' });
  check(false, 'http://127.0.0.1', '127.0.0.1', { scheme: 'unreadable' });

  const origins = ['https://console.example.com'];
  check(true, 'https://console.example.com', 'ai.example.com', { origins });
  check(true, 'https://console.example.com', 'ai.example.com', { origins, scheme: 'http' });
  check(false, 'http://console.example.com', 'ai.example.com', { origins });
  check(false, 'https://ai.example.com', 'ai.example.com', { origins });
  check(false, 'https://ai.example.com', 'ai.example.com', { origins: [] });
});

describe('the scheme of a connection', () => {
  const trusted = trustProxies(['10.0.0.0/8']);
  const PROTO = 'X-Forwarded-Proto';
  test.each<[string, string | undefined, readonly string[], ForwardedScheme]>([
    ['a trusted proxy says https', '10.0.0.1', [PROTO, 'https'], 'https'],
    ['a trusted proxy says HTTP', '::ffff:10.0.0.1', [PROTO, 'HTTP'], 'http'],
    ['another peer says https', '192.0.2.1', [PROTO, 'https'], undefined],
    ['a peer that is gone said https', undefined, [PROTO, 'https'], undefined],
    ['a trusted proxy says nothing', '10.0.0.1', [], undefined],
    ['a trusted proxy says it twice', '10.0.0.1', [PROTO, 'https', PROTO, 'https'], 'unreadable'],
    ['a trusted proxy gives a list', '10.0.0.1', [PROTO, 'https, http'], 'unreadable'],
    ['a trusted proxy gives another scheme', '10.0.0.1', [PROTO, 'wss'], 'unreadable'],
    ['a trusted proxy gives an empty text', '10.0.0.1', [PROTO, ''], 'unreadable'],
  ])('%s', (_what, peer, rawHeaders, expected) => {
    expect(forwardedScheme(peer, rawHeaders, trusted)).toBe(expected);
  });

  test.each<[HeaderValue, HeaderValue, ForwardedScheme, 'https' | 'http']>([
    ['https://ai.example.com', 'ai.example.com', undefined, 'https'],
    ['http://127.0.0.1:10000', '127.0.0.1:10000', undefined, 'http'],
    ['https://ai.example.com', 'ai.example.com', 'http', 'https'],
    [undefined, 'ai.example.com', undefined, 'https'],
    [undefined, 'ai.example.com', 'http', 'http'],
    [undefined, '127.0.0.1:10000', undefined, 'http'],
    [undefined, '127.0.0.1:10000', 'https', 'https'],
    ['null', 'ai.example.com', undefined, 'https'],
    [REPEATED, REPEATED, 'unreadable', 'https'],
  ])('of the page %s at %s, forwarded as %s, is %s', (origin, host, scheme, expected) => {
    expect(pageScheme({ origin, host, scheme })).toBe(expected);
  });
});

describe('the cookie', () => {
  const SECURE = cookieName('https');

  test('cannot be read by scripts, sent in clear, sent by other sites, sent elsewhere than to /v1/auth, or set by a page without TLS', () => {
    const attributes = 'Path=/v1/auth; HttpOnly; Secure; SameSite=Strict';
    expect(setCookie(SECURE, 'prt_x', 7_000)).toBe(`__Secure-postern_refresh=prt_x; Max-Age=7; ${attributes}`);
    expect(clearCookie(SECURE)).toBe(`__Secure-postern_refresh=; Max-Age=0; ${attributes}`);
  });

  test('has no prefix for a page without TLS, whose browser would refuse it', () => {
    expect(setCookie(cookieName('http'), 'prt_x', 7_000)).toMatch(
      /^postern_refresh=prt_x; .*; Secure; SameSite=Strict$/,
    );
  });

  const reads = (header: HeaderValue, value: string | undefined, name: CookieName = SECURE): void => {
    test(`${String(header)} carries ${value ?? 'none'} under ${name}`, () => {
      expect(readCookie(header, name)).toBe(value);
    });
  };
  reads('__Secure-postern_refresh=prt_a', 'prt_a');
  reads('theme=dark; __Secure-postern_refresh=prt_a; lang=en', 'prt_a');
  reads('postern_refresh=prt_b; __Secure-postern_refresh=prt_a', 'prt_a');
  reads('postern_refresh=prt_b', undefined);
  reads('__secure-postern_refresh=prt_b', undefined);
  reads('x__Secure-postern_refresh=prt_b', undefined);
  reads('__Secure-postern_refresh=prt_a; __Secure-postern_refresh=prt_b', undefined);
  reads('__Secure-postern_refresh=', undefined);
  reads(REPEATED, undefined);
  reads(undefined, undefined);
  reads('postern_refresh=prt_b; __Secure-postern_refresh=prt_a', 'prt_b', 'postern_refresh');
});
