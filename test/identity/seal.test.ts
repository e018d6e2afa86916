import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { deriveKey, open, seal } from '../../src/identity/seal.ts';

const SECRET = 'a secret key of more than 32 characters';
const KEY = deriveKey(SECRET, 'signing-keys');

describe('sealing', () => {
  it('gives back what was sealed, and hides it', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 8, maxLength: 300 }), fc.string(), (plain, context) => {
        const sealed = seal(KEY, plain, context);
        expect(sealed.includes(plain)).toBe(false);
        expect(open(KEY, sealed, context)).toEqual(Buffer.from(plain));
      }),
    );
  });

  it('never seals twice to the same bytes', () => {
    expect(seal(KEY, Buffer.from('x'), 'c')).not.toEqual(seal(KEY, Buffer.from('x'), 'c'));
  });

  it('does not open with another context, another secret key or another purpose', () => {
    const sealed = seal(KEY, Buffer.from('plain'), 'row 1');
    expect(open(KEY, sealed, 'row 2')).toBeUndefined();
    expect(open(deriveKey(`${SECRET}!`, 'signing-keys'), sealed, 'row 1')).toBeUndefined();
    expect(open(deriveKey(SECRET, 'refresh-successor'), sealed, 'row 1')).toBeUndefined();
  });

  it('does not open when any bit was changed or bytes are missing', () => {
    const sealed = seal(KEY, Buffer.from('plain'), 'row 1');
    fc.assert(
      fc.property(fc.nat({ max: sealed.length * 8 - 1 }), (bit) => {
        const changed = Buffer.from(sealed);
        changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        expect(open(KEY, changed, 'row 1')).toBeUndefined();
        expect(open(KEY, sealed.subarray(0, bit >> 3), 'row 1')).toBeUndefined();
      }),
    );
  });
});
