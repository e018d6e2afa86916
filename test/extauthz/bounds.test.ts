import fc from 'fast-check';
import { expect, test } from 'vitest';
import { boundsFor } from '../../src/extauthz/bounds.ts';
import { UNFINISHED_BOUNDS } from '../../src/extauthz/grpc/unfinished.ts';

const MIB = 1024 * 1024;

test('the default body has the default bounds', () => {
  expect(boundsFor(MIB)).toEqual(UNFINISHED_BOUNDS);
});

test('the largest body has room for several messages per connection, and a process for several connections', () => {
  expect(boundsFor(16 * MIB)).toEqual({ connectionBytes: 128 * MIB, processBytes: 512 * MIB });
});

test('every body that may be configured has a place in the bounds, 7 times per connection, and no bound is beyond the largest', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1024, max: 16 * MIB }), (maxBodyBytes) => {
      const { connectionBytes, processBytes } = boundsFor(maxBodyBytes);
      expect(connectionBytes).toBeGreaterThanOrEqual(7 * (maxBodyBytes + MIB));
      expect(processBytes).toBe(4 * connectionBytes);
      expect(connectionBytes).toBeLessThanOrEqual(128 * MIB);
    }),
  );
});
