/** The limits of checks in shadow mode, on a real PostgreSQL: they decide like the limits, and change nothing. */

import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { compileGrant, compileTenant } from '../../src/decision/compile.ts';
import type { KeyPrincipal, TenantView } from '../../src/decision/model.ts';
import { compilePrices } from '../../src/decision/prices.ts';
import { Fault } from '../../src/domain/errors.ts';
import { makeId, parseTenantId } from '../../src/domain/ids.ts';
import type { BudgetRecord } from '../../src/domain/records.ts';
import type { AdmissionRequest, LimitDecision } from '../../src/metering/admission.ts';
import { LimitReadings } from '../../src/metering/limit-readings.ts';
import { Limits } from '../../src/metering/limits.ts';
import type { ReadingRequest } from '../../src/metering/ports.ts';
import { postgresMetering } from '../../src/store/metering/metering.ts';
import { readingStore } from '../../src/store/metering/readings.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { runs } from '../support/properties.ts';
import { askOf } from './support/world.ts';

/** So long that no test meets its end. */
const WINDOW_MS = 10 * 365 * 86_400_000;
const PRICES = compilePrices({
  version: 1,
  prices: [{ models: 'gpt-*', input: 3e9, output: 15e9, cachedInput: 1e9, cacheWrite: 4e9 }],
});

let database: FreshDatabase;
beforeAll(async () => {
  database = await freshDatabase();
});
afterAll(() => database.close());

const common = {
  ...{ windowMs: WINDOW_MS, tokenEstimate: 10, fileEstimate: 1000, prices: () => PRICES },
  monotonicMs: () => performance.now(),
};

let processes = 0;
/** A process that has no lease and no hold yet, so the store decides its first request. */
const freshProcess = (): Limits =>
  new Limits({
    ...common,
    store: postgresMetering(database.db),
    processId: `${++processes}`.padStart(16, 'e'),
    reservationKey: Buffer.alloc(16, 7),
    reservationTtlMs: 60_000,
    now: Date.now,
  });
const freshReadings = (): LimitReadings =>
  new LimitReadings({ ...common, store: readingStore(database.db), nowMs: Date.now });

/** The parts of a decision that do not depend on what a process holds. */
function essence(decision: LimitDecision): unknown {
  if (decision.kind === 'admitted') return 'admitted';
  const { code } = decision;
  return decision.code === 'rate_limit_exceeded'
    ? { code, limit: decision.limit, detail: decision.detail.replace(/ Try again.*/, '') }
    : { code, budget: decision.budget?.name, resetsAt: decision.resetsAt };
}

const TABLES = ['rate_windows', 'token_budgets', 'token_holds', 'metering_holders', 'collection_reservations'];
async function everything(): Promise<unknown> {
  const tables = await database.db.query({
    text: `select table_name from information_schema.tables where table_schema = current_schema() and table_name = any($1)`,
    values: [TABLES],
  });
  return Promise.all(
    tables.map(async ({ table_name: name }) => [
      name,
      await database.db.query({
        text: `select md5(coalesce(string_agg(t::text, ',' order by t::text), '')) from ${name} t`,
      }),
    ]),
  );
}

const few = fc.option(fc.integer({ min: 0, max: 3 }), { nil: undefined });
const tokens = fc.option(fc.constantFrom(0, 15, 40), { nil: undefined });
const budget = fc.record({
  unit: fc.constantFrom('tokens' as const, 'requests' as const, 'money' as const),
  limit: fc.constantFrom(0, 1, 2, 25, 1e12),
  period: fc.constantFrom('day' as const, 'total' as const),
  action: fc.constantFrom('block' as const, 'report' as const),
});
const limits = fc.record({
  tenantRpm: few,
  keyRpm: few,
  monthlyTokens: tokens,
  byModel: fc.record({ requests_per_minute: few, tokens_per_minute: tokens, parallel: few }),
  budgets: fc.array(budget, { maxLength: 2 }),
  maxCollections: few,
});
const request = fc.record({
  kind: fc.constantFrom('spends', 'spends', 'reports', 'creates', 'plain'),
  model: fc.constantFrom('gpt-4', 'other'),
  askedTokens: fc.constantFrom(1, 10, 30),
});

