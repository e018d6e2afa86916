import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { compileTenant } from '../../src/decision/compile.ts';
import { Fault } from '../../src/domain/errors.ts';
import { parseTenantId } from '../../src/domain/ids.ts';
import { StoreClock } from '../../src/domain/store-clock.ts';
import { Limits } from '../../src/metering/limits.ts';
import type { Settlement } from '../../src/metering/ports.ts';
import { RateLeases } from '../../src/metering/rate-leases.ts';
import { processIdOf } from '../../src/metering/reservation-ids.ts';
import { openMetering, postgresMetering } from '../../src/store/metering/metering.ts';
import { newCounts } from '../../src/telemetry/metering-counts.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { runs } from '../support/properties.ts';
import { conformance, type StoreUnderTest } from './support/conformance.ts';
import { MemoryStore, usedOf } from './support/memory-store.ts';
import { postgresUnderTest } from './support/postgres-store.ts';
import { askOf } from './support/world.ts';

const byText = (a: string, b: string): number => (a < b ? -1 : 1);

const HUGE_RATE = compileTenant({
  ...{ id: parseTenantId('huge') ?? expect.fail(), status: 'active', quotas: {}, roles: [], policies: [] },
  settings: { rate_limits: [{ models: ['*'], tokens_per_minute: Number.MAX_SAFE_INTEGER }] },
});

let database: FreshDatabase;
beforeAll(async () => {
  database = await freshDatabase();
});
afterAll(() => database.close());

function chargedEnd(processId: string, counter: number, periods: readonly string[]): Settlement {
  return {
    ...{ processId, counter, held: false, tenant: 'orders', period: '2026-11', day: '2026-11-21' },
    ...{ model: '', key: '', user: '', prompt: 1, completion: 0, cached: 0, cacheWrite: 0, total: 1 },
    ...{ cost: 0, priceVersion: 0, price: undefined, estimated: false, books: true },
    charges: periods.map((period) => ({ unit: 'tokens', period })),
    collections: undefined,
    collection: undefined,
    response: undefined,
  };
}

async function counted(text: string): Promise<number> {
  const [row] = await database.db.query({ text });
  return Number(row?.['count']);
}

describe('in memory', () => {
  const store = new MemoryStore(Date.now);
  const under: StoreUnderTest = {
    store,
    budget: (tenant, period) => {
      const row = store.budget(tenant, period);
      return Promise.resolve({ spent: row.spent, used: usedOf(row) });
    },
    usage: (tenant) => Promise.resolve(store.usage.get(tenant) ?? { requests: 0, tokens: 0, estimated: 0 }),
    booked: (tenant) => Promise.resolve(new Map([...store.booked].filter(([name]) => name.split(' ')[1] === tenant))),
    collections: (tenant) => Promise.resolve(store.collections.get(tenant) ?? 0),
    addBudget: (tenant, { id, ...budget }) => {
      store.alerting.set(id, { tenant, ...budget });
      return Promise.resolve();
    },
    setQuota: (tenant, tokens) => {
      store.quotas.set(tenant, tokens);
      return Promise.resolve();
    },
    alerts: (tenant) => {
      const own = [...store.alerts.keys()].filter((name) => name.startsWith(`${tenant} `));
      return Promise.resolve(own.map((name) => name.slice(tenant.length + 1)).sort(byText));
    },
  };
  conformance(() => under);
});

