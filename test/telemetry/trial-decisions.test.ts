/** Decisions in shadow mode that wait for the writer. */

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { BUILTIN_ROUTES, buildRouteTable, matchRoute } from '../../src/decision/routes.ts';
import type { CheckOutcome } from '../../src/telemetry/check-outcome.ts';
import { TrialDecisions } from '../../src/telemetry/trial-decisions.ts';
import { runs } from '../support/properties.ts';
import { checkInput } from '../support/world.ts';
import { allowed, denied } from './support/decisions.ts';

const [ROUTE] = BUILTIN_ROUTES;
const INPUT = checkInput({ path: '/v1/models' });
let made = 0;

function outcomeOf(tenant: string, more: Partial<CheckOutcome> = {}): CheckOutcome {
  if (ROUTE === undefined) throw new Error('there are no routes');
  const kind = made++ % 2 === 0;
  return {
    code: kind ? 'allow' : 'denied_by_policy',
    requestId: `req_${made}`,
    startedAtMs: 0,
    input: INPUT,
    clientRequestId: `id-${made}`,
    decision: kind ? allowed(tenant, ROUTE) : denied('denied_by_policy', tenant, ROUTE),
    error: undefined,
    tookMs: 1,
    shadow: true,
    ...more,
  };
}

function heapBytes(): number {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  return process.memoryUsage().heapUsed;
}

describe('decisions in shadow mode', () => {
  test('are recorded whole for a trial of 10,000 requests, in order, each once, with the id by which Envoy names them', () => {
    const trial = new TrialDecisions();
    const offered: string[] = [];
    const recorded: (string | null)[] = [];
    let sampled = 0;
    for (let second = 0; second < 60; second++) {
      for (let i = 0; i < 10_000 / 60 + 1; i++) {
        const outcome = outcomeOf('acme');
        offered.push(outcome.clientRequestId ?? '');
        trial.offer(outcome);
      }
      for (const row of trial.take()) {
        recorded.push(row.client_request_id);
        if (row.sampled) sampled++;
        expect([row.shadow, row.tenant_id, row.first_of]).toEqual([true, 'acme', null]);
      }
    }
    expect(recorded).toEqual(offered);
    expect([sampled, trial.dropped]).toEqual([0, 0]);
  });

  test('of all tenants together take a bounded memory and a bounded number of rows, and each is recorded or counted', () => {
    const step = fc.oneof(
      fc.record({ tenant: fc.constantFrom('a', 'b', 'c', 'd'), count: fc.integer({ min: 1, max: 40 }) }),
      fc.constant('take' as const),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const trial = new TrialDecisions({ maxBytes: 20_000, maxTenants: 3, maxRows: 10 });
        let [offered, recorded] = [0, 0];
        const taken = (): number => {
          const rows = trial.take();
          expect(rows.length).toBeLessThanOrEqual(10);
          return rows.length;
        };
        for (const one of steps) {
          if (one === 'take') recorded += taken();
          else
            for (let i = 0; i < one.count; i++) {
              trial.offer(outcomeOf(one.tenant));
              offered++;
            }
        }
        for (let last = taken(); last > 0; last = taken()) recorded += last;
        expect(recorded + trial.dropped).toBe(offered);
      }),
      { numRuns: runs(300) },
    );
  });

  test("of a tenant that floods leave memory and rows to another tenant's", () => {
    const trial = new TrialDecisions({ maxBytes: 100_000, maxRows: 10 });
    for (let i = 0; i < 1000; i++) trial.offer(outcomeOf('flood'));
    for (let i = 0; i < 5; i++) trial.offer(outcomeOf('quiet'));
    expect(trial.take().filter((row) => row.tenant_id === 'quiet')).toHaveLength(5);
    expect(trial.take().every((row) => row.sampled)).toBe(true);
    expect(trial.dropped).toBeGreaterThan(0);
  });

  test('with long queries take no more memory than their bound', () => {
    const maxBytes = 4 * 1024 * 1024;
    const trial = new TrialDecisions({ maxBytes });
    const built = buildRouteTable([]);
    if (built.kind !== 'table') throw new Error('the built-in routes conflict');
    const before = heapBytes();
    for (let i = 0; i < 4000; i++) {
      // As from the bytes of a check: the path and the names are parts of the whole target.
      const path = Buffer.from(`/v1/models/a-model-with-a-name-${i}?${'q'.repeat(30_000)}`).toString('latin1');
      const match = matchRoute(built.table, checkInput({ path }));
      if (match.kind !== 'matched') throw new Error('the path has no route');
      const { route, resources } = match;
      const detail = `models:read is granted, but not for ${resources.map(({ name }) => name).join()}.`;
      const decision = { ...denied('resource_not_permitted', 'acme', route), resources, detail };
      trial.offer(outcomeOf('acme', { code: decision.code, input: checkInput({ path }), decision }));
    }
    expect(heapBytes() - before).toBeLessThan(2 * maxBytes);
    const [row] = trial.take();
    expect(row?.path).toBe('/v1/models/a-model-with-a-name-0');
    expect(row?.resources).toEqual(['models/a-model-with-a-name-0']);
    expect(row?.facts.altered).toBe(false);
  });

  test('are no faults, and have no id that differs between reports of one request', () => {
    const trial = new TrialDecisions();
    trial.offer(outcomeOf('acme', { code: 'unavailable' }));
    for (const clientRequestId of [undefined, 'with space', 'ü', 'x'.repeat(129)])
      trial.offer(outcomeOf('acme', { clientRequestId }));
    expect(trial.take().map((row) => row.client_request_id)).toEqual([null, null, null, null]);
  });
});
