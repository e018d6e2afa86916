/** Bookings of three processes on one PostgreSQL: each end counts once, in usage, in budgets and in money. */

import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { costOf, type Price } from '../../src/decision/prices.ts';
import { makeId, parseTenantId } from '../../src/domain/ids.ts';
import { BUDGET_PERIODS, BUDGET_UNITS } from '../../src/domain/records.ts';
import { lockBudget } from '../../src/iam/budgets/queries.ts';
import { lockTenants } from '../../src/iam/setup/queries.ts';
import { periodAt } from '../../src/metering/budget-periods.ts';
import type { Charge, OpenRequest, Settlement } from '../../src/metering/ports.ts';
import { Settler } from '../../src/metering/settler.ts';
import type { Database } from '../../src/store/database.ts';
import { openMetering, postgresMetering } from '../../src/store/metering/metering.ts';
import { newCounts } from '../../src/telemetry/metering-counts.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { runs } from '../support/properties.ts';
import type { StoreUnderTest } from './support/conformance.ts';
import type { Booked } from './support/memory-store.ts';
import { postgresUnderTest } from './support/postgres-store.ts';

const PROCESSES = 3;
const MONTH = '2026-11';
const LOST = { holdTtlMs: -1, reservationTtlMs: 600_000, settlementKeepMs: 86_400_000 };
const DAY_MS = 86_400_000;

let database: FreshDatabase;
let pools: Database[];
let under: StoreUnderTest;
beforeAll(async () => {
  database = await freshDatabase();
  under = postgresUnderTest(database);
  pools = Array.from({ length: PROCESSES }, () => openMetering(database.db));
});
afterAll(async () => {
  for (const pool of pools ?? []) await pool.close();
  await database?.close();
});

/** The life of one request, as three processes see it. */
interface Request {
  readonly owner: number;
  readonly key: number;
  readonly user: number;
  readonly model: number;
  readonly prompt: number;
  readonly completion: number;
  readonly price: Price | undefined;
  readonly budgets: readonly number[];
  /** Whether its process noted it before it died. */
  readonly isNoted: boolean;
  /** The processes that report its end before any process is found to be lost, each as often as it is named. */
  readonly reporters: readonly number[];
  /** The tokens that a response turns out to have spent after its answer; undefined = the answer is complete. */
  readonly corrected: number | undefined;
}

const index = (count: number) => fc.nat({ max: count - 1 });
const amount = fc.oneof(fc.nat({ max: 20_000_000 }), fc.constant(0));
const price: fc.Arbitrary<Price> = fc.record({
  version: fc.integer({ min: 1, max: 3 }),
  input: amount,
  output: amount,
  cachedInput: amount,
  cacheWrite: amount,
});
const request: fc.Arbitrary<Request> = fc.record({
  owner: index(PROCESSES),
  key: index(4),
  user: index(2),
  model: index(3),
  prompt: fc.nat({ max: 5000 }),
  completion: fc.nat({ max: 5000 }),
  price: fc.option(price, { nil: undefined }),
  budgets: fc.uniqueArray(index(6), { maxLength: 6 }),
  isNoted: fc.boolean(),
  reporters: fc.array(index(PROCESSES), { maxLength: 4 }),
  corrected: fc.option(fc.nat({ max: 9000 }), { nil: undefined, freq: 3 }),
});

/** Budgets of the requests of one run: two of each unit, one of them for each key. */
function chargesOf({ budgets, key }: Request, run: number): readonly Charge[] {
  return budgets.map((budget) => ({
    unit: BUDGET_UNITS[budget % 3] ?? 'money',
    period: `bud_${run}${budget}${budget < 3 ? '' : `/key_${key}`} ${MONTH}#0`,
  }));
}

const priced = { cached: 0, cacheWrite: 0 };
const processOf = (run: number, process: number): string => `bookings-${run}-${process}`;

function settlementOf(request: Request, counter: number, run: number): Settlement {
  const { owner, key, user, model, prompt, completion, price, corrected } = request;
  const total = prompt + completion;
  return {
    ...{ processId: processOf(run, owner), counter, held: true, tenant: `bookings-${run}`, period: MONTH },
    ...{ day: '2026-11-26', model: `m${model}`, key: `key_${key}`, user: `usr_${user}`, prompt, completion, total },
    ...priced,
    cost: price === undefined ? 0 : costOf(price, { ...priced, prompt, completion, total }),
    priceVersion: price?.version ?? 0,
    price: corrected === undefined ? undefined : price,
    charges: chargesOf(request, run),
    response: corrected === undefined ? undefined : `resp_${counter}`,
    ...{ estimated: corrected !== undefined, books: true, collections: undefined, collection: undefined },
  };
}