describe('in PostgreSQL', () => {
  conformance(() => postgresUnderTest(database));

  test('leases and settlements do not wait for a statement for holds of the same process', async () => {
    const processId = 'd'.repeat(16);
    const pool = openMetering(database.db);
    const store = postgresMetering(pool);
    await store.lease(processId, []);
    await database.db.query({
      text: `update metering_holders set seen_at = seen_at - interval '2 seconds' where id = $1`,
      values: [processId],
    });
    const holds = new pg.Client({ connectionString: database.url });
    await holds.connect();
    try {
      await holds.query('begin');
      await holds.query('select from metering_hold_tokens($1, 1, $2, $3, $4, $4, $4, $4)', [processId, [], [], []]);
      const { processes } = await store.lease(processId, [
        { subject: 'a', window: 1, limit: 10, requested: 1, report: 0 },
      ]);
      expect(processes).toBeGreaterThan(0);
      expect(await store.settle(processId, [])).toEqual({ booked: 0, unknownProcesses: [] });
    } finally {
      await holds.end();
      await pool.close();
    }
  });

  test('concurrent holds and bookings of new and old counters lock them in one order', async () => {
    const conflicts: string[] = [];
    const watched: Pick<typeof database.db, 'query'> = {
      query: (statement) =>
        database.db.query(statement).catch((error: unknown) => {
          conflicts.push(String(error));
          throw error;
        }),
    };
    const store = postgresMetering(watched);
    const processes = ['e', 'f'].map((letter) => letter.repeat(16));
    await Promise.all(processes.map((processId) => store.lease(processId, [])));
    let counter = 0;
    const work = async (processId: string, isSettler: boolean, shift: number): Promise<void> => {
      for (let round = 1; round <= 20; round++) {
        // Each round has counters that no statement has written yet.
        const periods = Array.from(
          { length: 30 },
          (_, i) => `bud_${(7 * i + shift) % 30}x${i % 3 === 0 ? round : 0} 2026-11#0`,
        );
        if (isSettler) await store.settle(processId, [chargedEnd(processId, counter++, periods)]);
        else {
          const asks = { tenant: 'orders', quota: 1e9, requested: 5, changes: 0, confirmed: 0 };
          const requests = periods.map((period) => ({ ...asks, period }));
          await store.hold({ processId, sequence: round, requests, acked: [] });
        }
      }
    };
    await Promise.all(
      processes.flatMap((processId, i) => [work(processId, false, 11 * i), work(processId, true, 5 + 13 * i)]),
    );
    expect(conflicts).toEqual([]);
    const [sums] = await database.db.query({
      text: `select sum(held)::float8 as held, (select sum(held)::float8 from token_holds where tenant_id = 'orders') as holds
        from token_budgets where tenant_id = 'orders'`,
    });
    expect(sums?.['held']).toBe(sums?.['holds']);
  });

  test('collections are released as the naive twin releases them, one by one and in batches', async () => {
    const step = fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 4 }));
    const store = postgresMetering(database.db);
    await store.lease('c'.repeat(16), []);
    let run = 0;
    let counter = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(fc.array(step, { minLength: 1, maxLength: 5 }), { maxLength: 8 }), async (batches) => {
        const tenant = `twins-${run++}`;
        const twin = new MemoryStore(Date.now);
        await twin.lease('c'.repeat(16), []);
        for (const batch of batches) {
          const ends = batch.map((name) => ({
            ...{
              processId: 'c'.repeat(16),
              counter: counter++,
              held: false,
              tenant,
              period: '2026-11',
              day: '2026-11-21',
            },
            ...{
              model: '',
              key: '',
              user: '',
              prompt: 0,
              completion: 0,
              cached: 0,
              total: 0,
              cost: 0,
              priceVersion: 0,
              price: undefined,
              cacheWrite: 0,
              charges: [],
              estimated: false,
              books: false,
            },
            collections: name === 0 ? (1 as const) : (-1 as const),
            collection: name === 0 ? undefined : name,
            response: undefined,
          }));
          await Promise.all([store.settle('c'.repeat(16), ends), twin.settle('c'.repeat(16), ends)]);
        }
        const [row] = await database.db.query({
          text: 'select coalesce(max(count), 0)::float8 as count from collection_counts where tenant_id = $1',
          values: [tenant],
        });
        expect(Number(row?.['count'])).toBe(twin.collections.get(tenant) ?? 0);
      }),
      { numRuns: runs(120) },
    );
  });

  test('of the names that a tenant removed the last 1,000 are kept, and of its creations the last 100', async () => {
    await database.db.query({
      text: `with one as (select 'tenant-of-many' as tenant, jsonb_agg(jsonb_build_object('n', n, 'holder', $1::text, 'counter', 10000000 + n,
          'held', false, 'tenant_id', 'tenant-of-many', 'period', '2026-11', 'day', '2026-11-21', 'model', '', 'key_id', '', 'user_id', '',
          'prompt_tokens', 0, 'completion_tokens', 0, 'cached_tokens', 0, 'total_tokens', 0, 'estimated', false, 'books', false,
          'collections', case when n <= 2300 then 1 else -1 end, 'collection', case when n > 2300 then n end)) as entries
          from generate_series(1, 3500) n)
        select metering_settle($1, entries) from one`,
      values: ['c'.repeat(16)],
    });
    expect(await counted(`select count(*) from collection_removals where tenant_id = 'tenant-of-many'`)).toBe(1000);
    expect(await counted(`select count from collection_counts where tenant_id = 'tenant-of-many'`)).toBe(1100);
    expect(
      await counted(`select cardinality(unmatched) as count from collection_counts where tenant_id = 'tenant-of-many'`),
    ).toBe(100);
  });

  test('creations of a tenant whose number is locked leave connections to rates, and to creations of other tenants', async () => {
    const pool = openMetering(database.db);
    const locking = database.db.newClient();
    try {
      const store = postgresMetering(pool);
      const processId = 'd'.repeat(16);
      const create = (tenant: string, counter: number) =>
        store.reserveCollection({ processId, counter, tenant, max: 1000, ttlMs: 60_000 });
      expect(await create('tenant-locked', 0)).toBe(true);
      await locking.connect();
      await locking.query('begin');
      await locking.query(`select from collection_counts where tenant_id = 'tenant-locked' for update`);
      const waiting = Promise.allSettled(Array.from({ length: 100 }, (_, i) => create('tenant-locked', 1 + i)));
      expect((await store.lease(processId, [])).processes).toBeGreaterThan(0);
      expect(await create('tenant-beside', 200)).toBe(true);
      await locking.query('rollback');
      await waiting;
    } finally {
      await locking.end();
      await pool.close();
    }
  });

  test('a renewal from before the database set its clock back counts as one of now', async () => {
    const store = postgresMetering(database.db);
    const processId = processIdOf(randomBytes(8));
    await database.db.query({
      text: `insert into reservation_renewals (holder, counters, heard_at) values ($1, '{7}', clock_timestamp() + interval '1 hour')`,
      values: [processId],
    });
    const { renewals } = await store.hold({ processId, sequence: 1, requests: [], acked: [] });
    expect(renewals).toEqual([{ counters: [7], ageMs: 0 }]);
  });

  test('the hold of a process is always the sum in its budget', async () => {
    const [row] = await database.db.query({
      text: `select count(*) from token_budgets b where b.held <>
        coalesce((select sum(h.held) from token_holds h where h.tenant_id = b.tenant_id and h.period = b.period), 0)`,
    });
    expect(Number(row?.['count'])).toBe(0);
  });

  test('rows that no process needs any longer are removed, in batches', async () => {
    const store = postgresMetering(database.db);
    await database.db.query({
      text: `insert into rate_windows (subject, number, made_at) select 'tenant:old', n, now() - interval '1 hour' from generate_series(1, 25) n`,
    });
    await store.lease('lives', [{ subject: 'tenant:new', window: 1, limit: 5, requested: 1, report: 0 }]);
    await database.db.query({
      text: `insert into metering_holders (id, seen_at) values ('long-gone', now() - interval '9 days')`,
    });
    await database.db.query({
      text: `insert into settlements (holder, block, bits, settled_at) values ('long-gone', 0, '', now() - interval '9 days')`,
    });
    await database.db.query({
      text: `insert into reservation_renewals (holder, counters, heard_at) values ('lives', '{1}', now() - interval '1 hour'), ('lives', '{2}', now())`,
    });
    const options = { windowMs: 60_000, holdTtlMs: 600_000, settlementKeepMs: 86_400_000, batch: 20 };
    expect((await store.tidy(options)).more).toBe(true);
    expect(await counted(`select count(*) from rate_windows where subject = 'tenant:old'`)).toBe(5);
    expect((await store.tidy(options)).more).toBe(false);
    expect(await counted(`select count(*) from rate_windows where subject = 'tenant:old'`)).toBe(0);
    expect(await counted(`select count(*) from rate_windows where subject = 'tenant:new'`)).toBe(1);
    expect(await counted(`select count(*) from metering_holders where id = 'long-gone'`)).toBe(0);
    expect(await counted(`select count(*) from settlements where holder = 'long-gone'`)).toBe(0);
    expect(await counted(`select count(*) from metering_holders where id = 'lives'`)).toBe(1);
    expect(await counted(`select count(*) from reservation_renewals where holder = 'lives'`)).toBe(1);
  });

  test('a store that does not answer is a fault, in bounded time', async () => {
    const own = openMetering(database.db);
    const blocker = database.db.newClient();
    await blocker.connect();
    await blocker.query('begin');
    await blocker.query('lock table rate_windows');
    const requests = [{ subject: 'tenant:blocked', window: 1, limit: 5, requested: 1, report: 0 }];
    await expect(postgresMetering(own).lease('h', requests)).rejects.toBeInstanceOf(Fault);
    await blocker.end();
    await own.close();
  });

  test.each([
    ['monthly tokens', { monthlyTokens: Number.MAX_SAFE_INTEGER }],
    ['tokens per minute', { tenant: HUGE_RATE, model: 'm' }],
  ])(
    '%s of a tenant whose waiting checks need more than a bigint holds fail no check of another tenant',
    async (_, of) => {
      const pool = openMetering(database.db);
      const limits = new Limits({
        ...{ store: postgresMetering(pool), processId: processIdOf(randomBytes(8)), reservationKey: randomBytes(16) },
        ...{ windowMs: 60_000, reservationTtlMs: 60_000, tokenEstimate: 1, fileEstimate: 1 },
        ...{ now: Date.now, monotonicMs: () => performance.now() },
      });
      await limits.tick();
      const huge = { ...of, tenantId: 'huge', metered: true, askedTokens: 2 ** 52 };
      const others = Promise.allSettled(Array.from({ length: 2100 }, () => limits.admit(askOf(huge))));
      const beside = askOf({
        tenantId: 'beside-huge',
        metered: true,
        askedTokens: 10,
        monthlyTokens: 1000,
        tenantRpm: 10,
      });
      expect(await limits.admit(beside)).toMatchObject({ kind: 'admitted' });
      const kinds = (await others).map((one) => (one.status === 'fulfilled' ? one.value.kind : 'fault'));
      expect(kinds.toSorted()).toEqual(['admitted', ...Array<string>(2099).fill('refused')]);
      expect(limits.isOffline).toBe(false);
      await limits.stop();
      await pool.close();
    },
  );

  test('three processes on three pools never admit more than the limit in a window', async () => {
    const windowMs = 1000;
    const limit = 600;
    const admitted = new Map<number, number>();
    const pools = Array.from({ length: 3 }, () => openMetering(database.db));
    const processes = pools.map(
      (pool, i) =>
        new RateLeases({
          store: postgresMetering(pool),
          processId: `three-${i}`,
          windowMs,
          clock: new StoreClock(),
          monotonicMs: () => performance.now(),
          now: Date.now,
          maxSubjects: 10,
          counts: newCounts(),
        }),
    );
    const OF_TENANT = { level: 'tenant', models: ['*'], dimension: 'requests_per_minute' } as const;
    // The database has this machine's clock, but only the windows show on which side of a border an admission was.
    const note = (windows: readonly { readonly number: number }[]): void => {
      for (const { number } of windows) admitted.set(number, (admitted.get(number) ?? 0) + 1);
    };
    const began = performance.now();
    let done = 0;
    while (performance.now() - began < 3400) {
      // Three times the limit, evenly: what is due by now.
      const due = ((performance.now() - began) / windowMs) * 3 * limit;
      for (; done < due; done++) {
        const leases = processes[done % 3];
        const taken = leases?.consume([leases.subject('tenant', 'even', OF_TENANT, limit, 0)], 1);
        if (taken instanceof Promise) void taken.then((late) => late.kind === 'consumed' && note(late.windows));
        else if (taken?.kind === 'consumed') note(taken.windows);
      }
      for (const leases of processes) void leases.tick();
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    await Promise.all(processes.map((leases) => leases.stop()));
    await Promise.all(pools.map((pool) => pool.close()));
    const counts = [...admitted.entries()].sort(([a], [b]) => a - b).map(([, count]) => count);
    for (const count of counts) expect(count).toBeLessThanOrEqual(limit);
    // The first and the last window were not whole; of the others most was used, or this shows nothing.
    for (const count of counts.slice(1, 3)) expect(count).toBeGreaterThanOrEqual(0.5 * limit);
  });
});
