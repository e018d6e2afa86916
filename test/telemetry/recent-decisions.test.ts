/** The decisions that the gate records until a writer takes them. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Allow, REPEATED } from '../../src/decision/model.ts';
import { BUILTIN_ROUTES } from '../../src/decision/routes.ts';
import { makeId, parsePolicyName } from '../../src/domain/ids.ts';
import type { CheckOutcome } from '../../src/telemetry/check-outcome.ts';
import { FirstAllows } from '../../src/telemetry/first-allows.ts';
import type { RecentDecisionRow } from '../../src/telemetry/recent-decision.ts';
import { RecentDecisions } from '../../src/telemetry/recent-decisions.ts';
import { checkInput, must } from '../support/world.ts';
import { allowed, denied } from './support/decisions.ts';

const INPUT = checkInput({ path: '/v1/models?key=1', clientAddress: '192.0.2.1' });
const [LINE] = BUILTIN_ROUTES;
if (LINE === undefined) throw new Error('there are no routes');

let made = 0;
function outcomeOf(tenant: string | undefined, kind: 'allow' | 'deny', more: Partial<CheckOutcome> = {}): CheckOutcome {
  const decision = kind === 'allow' ? allowed(tenant ?? '', LINE ?? never()) : denied('denied_by_policy', tenant, LINE);
  return {
    code: kind === 'allow' ? 'allow' : 'denied_by_policy',
    requestId: `req_${made++}`,
    startedAtMs: 0,
    input: INPUT,
    clientRequestId: undefined,
    decision,
    error: undefined,
    tookMs: 1,
    ...more,
  };
}

function never(): never {
  throw new Error('there are no routes');
}

const partition = (rows: readonly RecentDecisionRow[]) =>
  [rows.filter((row) => row.first_of !== null), rows.filter((row) => row.first_of === null)] as const;
const deny = (tenant: string | undefined) => outcomeOf(tenant, 'deny');
const allow = (tenant: string) => outcomeOf(tenant, 'allow');

describe('recent decisions', () => {
  test('of each tenant and outcome are a sample of at most its budget, taken once, and marked when others are missing', () => {
    const step = fc.oneof(
      {
        weight: 6,
        arbitrary: fc.record({ tenant: fc.constantFrom('a', 'b', undefined), count: fc.integer({ min: 1, max: 60 }) }),
      },
      {
        weight: 2,
        arbitrary: fc.record({ allowed: fc.constantFrom('a', 'b'), count: fc.integer({ min: 1, max: 12 }) }),
      },
      { weight: 2, arbitrary: fc.constant('take' as const) },
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const recent = new RecentDecisions();
        // The naive twin: a token bucket of each tenant and outcome, and everything that was offered since the last
        // call.
        const credits = new Map<string, number>();
        const offered = new Map<string, string[]>();
        let dropped = 0;
        const firsts = new Map<string, string[]>();
        const begun = new Set<string>();
        const note = (group: string, outcome: CheckOutcome) => {
          const isFirst = group.startsWith('allow') && !begun.has(group);
          begun.add(group);
          const list = isFirst ? firsts : offered;
          list.set(group, [...(list.get(group) ?? []), outcome.requestId]);
          recent.offer(outcome);
        };
        for (const one of [...steps, 'take' as const]) {
          if (one === 'take') {
            const rows = Map.groupBy(recent.take(), (row) => `${row.outcome} ${row.tenant_id}`);
            for (const group of new Set([...credits.keys(), ...offered.keys(), ...firsts.keys()])) {
              const [burst, refill] = group.startsWith('deny') ? [32, 4] : [4, 0.1];
              const credit = credits.get(group) ?? burst;
              const ids = offered.get(group) ?? [];
              // The first allow of the day is recorded beside the sample.
              const [first, sample] = partition(rows.get(group) ?? []);
              expect(first.map((row) => row.request_id)).toEqual(firsts.get(group) ?? []);
              firsts.delete(group);
              const taken = sample;
              expect([group, taken.length]).toEqual([group, Math.min(ids.length, Math.floor(credit))]);
              expect(new Set(taken.map((row) => row.request_id)).size).toBe(taken.length);
              for (const row of taken) {
                expect(ids).toContain(row.request_id);
                expect(row.sampled).toBe(taken.length < ids.length);
              }
              if (group.startsWith('deny')) dropped += ids.length - taken.length;
              credits.set(group, Math.min(burst, credit - taken.length + refill));
            }
            offered.clear();
          } else if ('allowed' in one) {
            for (let i = 0; i < one.count; i++) note(`allow ${one.allowed}`, allow(one.allowed));
          } else {
            for (let i = 0; i < one.count; i++) note(`deny ${one.tenant ?? ''}`, deny(one.tenant));
          }
        }
        expect(recent.dropped).toBe(dropped);
        expect(recent.take()).toEqual([]);
      }),
    );
  });

  test('that a report-only policy would have changed have a budget of their own, in which a flood of others does not count', () => {
    const recent = new RecentDecisions({ firsts: new FirstAllows({ perTenant: 0 }) });
    const policy = must(parsePolicyName('trial'), 'trial');
    const report = (kind: 'allow' | 'deny') => {
      const outcome = outcomeOf('acme', kind);
      const { decision } = outcome;
      if (decision?.kind === 'allow') return { ...outcome, decision: { ...decision, wouldDeny: policy } };
      return decision?.kind === 'deny' ? { ...outcome, decision: { ...decision, wouldAllow: policy } } : never();
    };
    for (let i = 0; i < 200; i++) {
      recent.offer(deny('acme'));
      recent.offer(allow('acme'));
      if (i % 20 === 0) recent.offer(report(i % 40 === 0 ? 'allow' : 'deny'));
    }
    const rows = recent.take();
    expect(rows.filter((row) => row.would_deny === policy && row.outcome === 'allow')).toHaveLength(5);
    expect(rows.filter((row) => row.would_allow === policy && row.outcome === 'deny')).toHaveLength(5);
    expect(recent.dropped).toBe(200 - 32);

    for (let i = 0; i < 40; i++) recent.offer(report('deny'));
    expect(recent.take()).toHaveLength(32 - 10 + 4);
    expect(recent.dropped).toBe(200 - 32 + 40 - 26);
  });

  test('of one interval have the same chance each to be recorded', () => {
    const counts = new Array<number>(128).fill(0);
    for (let round = 0; round < 500; round++) {
      const recent = new RecentDecisions();
      const first = made;
      for (let i = 0; i < counts.length; i++) recent.offer(deny('a'));
      for (const row of recent.take()) {
        const at = Number(row.request_id.slice(4)) - first;
        counts[at] = (counts[at] ?? 0) + 1;
      }
    }
    // 500 rounds with a chance of 1 in 4: the standard deviation is 9.7.
    for (const count of counts) expect(Math.abs(count - 125)).toBeLessThan(60);
  });

  test('of tenants share one batch in turns, so that a tenant with few of them is in it beside those with many', () => {
    const recent = new RecentDecisions({ maxRows: 64 });
    for (let i = 0; i < 1000; i++) for (const tenant of ['a', 'b', 'c', undefined]) recent.offer(deny(tenant));
    recent.offer(deny('quiet'));
    const rows = Map.groupBy(recent.take(), (row) => row.tenant_id);
    expect(rows.get('quiet')).toMatchObject([{ sampled: false }]);
    const others = ['a', 'b', 'c', ''].map((tenant) => rows.get(tenant)?.length ?? 0);
    expect(others.reduce((sum, count) => sum + count)).toBe(63);
    for (const count of others) expect(count).toBeGreaterThanOrEqual(15);
  });

  test('of a flood are bounded in memory and in tenants, and those without a place are counted', () => {
    const recent = new RecentDecisions({ maxBytes: 20_000, maxTenants: 50 });
    const input = { ...INPUT, path: `/v1/${'x'.repeat(60_000)}` };
    for (let i = 0; i < 100; i++) recent.offer(outcomeOf(`tenant-${i}`, 'deny', { input }));
    const rows = recent.take();
    expect(rows.length).toBeGreaterThan(0);
    expect(rows.length).toBeLessThan(6);
    expect(recent.dropped).toBe(100 - rows.length);
    for (const row of rows) expect(row.path).toHaveLength(1024);
  });

  test('are neither faults nor requests to public paths', () => {
    const recent = new RecentDecisions();
    recent.offer(outcomeOf('a', 'deny', { code: 'unavailable', decision: undefined }));
    recent.offer(outcomeOf('a', 'deny', { code: 'public', decision: { kind: 'public' } }));
    expect(recent.take()).toEqual([]);
  });
});

describe('the first allow of a principal, route and model', () => {
  const KEYS = 300;
  const DAY_MS = 86_400_000;
  const by = (tenant: string, key: number, model: string | undefined, startedAtMs = 0, route = LINE ?? never()) => {
    const decision = allowed(tenant, route);
    const principal = { ...decision.principal, id: makeId('key', key, new Uint8Array(10)) };
    return outcomeOf(tenant, 'allow', { startedAtMs, decision: { ...decision, principal, model } as Allow });
  };
  const firstsOf = (recent: RecentDecisions) => recent.take().filter((row) => row.first_of !== null);

  test('of a day is recorded once, also in a tenant whose budget of sampled allows is spent', () => {
    const recent = new RecentDecisions();
    const [line, other] = BUILTIN_ROUTES;
    for (let i = 0; i < 1000; i++) recent.offer(by('acme', 1, 'llama-3'));
    recent.take();
    const kinds = [
      by('acme', 2, 'llama-3'),
      by('acme', 1, 'phi-3'),
      by('acme', 1, undefined),
      by('globex', 1, 'llama-3'),
    ];
    const elsewhere = by('acme', 1, 'llama-3', 0, other ?? line);
    for (const outcome of [...kinds, elsewhere, ...kinds]) recent.offer(outcome);
    recent.offer(by('acme', 1, 'llama-3'));
    expect(new Set(firstsOf(recent).map((row) => row.request_id))).toEqual(
      new Set([...kinds, elsewhere].map(({ requestId }) => requestId)),
    );
    recent.offer(by('acme', 1, 'llama-3', DAY_MS));
    expect(firstsOf(recent)).toHaveLength(1);
  });

  test('of many keys waits for its place: each gate writes a bounded number per interval, and records each within a day', () => {
    const recent = new RecentDecisions();
    const seen = new Set<string>();
    let most = 0;
    for (let second = 0; seen.size < KEYS && second < 1000; second++) {
      for (let key = 0; key < KEYS; key++) recent.offer(by('acme', key, 'llama-3'));
      const rows = firstsOf(recent);
      most = Math.max(most, rows.length);
      for (const row of rows) {
        expect(seen.has(String(row.principal_id))).toBe(false);
        seen.add(String(row.principal_id));
      }
    }
    expect(seen.size).toBe(KEYS);
    expect(most).toBeLessThanOrEqual(32);
  });

  test('is bounded by tenant and in memory, so that a tenant that invents models takes no place of others', () => {
    const recent = new RecentDecisions({ firsts: new FirstAllows({ entries: 64, perTenant: 10 }) });
    const offerAll = () => {
      for (let n = 0; n < 1000; n++) recent.offer(by('greedy', 1, `model-${n}`));
      recent.offer(by('quiet', 2, 'llama-3'));
      return Map.groupBy(firstsOf(recent), (row) => row.tenant_id);
    };
    const first = offerAll();
    expect([first.get('greedy')?.length, first.get('quiet')?.length]).toEqual([10, 1]);
    expect(offerAll().size).toBe(0);
  });

  test('keeps a share of each batch while denials flood', () => {
    const recent = new RecentDecisions();
    for (let n = 0; n < 20; n++) for (let i = 0; i < 40; i++) recent.offer(deny(`flood-${n}`));
    for (let key = 0; key < 8; key++) recent.offer(by('acme', key, 'llama-3'));
    const rows = recent.take();
    expect(rows).toHaveLength(128);
    expect(rows.filter((row) => row.tenant_id === 'acme')).toHaveLength(8);
  });
});

describe('a recorded decision', () => {
  const recorded = (more: Partial<CheckOutcome>) => {
    const recent = new RecentDecisions();
    recent.offer(outcomeOf('acme', 'deny', more));
    return recent.take()[0];
  };

  test('has the path without its query, and nothing of body and credential', () => {
    const input = {
      ...INPUT,
      path: '/v1/models?q=hidden',
      authorization: 'Bearer hidden',
      body: Buffer.from('{"model":"hidden"}'),
    };
    const row = recorded({ input });
    expect(row).toMatchObject({ path: '/v1/models', facts: { altered: false } });
    expect(JSON.stringify(row)).not.toContain('hidden');
  });

  test.each([
    ['/v1/models/psk_0123456789abcdefghijklmnopqrstuvABCDEF', '/v1/models/psk_***'],
    ['/v1/eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJ1c3IifQ.c2lnbmF0dXJl/x', '/v1/eyJ***/x'],
    [`/v1/${'x'.repeat(1000)}/psk_0123456789abcdefghijklmnopqrstuvABCDEF`, `/v1/${'x'.repeat(1000)}/psk_***`],
    ['/v1/\0\ud800', '/v1/\ufffd\ufffd'],
  ])(
    'has no secret and nothing that PostgreSQL does not store in its path, and says that it was altered: %j',
    (path, shown) => {
      expect(recorded({ input: { ...INPUT, path } })).toMatchObject({ path: shown, facts: { altered: true } });
    },
  );

  test('distinguishes a repeated tenant header from an absent one', () => {
    expect(recorded({ input: { ...INPUT, tenant: REPEATED } })?.facts.tenant).toBe('');
    expect(recorded({ input: { ...INPUT, tenant: undefined } })?.facts.tenant).toBeNull();
  });

  test('names at most 16 resources, and says that there were more', () => {
    const resources = Array.from({ length: 20 }, (_, i) => ({ kind: 'collections' as const, name: `c${i}` }));
    const row = recorded({ decision: { ...denied('resource_not_permitted', 'acme', LINE), resources } });
    expect([row?.resources.length, row?.resources[0], row?.facts.altered]).toEqual([16, 'collections/c0', true]);
  });
});