function noteOf(request: Request, counter: number, run: number): OpenRequest {
  const { key, user, prompt, price } = request;
  return {
    ...{ counter, tenant: `bookings-${run}`, period: MONTH, day: '2026-11-26', key: `key_${key}`, user: `usr_${user}` },
    prompt,
    cost: price === undefined ? 0 : costOf(price, { ...priced, prompt, completion: 0, total: prompt }),
    priceVersion: price?.version ?? 0,
    charges: chargesOf(request, run),
  };
}

/** The end of a later request that finds the response complete. Completions have numbers of their own. */
function completionOf(request: Request, counter: number, run: number, offset: number): Settlement {
  const total = request.corrected ?? 0;
  return {
    ...settlementOf(request, offset + counter, run),
    ...{
      processId: processOf(run, 0),
      held: false,
      prompt: 0,
      completion: total,
      total,
      estimated: false,
      books: false,
    },
    ...{ cost: 0, priceVersion: 0, price: undefined, charges: [], response: `resp_${counter}` },
  };
}

/** The sums that a run must have: what the test itself knows of each request's end. */
class Ledger {
  readonly booked = new Map<string, Booked>();
  readonly counters = new Map<string, number>();

  add(entry: Settlement, requests = 1): void {
    const { tenant, key, user, model, total, cost, priceVersion, period, charges } = entry;
    const names = [`tenant ${tenant}`, `key ${tenant} ${key}`, `user ${tenant} ${user}`, `model ${tenant} ${model}`];
    if (priceVersion > 0) names.push(`price ${tenant} ${model} ${priceVersion}`);
    for (const name of names) {
      const sum = this.booked.get(name) ?? { requests: 0, tokens: 0, cost: 0 };
      this.booked.set(name, {
        ...{ requests: sum.requests + requests, tokens: sum.tokens + total, cost: sum.cost + cost },
      });
    }
    const amounts = { money: cost, tokens: total, requests };
    for (const { unit, period: counter } of [{ unit: 'tokens' as const, period }, ...charges])
      this.counters.set(counter, (this.counters.get(counter) ?? 0) + amounts[unit]);
  }
}

const lateReporter = ({ owner }: Request): number => (owner + 1) % PROCESSES;

/** Splits into batches, as ends happen to arrive together. */
function batches<T>(all: readonly T[], sizes: readonly number[]): T[][] {
  const result: T[][] = [];
  for (let at = 0, i = 0; at < all.length; i++) {
    const size = sizes[i % sizes.length] ?? 1;
    result.push(all.slice(at, at + size));
    at += size;
  }
  return result;
}

