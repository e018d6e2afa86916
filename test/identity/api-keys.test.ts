import { hash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { digestOf, hasValidChecksum, makeApiKey } from '../../src/identity/api-keys.ts';

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** The checksum written with BigInt and no loop shared with the code. */
function naiveChecksum(body: string): string {
  let rest = BigInt(crc32(Buffer.from(body)));
  const digits: string[] = [];
  while (rest > 0n) {
    digits.push(DIGITS.charAt(Number(rest % 62n)));
    rest /= 62n;
  }
  return digits.reverse().join('').padStart(6, '0');
}

describe('an API key', () => {
  it('carries the CRC32 of the characters before it in base 62, left-padded with 0', () => {
    expect(hasValidChecksum('psk_000000000000000000000000000000000Dqkal')).toBe(true);
    expect(hasValidChecksum('psk_000000000000000000000000000000000Dqkam')).toBe(false);
  });

  it('has a checksum that can be computed from the published rule', () => {
    const body = fc
      .string({ unit: fc.constantFrom(...DIGITS), minLength: 32, maxLength: 32 })
      .map((text) => `psk_${text}`);
    fc.assert(fc.property(body, (text) => hasValidChecksum(text + naiveChecksum(text))));
  });

  it('is refused when any one character is another', () => {
    const key = makeApiKey().text;
    fc.assert(
      fc.property(fc.nat({ max: 37 }), fc.constantFrom(...DIGITS), (at, digit) => {
        const changed = key.slice(0, 4 + at) + digit + key.slice(5 + at);
        expect(hasValidChecksum(changed)).toBe(changed === key);
      }),
    );
  });

  it.each([
    '',
    'psk_',
    'psk_short',
    `psk_${'0'.repeat(33)}0Dqkal`,
    `psk_${'0'.repeat(31)}-0Dqkal`,
    `PSK_${'0'.repeat(32)}0Dqkal`,
  ])('is refused by its form: %s', (text) => {
    expect(hasValidChecksum(text)).toBe(false);
  });

  it('is valid as made, and lists show its first eight characters and last four', () => {
    const key = makeApiKey();
    expect(key.text).toMatch(/^psk_[0-9A-Za-z]{38}$/);
    expect(hasValidChecksum(key.text)).toBe(true);
    expect(key).toMatchObject({ prefix: key.text.slice(0, 8), lastFour: key.text.slice(-4) });
    expect(makeApiKey().text).not.toBe(key.text);
  });

  it('draws every character with the same likelihood: bytes that would favour some are thrown away', () => {
    const drawn: number[] = [];
    const bytes = Uint8Array.from({ length: 256 }, (_, index) => 255 - index);
    let at = 0;
    const key = makeApiKey((size) => {
      const part = bytes.slice(at, at + size);
      at += size;
      drawn.push(...part);
      return part;
    });
    // 255 down to 248 are skipped, then 247 is the last character, 246 the one before, and so on.
    expect(key.text.slice(4, 36)).toBe([...DIGITS].reverse().join('').slice(0, 32));
    expect(drawn.slice(0, 8).every((byte) => byte >= 248)).toBe(true);
  });

  it('is stored and looked up by the SHA-256 of its whole text', () => {
    const { text, digest } = makeApiKey();
    expect(digest).toBe(hash('sha256', text, 'hex'));
    expect(digestOf(text)).toBe(digest);
  });
});