const KEY_ID = makeId('key', 0, Buffer.alloc(10, 1));
let tenants = 0;

type Given = typeof limits extends fc.Arbitrary<infer T> ? T : never;

function tenantOf({ byModel, budgets, monthlyTokens }: Given): TenantView {
  const id = parseTenantId(`t-${++tenants}`) ?? expect.fail();
  const rule = Object.fromEntries(Object.entries(byModel).filter(([, value]) => value !== undefined));
  return compileTenant({
    ...{ id, status: 'active', roles: [], policies: [] },
    settings: { rate_limits: Object.keys(rule).length === 0 ? [] : [{ models: ['gpt-*'], ...rule }] },
    quotas: monthlyTokens === undefined ? {} : { monthly_tokens: monthlyTokens },
    budgets: budgets.map(
      (parts, i): BudgetRecord => ({
        ...{ id: makeId('bud', tenants, Buffer.alloc(10, i)), name: `b${i}`, timezone: undefined, epoch: 0 },
        ...{ appliesTo: { tenant: true }, per: 'all', models: undefined, ...parts },
      }),
    ),
  });
}

describe('a reading of the limits', () => {
  test('decides as a process without a lease would, and changes nothing', async () => {
    await fc.assert(
      fc.asyncProperty(limits, fc.array(request, { minLength: 1, maxLength: 4 }), async (given, requests) => {
        const tenant = tenantOf(given);
        const principal: KeyPrincipal = {
          ...{ kind: 'api_key', id: KEY_ID, tenantId: tenant.id, owner: undefined },
          ...{ grant: compileGrant([], {}), rateLimitRpm: undefined },
        };
        for (const { kind, model, askedTokens } of requests) {
          const asked: AdmissionRequest = askOf({
            ...{ tenant, principal, tenantId: tenant.id, keyId: `${KEY_ID}-${tenant.id}`, model, askedTokens },
            ...{ tenantRpm: given.tenantRpm, keyRpm: given.keyRpm, monthlyTokens: given.monthlyTokens },
            ...{ metered: kind === 'spends', reportsUsage: kind === 'reports', createsCollection: kind === 'creates' },
            maxCollections: given.maxCollections,
          });
          const before = await everything();
          const reading = await freshReadings().admit(asked);
          expect(await everything()).toEqual(before);
          expect(essence(reading)).toEqual(essence(await freshProcess().admit(asked)));
          if (reading.kind === 'admitted')
            expect(reading).toEqual({ kind: 'admitted', reservation: undefined, rate: undefined });
        }
      }),
      { numRuns: runs(200) },
    );
  });

  test('refuses by places that are taken before a budget that is too small for the request', async () => {
    const byModel = { requests_per_minute: undefined, tokens_per_minute: undefined, parallel: 1 };
    const small = { unit: 'tokens', limit: 25, period: 'day', action: 'block' } as const;
    const tenant = tenantOf({
      ...{ byModel, budgets: [small], maxCollections: undefined },
      ...{ tenantRpm: undefined, keyRpm: undefined, monthlyTokens: undefined },
    });
    const principal: KeyPrincipal = {
      ...{ kind: 'api_key', id: KEY_ID, tenantId: tenant.id, owner: undefined },
      ...{ grant: compileGrant([], {}), rateLimitRpm: undefined },
    };
    const ask = (askedTokens: number): AdmissionRequest =>
      askOf({ tenant, principal, tenantId: tenant.id, keyId: KEY_ID, model: 'gpt-4', askedTokens, metered: true });
    expect(await freshProcess().admit(ask(10))).toMatchObject({ kind: 'admitted' });
    const refused = { code: 'rate_limit_exceeded', limit: { dimension: 'parallel' } };
    expect(await freshReadings().admit(ask(30))).toMatchObject(refused);
    expect(await freshProcess().admit(ask(30))).toMatchObject(refused);
  });

  test('reads each number once a second, in one statement at a time for all checks that wait', async () => {
    let nowMs = 0;
    const seen: ReadingRequest[] = [];
    let finish: (() => void) | undefined;
    const readings = new LimitReadings({
      ...common,
      monotonicMs: () => nowMs,
      nowMs: Date.now,
      store: {
        read: async (wanted) => {
          seen.push(wanted);
          await new Promise<void>((resolve) => {
            finish = resolve;
          });
          const zeros = wanted.subjects.map(() => 0);
          return { granted: zeros, spent: [], held: [], collections: [], windowLeftMs: 60_000 };
        },
      },
    });
    const ask = (tenantId: string) => readings.admit(askOf({ tenantId, tenantRpm: 1 }));
    const first = [ask('a'), ask('a')];
    const second = [ask('b'), ask('a'), ask('c')];
    finish?.();
    await Promise.all(first);
    await Promise.resolve();
    finish?.();
    expect((await Promise.all([...second])).map(({ kind }) => kind)).toEqual(['admitted', 'admitted', 'admitted']);
    expect(seen.map(({ subjects }) => subjects)).toEqual([['tenant:a'], ['tenant:b', 'tenant:c']]);
    expect(ask('a')).toMatchObject({ kind: 'admitted' });
    nowMs = 1000;
    const later = ask('a');
    finish?.();
    await later;
    expect(seen).toHaveLength(3);
  });

  test('of 10,000 keys takes one statement at a time, each of at most 1000 numbers', async () => {
    let running = 0;
    const sizes: number[] = [];
    const readings = new LimitReadings({
      ...common,
      nowMs: Date.now,
      store: {
        read: async ({ subjects }) => {
          sizes.push(subjects.length);
          expect(++running).toBe(1);
          await Promise.resolve();
          running--;
          return { granted: subjects.map(() => 0), spent: [], held: [], collections: [], windowLeftMs: 60_000 };
        },
      },
    });
    const asked = Array.from({ length: 10_000 }, (_, i) => readings.admit(askOf({ keyId: `key-${i}`, keyRpm: 1 })));
    expect((await Promise.all(asked)).every(({ kind }) => kind === 'admitted')).toBe(true);
    // The first statement begins with the first check.
    expect(sizes).toEqual([1, ...Array.from({ length: 9 }, () => 1000), 999]);
  });

  test('that the database does not answer keeps at most 10,000 checks, and the next one is a fault at once', async () => {
    const answer = Promise.withResolvers<never>();
    const readings = new LimitReadings({ ...common, nowMs: Date.now, store: { read: () => answer.promise } });
    const ask = async () => readings.admit(askOf({ tenantRpm: 1 }));
    const asked = Array.from({ length: 10_000 }, ask);
    await expect(ask()).rejects.toThrow(Fault);
    answer.reject(new Error('the database did not answer'));
    for (const one of await Promise.allSettled(asked)) expect(one.status).toBe('rejected');
  });

  test('that fails is a fault for a second, never an allow', async () => {
    let nowMs = 0;
    let asked = 0;
    const readings = new LimitReadings({
      ...common,
      monotonicMs: () => nowMs,
      nowMs: Date.now,
      store: {
        read: () => {
          asked++;
          return Promise.reject(new Error('away'));
        },
      },
    });
    const ask = async () => readings.admit(askOf({ tenantRpm: 1 }));
    for (let i = 0; i < 3; i++) await expect(ask()).rejects.toThrow(Fault);
    expect(asked).toBe(1);
    nowMs = 1000;
    await expect(ask()).rejects.toThrow(Fault);
    expect(asked).toBe(2);
  });
});
