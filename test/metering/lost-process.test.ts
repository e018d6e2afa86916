/**
 * A process that dies with the reports of its requests' ends, on one real PostgreSQL: another process books what is
 * lost, once.
 */

import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { AdmissionRequest } from '../../src/metering/admission.ts';
import { Limits } from '../../src/metering/limits.ts';
import { processIdOf } from '../../src/metering/reservation-ids.ts';
import type { FinishedUsage } from '../../src/metering/settlement.ts';
import type { Database } from '../../src/store/database.ts';
import { openMetering, postgresMetering } from '../../src/store/metering/metering.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { askOf } from './support/world.ts';

const TTL_MS = 30_000;
const KEY = Buffer.alloc(16, 3);
const MINUTE_MS = 60_000;

let database: FreshDatabase;
let pools: Database[];

beforeAll(async () => {
  database = await freshDatabase();
  pools = [openMetering(database.db), openMetering(database.db)];
});

afterAll(async () => {
  for (const pool of pools ?? []) await pool.close();
  await database?.close();
});

interface Process {
  readonly processId: string;
  readonly limits: Limits;
  /** Milliseconds that this process's clock is ahead. */
  aheadMs: number;
}

/** A process without timers: it does something only when a test says so, and then it just stops. */
async function started(pool: number): Promise<Process> {
  const processId = processIdOf(randomBytes(8));
  const db = pools[pool] ?? expect.fail('no pool');
  const clock = { aheadMs: 0 };
  const limits = new Limits({
    store: postgresMetering(db),
    processId,
    reservationKey: KEY,
    windowMs: MINUTE_MS,
    tokenEstimate: 10,
    fileEstimate: 1000,
    reservationTtlMs: TTL_MS,
    now: Date.now,
    monotonicMs: () => performance.now() + clock.aheadMs,
  });
  await limits.tick();
  return Object.assign(clock, { processId, limits });
}

let dies: Process;
let lives: Process;
let tenants = 0;
let tenant: string;

beforeEach(async () => {
  dies = await started(0);
  lives = await started(1);
  tenant = `t${++tenants}`;
});

async function admitted(request: Partial<AdmissionRequest>, by = dies): Promise<string> {
  const parts = { tenantId: tenant, metered: true, keyId: 'key_1', userId: 'usr_1', promptTokens: 40, ...request };
  const admission = await by.limits.admit(askOf(parts));
  if (admission.kind !== 'admitted' || admission.reservation === undefined) return expect.fail('refused');
  return admission.reservation;
}

/** Gives a process its next turn. */
async function turn(process: Process): Promise<void> {
  process.aheadMs += 1000;
  await process.limits.tick();
}

/** Sets the last contact of the process to the lifetime of a reservation ago, and lets the other process detect it. */
async function buried(): Promise<void> {
  await database.db.query({
    text: `update metering_holders set seen_at = clock_timestamp() - $2 * interval '1 millisecond' where id = $1`,
    values: [dies.processId, TTL_MS],
  });
  lives.aheadMs += TTL_MS;
  await lives.limits.tidy();
}

function finished(reservation: string, prompt: number, completion: number): FinishedUsage {
  const usage = { prompt, completion, cached: 0, total: prompt + completion, model: 'm' };
  const about = { tenant, user: 'usr_1', key: 'key_1', model: 'm' };
  return { ...about, reservation, usage, textBytes: 0, status: 200, responseBytes: 100, upstream: 'answered' };
}

async function usage(): Promise<Readonly<Record<string, unknown>>> {
  const [row] = await database.db.query({
    text: `select coalesce(sum(requests), 0)::integer as requests, coalesce(sum(total_tokens), 0)::integer as tokens,
        coalesce(sum(estimated_tokens), 0)::integer as estimated, max(key_id) as key, max(user_id) as user,
        (select coalesce(sum(spent), 0)::integer from token_budgets where tenant_id = $1) as spent
      from usage_daily where tenant_id = $1`,
    values: [tenant],
  });
  return row ?? {};
}

const notes = async (): Promise<unknown> => {
  const text = 'select count(*)::integer as count from open_requests where holder = $1';
  const [row] = await database.db.query({ text, values: [dies.processId] });
  return row?.['count'];
};