test('usage by key, user, tenant, model and price and every budget equal what ended, whatever three processes report, repeat and lose', async () => {
  let runsDone = 0;
  const sizes = fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1, maxLength: 4 });
  await fc.assert(
    fc.asyncProperty(fc.array(request, { maxLength: 25 }), sizes, async (requests, batchSizes) => {
      const run = ++runsDone;
      const tenant = `bookings-${run}`;
      const stores = pools.map(postgresMetering);
      const processIds = stores.map((_, i) => processOf(run, i));
      const sequences = stores.map(() => 0);
      const news = new Map<string, readonly [total: number, cost: number]>();
      const hear = async (process: number): Promise<void> => {
        const store = stores[process] ?? expect.fail();
        const processId = processIds[process] ?? '';
        let acked: number[] = [];
        do {
          sequences[process] = (sequences[process] ?? 0) + 1;
          const { settlements } = await store.hold({ processId, sequence: sequences[process], requests: [], acked });
          for (const { counters, totals, costs } of settlements)
            for (const [i, counter] of counters.entries()) {
              expect(news.has(`${processId} ${counter}`), 'a settlement is reported once').toBe(false);
              news.set(`${processId} ${counter}`, [totals[i] ?? -1, costs[i] ?? -1]);
            }
          acked = settlements.map(({ id }) => id);
        } while (acked.length > 0);
      };
      const settleAll = (reports: readonly (readonly [process: number, settlement: Settlement])[]) =>
        Promise.all(
          stores.map(async (store, process) => {
            const own = reports.flatMap(([reporter, settlement]) => (reporter === process ? [settlement] : []));
            for (const batch of batches(own, batchSizes)) await store.settle(processIds[process] ?? '', batch);
          }),
        );

      for (const [i, store] of stores.entries()) await store.lease(processIds[i] ?? '', []);
      const noted = requests.entries().filter(([, { isNoted }]) => isNoted);
      const byOwner = Map.groupBy(noted, ([, { owner }]) => owner);
      for (const [owner, own] of byOwner)
        await stores[owner]?.noteRequests({
          ...{ processId: processIds[owner] ?? '', note: 1, over: [] },
          requests: own.map(([counter, each]) => noteOf(each, counter, run)),
        });
      const reports = requests.flatMap((each, counter) =>
        each.reporters.map((reporter) => [reporter, settlementOf(each, counter, run)] as const),
      );
      await settleAll(reports);
      // Every process counts as lost now. Others report the same ends while the notes are booked.
      const late = requests.map((each, counter) => [lateReporter(each), settlementOf(each, counter, run)] as const);
      const bookNotes = async (): Promise<void> => {
        while ((await stores[0]?.bookLost(LOST))?.more === true);
      };
      await Promise.all([bookNotes(), settleAll(late), bookNotes()]);
      await settleAll(reports.toReversed());
      for (const process of stores.keys()) await hear(process);
      const completions = requests.flatMap((each, counter) =>
        each.corrected === undefined
          ? []
          : [completionOf(each, counter, run, 1000), completionOf(each, counter, run, 2000)],
      );
      await settleAll(completions.map((settlement, i) => [i % PROCESSES, settlement] as const));

      const ledger = new Ledger();
      for (const [counter, each] of requests.entries()) {
        const end = settlementOf(each, counter, run);
        const told = news.get(`${end.processId} ${counter}`);
        const [first = lateReporter(each)] = each.reporters;
        // The first report of another process than the issuer's reaches the issuer, unless the note was booked.
        if (told === undefined && each.isNoted && each.reporters.length === 0) {
          const { prompt, cost } = noteOf(each, counter, run);
          ledger.add({ ...end, model: '', total: prompt, cost });
          continue;
        }
        if (told === undefined) expect([first, ...each.reporters]).toContain(each.owner);
        else expect(told).toEqual([end.total, end.cost]);
        ledger.add(end);
        const { corrected: total, price } = each;
        if (total !== undefined) {
          const cost = price === undefined ? 0 : costOf(price, { ...priced, prompt: 0, completion: total, total });
          ledger.add({ ...end, total: total - end.total, cost: cost - end.cost }, 0);
        }
      }
      expect(await under.booked(tenant)).toEqual(ledger.booked);
      for (const [period, spent] of ledger.counters)
        expect([period, (await under.budget(tenant, period)).spent]).toEqual([period, spent]);
    }),
    { numRuns: runs(200) },
  );
});

test('the database computes the cost of a correction as the processes compute costs', async () => {
  const count = fc.oneof(fc.nat({ max: 1_000_000_000 }), fc.nat({ max: 100 }));
  const rate = fc.oneof(fc.maxSafeNat(), fc.nat({ max: 1_000_000_000 }));
  const usage = fc.record({ prompt: count, completion: count, cached: count, cacheWrite: count, total: count });
  const rates = fc.record({ version: fc.constant(1), input: rate, output: rate, cachedInput: rate, cacheWrite: rate });
  const cases = fc.sample(fc.tuple(rates, usage), 2000);
  const rows = await database.db.query({
    text: `select metering_cost(array[1, c.input, c."output", c."cachedInput", c."cacheWrite"], u.prompt, u.completion, u.cached,
        u."cacheWrite", u.total)::text as cost
      from jsonb_array_elements($1::jsonb) with ordinality as e(pair, n),
        jsonb_to_record(pair -> 0) as c(input bigint, "output" bigint, "cachedInput" bigint, "cacheWrite" bigint),
        jsonb_to_record(pair -> 1) as u(prompt bigint, completion bigint, cached bigint, "cacheWrite" bigint, total bigint)
      order by n`,
    values: [JSON.stringify(cases)],
  });
  expect(rows.map((row) => row['cost'])).toEqual(cases.map(([rates, usage]) => String(costOf(rates, usage))));
});

const REQUEST: Request = {
  ...{ owner: 0, key: 1, user: 1, model: 1, prompt: 50, completion: 50, price: undefined, budgets: [] },
  ...{ isNoted: false, reporters: [], corrected: undefined },
};

