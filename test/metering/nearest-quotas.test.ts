import fc from 'fast-check';
import { expect, it } from 'vitest';
import { MAX_NEAREST, NearestQuotas } from '../../src/metering/nearest-quotas.ts';
import { runs } from '../support/properties.ts';

it('the nearest quotas of each review are those that sorting all of them would show', () => {
  const review = fc.array(fc.integer({ min: 0, max: 1_000 }), { maxLength: 4 * MAX_NEAREST });
  fc.assert(
    fc.property(fc.array(review, { minLength: 1, maxLength: 3 }), (reviews) => {
      const nearest = new NearestQuotas();
      for (const ratios of reviews) {
        for (const ratio of ratios) nearest.offer({ tenant: 'acme', ratio, endsMs: 0 });
        nearest.publish();
        const sorted = ratios.toSorted((a, b) => b - a).slice(0, MAX_NEAREST);
        expect(nearest.shares.map(({ ratio }) => ratio)).toEqual(sorted);
      }
    }),
    { numRuns: runs(1_000) },
  );
});
