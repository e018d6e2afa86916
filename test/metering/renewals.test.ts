/** Reservations of two processes on one real PostgreSQL: renewals that the other process receives, and releases. */

import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { AdmissionRequest, LimitDecision } from '../../src/metering/admission.ts';
import { Limits } from '../../src/metering/limits.ts';
import { processIdOf } from '../../src/metering/reservation-ids.ts';
import type { Database } from '../../src/store/database.ts';
import { openMetering, postgresMetering } from '../../src/store/metering/metering.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { askOf } from './support/world.ts';

const TTL_MS = 1500;
const KEY = Buffer.alloc(16, 3);
const PATIENT = { timeout: 30_000, interval: 100 };

let database: FreshDatabase;
let pools: Database[];
let limits: Limits[];

beforeAll(async () => {
  database = await freshDatabase();
  pools = [openMetering(database.db), openMetering(database.db)];
  limits = pools.map(
    (pool) =>
      new Limits({
        store: postgresMetering(pool),
        processId: processIdOf(randomBytes(8)),
        reservationKey: KEY,
        windowMs: 60_000,
        tokenEstimate: 10,
        fileEstimate: 1000,
        reservationTtlMs: TTL_MS,
        now: Date.now,
        monotonicMs: () => performance.now(),
      }),
  );
  for (const each of limits) await each.start();
});

afterAll(async () => {
  for (const each of limits ?? []) await each.stop();
  for (const pool of pools ?? []) await pool.close();
  await database?.close();
});

function both(): readonly [Limits, Limits] {
  const [one, two] = limits;
  if (one === undefined || two === undefined) throw new Error('there are no two processes');
  return [one, two];
}

const admit = async (by: Limits, request: Partial<AdmissionRequest>): Promise<LimitDecision> =>
  await by.admit(askOf(request));

async function admitted(by: Limits, request: Partial<AdmissionRequest>): Promise<string> {
  const admission = await admit(by, request);
  if (admission.kind !== 'admitted' || admission.reservation === undefined) return expect.fail('refused');
  return admission.reservation;
}

test('tokens stay reserved beyond their lifetime while another process receives renewals of the request, and no longer', async () => {
  const [processId, other] = both();
  const request = { tenantId: 'streams', metered: true, monthlyTokens: 1000, askedTokens: 900 };
  const reservation = await admitted(processId, request);
  const renewed = (): number => {
    other.renew(reservation);
    return processId.stats.reservationsRenewed;
  };
  // The other process sends at most two renewals of one reservation in a second, so renewals arrive for 3 s or longer.
  await expect.poll(renewed, PATIENT).toBeGreaterThanOrEqual((3 * TTL_MS) / 1000 + 2);
  expect(processId.stats).toMatchObject({ reservationsExpired: 0, budgets: { outstanding: 1, reserved: 900 } });
  expect(await admit(other, request)).toMatchObject({ kind: 'refused', code: 'insufficient_quota' });
  await expect.poll(() => processId.stats.reservationsExpired, PATIENT).toBe(1);
  await expect.poll(async () => (await admit(other, request)).kind, PATIENT).toBe('admitted');
});

test('a collection stays reserved beyond its lifetime while any process receives renewals of the request, and no longer', async () => {
  const [processId, other] = both();
  const request = { tenantId: 'creates', createsCollection: true, maxCollections: 1 };
  const reservation = await admitted(processId, request);
  const reservedUntil = async (): Promise<number> => {
    other.renew(reservation);
    const [row] = await database.db.query({
      text: `select expires_at from collection_reservations where tenant_id = 'creates'`,
    });
    return Number(row?.['expires_at']);
  };
  const first = await reservedUntil();
  await expect.poll(reservedUntil, PATIENT).toBeGreaterThan(first + 2 * TTL_MS);
  expect(await admit(other, request)).toMatchObject({ kind: 'refused', code: 'insufficient_quota' });
  await expect.poll(async () => (await admit(other, request)).kind, PATIENT).toBe('admitted');
});

test('a cancelled check releases its tokens and its collection at once, for the other process too', async () => {
  const [processId, other] = both();
  const spend = { tenantId: 'cancels', metered: true, monthlyTokens: 1000, askedTokens: 900 };
  const create = { tenantId: 'cancels', createsCollection: true, maxCollections: 1 };
  const reservations = [await admitted(processId, spend), await admitted(processId, create)];
  for (const request of [spend, create]) expect((await admit(other, request)).kind).toBe('refused');
  const { reservationsExpired } = processId.stats;
  for (const reservation of reservations) processId.release(reservation);
  expect(processId.stats.reservationsReleased).toBe(2);
  for (const request of [spend, create])
    await expect.poll(async () => (await admit(other, request)).kind, PATIENT).toBe('admitted');
  expect(processId.stats.reservationsExpired).toBe(reservationsExpired);
});