test.each([
  ['with', 1_000_000],
  ['without', undefined],
])(
  'the requests under way of a process that died are booked once with their prompt’s estimate (%s a quota)',
  async (_name, quota) => {
    for (let i = 0; i < 3; i++) await admitted({ monthlyTokens: quota });
    await turn(dies);
    await lives.limits.tidy();
    expect(await usage()).toMatchObject({ requests: 0, tokens: 0 });
    await buried();
    const booked = { requests: 3, tokens: 120, estimated: 120, spent: 120, key: 'key_1', user: 'usr_1' };
    expect(await usage()).toEqual(booked);
    expect(lives.limits.stats.lostBooked).toBe(3);
    await buried();
    expect(await usage()).toEqual(booked);
    expect(await notes()).toBe(0);
  },
);

test('an end that was booked before its process died, or arrives after the estimate, is booked once', async () => {
  const [early, late] = [await admitted({}), await admitted({})];
  await turn(dies);
  lives.limits.settle(finished(early, 50, 7));
  await turn(lives);
  await buried();
  expect(await usage()).toMatchObject({ requests: 2, tokens: 97, estimated: 40 });
  lives.limits.settle(finished(late, 50, 7));
  await turn(lives);
  expect(await usage()).toMatchObject({ requests: 2, tokens: 97 });
});

test.each([
  ['with', 1_000_000],
  ['without', undefined],
])('a request that outlives its process is booked by its end (%s a quota)', async (_name, quota) => {
  const [running, lost] = [await admitted({ monthlyTokens: quota }), await admitted({ monthlyTokens: quota })];
  expect(running).not.toBe(lost);
  await turn(dies);
  lives.limits.renew(running);
  await turn(lives);
  await buried();
  expect(await usage()).toMatchObject({ requests: 1, tokens: 40 });
  lives.limits.settle(finished(running, 50, 70));
  await turn(lives);
  await database.db.query({
    text: `update open_requests set looked_at = null where holder = $1`,
    values: [dies.processId],
  });
  await database.db.query({ text: `update reservation_renewals set heard_at = heard_at - interval '1 minute'` });
  await buried();
  expect(await usage()).toMatchObject({ requests: 2, tokens: 160 });
  expect(await notes()).toBe(0);
});

test('a request that outlives its process by minutes is booked by its end', async () => {
  const running = await admitted({});
  await turn(dies);
  for (let minutes = 0; minutes < 4; minutes++) {
    lives.limits.renew(running);
    await turn(lives);
    await buried();
    expect(await usage()).toMatchObject({ requests: 0 });
    // The next minute: the earlier renewals are old.
    await database.db.query({
      text: `update open_requests set looked_at = null where holder = $1`,
      values: [dies.processId],
    });
    await database.db.query({ text: `update reservation_renewals set heard_at = heard_at - interval '1 minute'` });
  }
  lives.limits.settle(finished(running, 50, 70));
  await turn(lives);
  await buried();
  expect(await usage()).toMatchObject({ requests: 1, tokens: 120, estimated: 0 });
  expect(await notes()).toBe(0);
});

test('a cancelled check, a request that ended here, and one without a report for its lifetime are not noted', async () => {
  const before = await admitted({});
  dies.limits.release(before);
  const [cancelled, ended] = [await admitted({}), await admitted({})];
  await admitted({});
  await turn(dies);
  expect(await notes()).toBe(1);
  dies.limits.release(cancelled);
  dies.limits.settle(finished(ended, 1, 1));
  await turn(dies);
  expect(await notes()).toBe(1);
  dies.aheadMs += TTL_MS;
  // The store answers that no other process has a report of it, and then the note is removed.
  await turn(dies);
  await turn(dies);
  expect(await notes()).toBe(0);
  await buried();
  expect(await usage()).toMatchObject({ requests: 1, tokens: 2 });
});

test.each([
  ['with', 1_000_000],
  ['without', undefined],
])(
  'a request that only another process renews stays noted, and is booked if every process that knew it died (%s a quota)',
  async (_name, quota) => {
    const reservation = await admitted({ monthlyTokens: quota });
    await turn(dies);
    for (let elapsedMs = 0; elapsedMs < 3 * TTL_MS; elapsedMs += TTL_MS / 3) {
      lives.limits.renew(reservation);
      await turn(lives);
      dies.aheadMs += TTL_MS / 3;
      await turn(dies);
    }
    expect(await notes()).toBe(1);
    await buried();
    expect(await usage()).toMatchObject({ requests: 1, tokens: 40 });
    expect(await notes()).toBe(0);
  },
);

test('a process that lives keeps its notes', async () => {
  await admitted({});
  await turn(dies);
  lives.aheadMs += 2 * MINUTE_MS;
  await lives.limits.tidy();
  expect([await usage(), await notes()]).toMatchObject([{ requests: 0 }, 1]);
});