describe('counters', () => {
  const ZONES = ['UTC', 'Europe/Berlin', 'Australia/Lord_Howe', 'America/Havana', 'Pacific/Apia'];
  const KEPT_DAYS = { hour: 8, day: 100, week: 100, month: 800 } as const;

  test('are kept for days after the end of their period, by its length', async () => {
    const kind = fc.constantFrom(...BUDGET_PERIODS.filter((period) => period !== 'total'));
    const instant = fc.integer({ min: Date.UTC(2020), max: Date.UTC(2035) });
    const cases = fc.sample(fc.tuple(kind, fc.constantFrom(...ZONES), instant), 1000);
    const periods = cases.map(([period, zone, nowMs]) => periodAt(period, zone, nowMs));
    const rows = await database.db.query({
      text: `select extract(epoch from metering_kept_until('bud_1/key_1 ' || p || '#3'))::float8 * 1000 as until,
          extract(epoch from metering_kept_until(p))::float8 * 1000 as plain
        from unnest($1::text[]) with ordinality as c(p, n) order by n`,
      values: [periods.map(({ name }) => name)],
    });
    for (const [i, [kind]] of cases.entries()) {
      const { endsMs = 0, name } = periods[i] ?? expect.fail();
      const daysKept = (Number(rows[i]?.['until']) - endsMs) / DAY_MS;
      expect(daysKept, name).toBeGreaterThan(KEPT_DAYS[kind] - 2);
      expect(daysKept, name).toBeLessThan(KEPT_DAYS[kind] + 9);
      expect(rows[i]?.['plain']).toBe(rows[i]?.['until']);
    }
    const total = `select metering_kept_until(p) as until from unnest(array['bud_1 total#0', 'parallel key_1 *', 'bud_1 2026-13#0', '']) p`;
    for (const row of await database.db.query({ text: total })) expect(row['until']).toBeNull();
  });

  test('of past periods, of deleted budgets and of epochs that ended 8 days ago are removed with their alerts, unless a process holds them', async () => {
    const { store, addBudget, budget, alerts } = under;
    const tenant = 'tidied';
    for (const id of ['bud_kept', 'bud_reset', 'bud_deleted', 'bud_new'])
      await addBudget(tenant, { id, limit: 1000, alerts: [0.001], epoch: 0 });
    const held = ['bud_held 2020-11#0', 'parallel key_1 used'];
    const text = `insert into token_budgets (tenant_id, period, spent) select '${tenant}', p, 7 from unnest($1::text[]) p`;
    const old = [
      'bud_kept 2020-11-26T14#0',
      'bud_kept 2020-W48#0',
      'bud_kept/key_1 2020-11#0',
      '2020-11',
      'parallel key_1 free',
    ];
    const ended = [
      'bud_reset total#0',
      'bud_reset/key_1 total#0',
      'bud_deleted 2099-11#0',
      'bud_deleted/usr_1 total#0',
    ];
    const current = [
      'bud_reset total#1',
      'bud_reset total#11',
      'bud_kept total#0',
      'bud_kept 2099-11-26T14#0',
      'bud_new total#0',
    ];
    await database.db.query({ text, values: [[...old, ...ended, ...current, ...held]] });
    await store.hold({
      ...{ processId: 'holds', sequence: 1, acked: [] },
      requests: held.map((period) => ({
        ...{ tenant, period, quota: 100, requested: 9, changes: 0, confirmed: 0 },
      })),
    });
    await database.db.query({
      text: `insert into budget_alerts (tenant_id, budget_id, period, threshold, spent, limit_amount)
        select '${tenant}', split_part(split_part(p, ' ', 1), '/', 1), p, 0.001, 7, 1000
        from unnest($1::text[]) p where starts_with(p, 'bud_')`,
      values: [[...old, ...ended, ...current]],
    });
    await database.db.query({ text: `update budgets set epoch = 1 where id = 'bud_reset'` });
    await database.db.query({ text: `delete from budgets where id = 'bud_deleted'` });
    const tidy = async (): Promise<void> => {
      while ((await store.tidy({ windowMs: 60_000, holdTtlMs: 600_000, settlementKeepMs: DAY_MS, batch: 2 })).more);
    };
    const left = async (periods: readonly string[]) => {
      const spent = await Promise.all(periods.map(async (period) => (await budget(tenant, period)).spent));
      return periods.filter((_, i) => spent[i] !== 0);
    };
    await tidy();
    expect(await left([...old, ...ended, ...current])).toEqual([...ended, ...current]);
    await database.db.query({ text: `update ended_budgets set ended_at = now() - interval '9 days'` });
    await database.db.query({ text: `update budgets set epoch = 1 where id = 'bud_new'` });
    await tidy();
    expect(await left([...ended, ...current, ...held])).toEqual([...current, ...held]);
    expect(new Set(await alerts(tenant))).toEqual(new Set(current.map((period) => `${period} 0.001`)));
    const [row] = await database.db.query({ text: 'select array_agg(budget_id) as waiting from ended_budgets' });
    expect(row?.['waiting']).toEqual(['bud_new']);
  });

  test('of 125 keys in 16 budgets with 10 alerts each are booked with all of their alerts, within the timeout of bookings', async () => {
    const tenant = 'alerts';
    const alerts = Array.from({ length: 10 }, (_, i) => (i + 1) / 10);
    for (let i = 0; i < 16; i++) await under.addBudget(tenant, { id: `bud_alerts${i}`, limit: 0, alerts, epoch: 0 });
    await under.store.lease(tenant, []);
    const counts = newCounts();
    const settler = new Settler({
      ...{ store: postgresMetering(pools[0] ?? expect.fail()), processId: tenant, monotonicMs: () => 0 },
      ...{ maxWaiting: 1000, counts, onBooked: () => undefined },
    });
    const periods: string[] = [];
    for (let key = 0; key < 125; key++) {
      const own = Array.from({ length: 16 }, (_, i) => `bud_alerts${i}/key_${key} ${MONTH}#0`);
      const charges = own.map((period) => ({ unit: 'requests' as const, period }));
      settler.add({ ...settlementOf({ ...REQUEST, key }, key, 0), processId: tenant, tenant, charges });
      periods.push(...own);
    }
    for (let run = 0; run < 30 && settler.waiting > 0; run++) await settler.flush();
    expect([settler.waiting, counts.settled, counts.dropped]).toEqual([0, 125, 0]);
    const reached = periods.flatMap((period) => alerts.map((threshold) => `${period} ${threshold}`));
    expect((await under.alerts(tenant)).toSorted()).toEqual(reached.toSorted());
  });

  /** A budget with an alert, and the end of a request that reaches it. */
  async function anEndThatAlerts(tenant: string) {
    const id = makeId('bud', Date.now(), randomBytes(16));
    await under.addBudget(tenant, { id, limit: 100, alerts: [0.5], epoch: 0 });
    await under.store.lease(tenant, []);
    const period = `${id} ${MONTH}#0`;
    const charges = [{ unit: 'tokens' as const, period }];
    return { id, tenant, period, end: { ...settlementOf(REQUEST, 1, 0), processId: tenant, tenant, charges } };
  }

  test('do not wait for the application of a setup, also if they raise an alert', async () => {
    const { tenant, period, end } = await anEndThatAlerts('applies');
    await database.db.knex.transaction(async (trx) => {
      await lockTenants(trx, [parseTenantId(tenant) ?? expect.fail()]);
      expect(await under.store.settle(tenant, [end])).toEqual({ booked: 1, unknownProcesses: [] });
    });
    expect(await under.alerts(tenant)).toEqual([`${period} 0.5`]);
  });

  test('do not wait for the change of a budget, also if they raise its alert', async () => {
    const { id, tenant, period, end } = await anEndThatAlerts('edited');
    await database.db.knex.transaction(async (trx) => {
      expect(await lockBudget(trx, parseTenantId(tenant) ?? expect.fail(), id)).toMatchObject({ id });
      expect(await under.store.settle(tenant, [end])).toEqual({ booked: 1, unknownProcesses: [] });
    });
    expect(await under.alerts(tenant)).toEqual([`${period} 0.5`]);
  });

  test('of a budget that another transaction is deleting are booked, without an alert', async () => {
    const { tenant, period, end } = await anEndThatAlerts('deletes');
    const client = database.db.newClient();
    await client.connect();
    await client.query('begin');
    await client.query(`delete from budgets where tenant_id = 'deletes'`);
    const booked = under.store.settle(tenant, [end]);
    await expect
      .poll(async () => {
        const text = `select count(*)::integer as count from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
        return (await database.db.query({ text }))[0]?.['count'];
      })
      .toBe(1);
    await client.query('commit');
    await client.end();
    expect(await booked).toEqual({ booked: 1, unknownProcesses: [] });
    expect((await under.budget(tenant, period)).spent).toBe(100);
    expect(await under.alerts(tenant)).toEqual([]);
  });
});
