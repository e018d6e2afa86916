/** The numbers that the overview derives from the answers of the API. */

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { DecisionsOfMinute } from '../../client/types.ts';
import { ACTIONS } from '../../console/src/screens/audit/actions.ts';
import { decidedOf, SHOWN_REASONS, STEPS } from '../../console/src/screens/overview/decided.ts';
import { overview as text } from '../../console/src/text/en/overview.ts';

const FROM = Date.UTC(2026, 10, 20);
const DAY = 86_400_000;
const CODES = [
  'allow',
  'public',
  'denied_by_policy',
  'no_route',
  'rate_limit_exceeded',
  'malformed_body',
  'unavailable',
] as const;

const row = fc
  .record({
    at: fc.integer({ min: -2, max: 26 }),
    code: fc.constantFrom(...CODES),
    count: fc.integer({ min: 1, max: 500 }),
  })
  .map(({ at, code, count }): DecisionsOfMinute => {
    const outcome = code === 'allow' || code === 'public' ? 'allow' : code === 'unavailable' ? 'fault' : 'deny';
    return { minute: new Date(FROM + at * STEPS['24h'].ms).toISOString(), outcome, code, route: null, count };
  });

describe('the decisions of a day', () => {
  it('add up over bars, reasons and outcomes alike, and leave out what is of another time', () => {
    fc.assert(
      fc.property(fc.array(row, { maxLength: 120 }), (rows) => {
        const decided = decidedOf(rows, '24h', FROM);
        const inside = rows.filter(({ minute }) => Date.parse(minute) >= FROM && Date.parse(minute) < FROM + DAY);
        const total = (outcome: (kind: string) => boolean): number =>
          inside.filter((one) => outcome(one.outcome)).reduce((sum, { count }) => sum + count, 0);
        expect(decided.allowed).toBe(total((kind) => kind === 'allow'));
        expect(decided.denied).toBe(total((kind) => kind !== 'allow'));
        expect(decided.reasons.reduce((sum, { count }) => sum + count, 0)).toBe(decided.denied);
        expect(decided.reasons.map(({ count }) => count)).toEqual(
          decided.reasons.map(({ count }) => count).toSorted((a, b) => b - a),
        );
        expect(decided.bars).toHaveLength(24);
        for (const bar of decided.bars) {
          expect(bar.byReason).toHaveLength(SHOWN_REASONS + 1);
          expect(bar.byReason.reduce((sum, n) => sum + n, 0)).toBe(bar.denied);
        }
      }),
    );
  });
});

describe('the last changes', () => {
  it('have a verb for each action on a user, a role, a policy, a tenant or a key', () => {
    const shown = ACTIONS.filter((action) => (action.split('.')[0] ?? '') in text.things);
    expect(shown.filter((action) => text.did[action.split('.')[1] ?? ''] === undefined)).toEqual([]);
  });
});
