import fc from 'fast-check';
import { expect, test } from 'vitest';
import { chargedBatch } from '../../src/metering/charged-batch.ts';

test('a batch is the longest beginning within both of its bounds, and never empty while something waits', () => {
  fc.assert(
    fc.property(fc.array(fc.nat({ max: 300 })), fc.integer({ min: 1, max: 20 }), (charges, most) => {
      const batch = chargedBatch(charges, most, (count) => count);
      expect(batch).toEqual(charges.slice(0, batch.length));
      const sum = (count: number): number => charges.slice(0, count).reduce((total, each) => total + each, 0);
      expect(batch.length).toBeLessThanOrEqual(most);
      expect(sum(batch.length)).toBeLessThanOrEqual(1000);
      if (batch.length < Math.min(most, charges.length)) expect(sum(batch.length + 1)).toBeGreaterThan(1000);
    }),
  );
});
