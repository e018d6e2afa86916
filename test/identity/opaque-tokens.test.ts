import { hash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  deriveSuccessor,
  isOneTimeToken,
  isRefreshToken,
  makeOneTimeToken,
  makeRefreshNonce,
  makeRefreshToken,
  opaqueDigest,
} from '../../src/identity/opaque-tokens.ts';
import { runs } from '../support/properties.ts';

const SECRET = 'a secret key of more than 32 characters';

describe('a refresh token', () => {
  it('is prt_ with 256 random bits, and is known by its SHA-256', () => {
    const token = makeRefreshToken();
    expect(token.text).toMatch(/^prt_[0-9A-Za-z_-]{43}$/);
    expect(token.digest).toEqual(hash('sha256', token.text, 'buffer'));
    expect(opaqueDigest(token.text)).toEqual(token.digest);
    expect(makeRefreshToken().text).not.toBe(token.text);
    expect(isRefreshToken(token.text)).toBe(true);
  });

  it.each([
    '',
    'prt_',
    'prt_short',
    `pst_${'a'.repeat(43)}`,
    `prt_${'a'.repeat(44)}`,
    `prt_${'a'.repeat(42)}=`,
    `prt_${'a'.repeat(43)}\n`,
  ])('is no text of another form: %j', (text) => {
    expect(isRefreshToken(text)).toBe(false);
  });
});

describe('the successor of a refresh token', () => {
  it('is always the same for the same token, nonce and secret key, and a token itself', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 16, maxLength: 16 }), (nonce) => {
        const { text } = makeRefreshToken();
        const successor = deriveSuccessor(SECRET, text, nonce);
        expect(deriveSuccessor(SECRET, text, nonce)).toEqual(successor);
        expect(isRefreshToken(successor.text)).toBe(true);
        expect(successor.digest).toEqual(opaqueDigest(successor.text));
      }),
      { numRuns: runs(30) },
    );
  });

  it('cannot be derived from the token only: it depends on the nonce and the secret key', () => {
    const { text } = makeRefreshToken();
    const nonce = makeRefreshNonce();
    const successor = deriveSuccessor(SECRET, text, nonce).text;
    expect(deriveSuccessor(SECRET, text, makeRefreshNonce()).text).not.toBe(successor);
    expect(deriveSuccessor(`${SECRET}!`, text, nonce).text).not.toBe(successor);
    expect(deriveSuccessor(SECRET, makeRefreshToken().text, nonce).text).not.toBe(successor);
  });
});

describe('a one-time token', () => {
  it('is pst_ with 256 random bits, and no refresh token', () => {
    const token = makeOneTimeToken();
    expect(token.text).toMatch(/^pst_[0-9A-Za-z_-]{43}$/);
    expect(opaqueDigest(token.text)).toEqual(token.digest);
    expect(isOneTimeToken(token.text)).toBe(true);
    expect(isRefreshToken(token.text)).toBe(false);
  });
});
