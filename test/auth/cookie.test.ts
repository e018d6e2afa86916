import { describe, expect, test } from 'vitest';
import { type HeaderValue, REPEATED } from '../../src/decision/model.ts';
import { isOwnOrigin, readCookie, setCookie } from '../../src/http/auth/cookie.ts';

describe('only pages of our own may use the cookie', () => {
  const check = (verdict: boolean, origin: HeaderValue, host: HeaderValue, origins?: readonly string[]): void => {
    test(`${String(origin)} at ${String(host)}${origins === undefined ? '' : ` with ${origins.join(' ')}`}: ${verdict}`, () => {
      expect(isOwnOrigin(origin, host, origins)).toBe(verdict);
    });
  };
  check(true, 'https://ai.example.com', 'ai.example.com');
  check(true, 'http://127.0.0.1:10000', '127.0.0.1:10000');
  check(true, 'https://AI.example.com', 'ai.example.com:443');
  check(true, 'http://ai.example.com', 'ai.example.com:80');
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
  check(true, 'https://console.example.com', 'ai.example.com', ['https://console.example.com']);
  check(false, 'http://console.example.com', 'ai.example.com', ['https://console.example.com']);
  check(false, 'https://ai.example.com', 'ai.example.com', ['https://console.example.com']);
  check(false, 'https://ai.example.com', 'ai.example.com', []);
});

describe('the cookie', () => {
  test('cannot be read by scripts, sent in clear, sent by other sites, or sent elsewhere than to /v1/auth', () => {
    expect(setCookie('prt_x', 7_000)).toBe('postern_refresh=prt_x; Max-Age=7; Path=/v1/auth; HttpOnly; Secure; SameSite=Strict');
  });

  const reads = (header: HeaderValue, value: string | undefined): void => {
    test(`${String(header)} carries ${value ?? 'none'}`, () => {
      expect(readCookie(header)).toBe(value);
    });
  };
  reads('postern_refresh=prt_a', 'prt_a');
  reads('theme=dark; postern_refresh=prt_a; lang=en', 'prt_a');
  reads('xpostern_refresh=prt_b', undefined);
  reads('postern_refresh=prt_a; postern_refresh=prt_b', undefined);
  reads('postern_refresh=', undefined);
  reads(REPEATED, undefined);
  reads(undefined, undefined);
});
