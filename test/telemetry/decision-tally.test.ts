/** Decisions counted by the minute, tenant, code and route, against a naive twin. */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { BUILTIN_ROUTES } from '../../src/decision/routes.ts';
import { type DecisionCount, DecisionTally } from '../../src/telemetry/decision-tally.ts';
import { allowed, denied } from './support/decisions.ts';

const MINUTE = 60_000;
const LINES = BUILTIN_ROUTES.slice(0, 3);

const outcomes = fc.oneof(
  fc.record({ tenant: fc.constantFrom('acme', 'globex'), line: fc.constantFrom(...LINES) }).map(({ tenant, line }) => ({
    key: [tenant, 'allow', `${line.method} ${line.template}`],
    outcome: { code: 'allow' as const, decision: allowed(tenant, line) },
  })),
  fc
    .record({ tenant: fc.constantFrom('acme', undefined), line: fc.constantFrom(undefined, ...LINES) })
    .map(({ tenant, line }) => ({
      key: [tenant ?? '', 'denied_by_policy', line === undefined ? '' : `${line.method} ${line.template}`],
      outcome: { code: 'denied_by_policy' as const, decision: denied('denied_by_policy', tenant, line) },
    })),
  fc.constant({ key: ['', 'public', ''], outcome: { code: 'public' as const, decision: { kind: 'public' as const } } }),
  fc.constant({ key: ['', 'unavailable', ''], outcome: { code: 'unavailable' as const, decision: undefined } }),
);

function summed(counts: readonly DecisionCount[]): ReadonlyMap<string, number> {
  const sums = new Map<string, number>();
  for (const { minuteMs, tenant, code, route, decisions } of counts) {
    const key = [minuteMs, tenant, code, route].join('|');
    sums.set(key, (sums.get(key) ?? 0) + decisions);
  }
  return sums;
}

test('every decision is handed out once, in its minute, whenever counts are taken and put back', () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.oneof(
          { weight: 8, arbitrary: outcomes },
          { weight: 2, arbitrary: fc.integer({ min: 1, max: 90_000 }) },
          { weight: 1, arbitrary: fc.constantFrom('take' as const, 'put back' as const) },
        ),
        { maxLength: 200 },
      ),
      (steps) => {
        let nowMs = 1_000_000 * MINUTE;
        const tally = new DecisionTally({ now: () => nowMs });
        const twin = new Map<string, number>();
        const kept: DecisionCount[] = [];
        for (const step of steps) {
          if (typeof step === 'number') nowMs += step;
          else if (step === 'take') kept.push(...tally.take());
          else if (step === 'put back') tally.putBack(tally.take());
          else {
            tally.count(step.outcome);
            const key = [Math.floor(nowMs / MINUTE) * MINUTE, ...step.key].join('|');
            twin.set(key, (twin.get(key) ?? 0) + 1);
          }
        }
        kept.push(...tally.take());
        expect(summed(kept)).toEqual(twin);
        expect(tally.take()).toEqual([]);
        expect(tally.dropped).toBe(0);
      },
    ),
  );
});

test('a decision beyond the bound on counters is dropped, and counted as dropped', () => {
  const tally = new DecisionTally({ now: () => 0, maxCounters: 2 });
  const [line] = LINES;
  if (line === undefined) throw new Error('a route table without lines');
  for (const tenant of ['acme', 'globex', 'initech', 'acme'])
    tally.count({ code: 'allow', decision: allowed(tenant, line) });
  expect(tally.dropped).toBe(1);
  const counts = tally.take();
  expect(counts.map(({ tenant, decisions }) => [tenant, decisions])).toEqual([
    ['acme', 2],
    ['globex', 1],
  ]);
  tally.count({ code: 'allow', decision: allowed('initech', line) });
  tally.putBack(counts);
  expect(tally.dropped, 'one of the two found no room any more').toBe(2);
  expect(tally.take()).toHaveLength(2);
});
