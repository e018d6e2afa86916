/** A gate that is killed while its requests run: another process books them with the estimate of their prompt. */

import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { Limits } from '../../src/metering/limits.ts';
import { processIdOf } from '../../src/metering/reservation-ids.ts';
import { openMetering, postgresMetering } from '../../src/store/metering/metering.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { ADMIN, decider, done, login, makeKey, SECRET_KEY } from './support/client.ts';
import { eventually } from './support/eventually.ts';
import { openStand, type Server, type Stand } from './support/postern.ts';
import { isRunning, processesOf } from './support/processes.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const TTL_MS = 30_000;
const SILENT_MS = 2 * 60_000;
const TEXT = 'a question of about forty characters, twice as long as one of twenty';

let stand: Stand;
let database: FreshDatabase;
let server: Server;
beforeAll(async () => {
  [stand, database] = await Promise.all([openStand(), freshDatabase()]);
  server = await stand.serve({
    POSTERN_DATABASE_URL: database.url,
    POSTERN_SECRET_KEY: SECRET_KEY,
    POSTERN_BOOTSTRAP_PASSWORD: ADMIN.password,
  });
});
afterAll(async () => {
  await stand?.close();
  await database?.close();
});

const noted = async (): Promise<readonly string[]> =>
  (await database.db.query({ text: 'select holder, entries from open_requests, jsonb_array_elements(entries)' })).map(
    (row) => String(row['holder']),
  );

it('another process books the requests of a killed gate once, with the estimates of their prompts', async () => {
  const token = await login(server.http);
  for (const [id, quotas] of [
    ['metered', { monthly_tokens: 1_000_000 }],
    ['free', {}],
  ] as const) {
    await done(server.http, 'POST', '/v1/iam/tenants', { token, body: { id, name: id, quotas } });
    const { key } = await makeKey(server.http, token, { tenant: id, scopes: ['chat:write'] });
    const gate = decider(server.grpc);
    const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: TEXT }] });
    const headers = [['content-type', 'application/json'] as const];
    for (let i = 0; i < 3; i++) {
      expect(await gate.decide(key, { method: 'POST', path: '/v1/chat/completions', headers, body })).toBe('allow');
    }
    gate.close();
  }
  const processes = await eventually('all are noted', async () => {
    const found = await noted();
    return found.length === 6 && new Set(found);
  });
  const [gate, ...others] = await processesOf(server.pid, 'gate');
  expect([processes.size, others]).toEqual([1, []]);
  const killed = gate ?? expect.fail('no gate');
  process.kill(killed, 'SIGKILL');
  await eventually('the gate is gone', async () => !(await isRunning(killed)));

  // A minute of silence passes, in which the other process could hear of the gate.
  await database.db.query({
    text: `update metering_holders set seen_at = seen_at - interval '2 minutes' where id = any ($1::text[])`,
    values: [[...processes]],
  });
  const pool = openMetering(database.db);
  let aheadMs = 0;
  const limits = new Limits({
    store: postgresMetering(pool),
    processId: processIdOf(randomBytes(8)),
    reservationKey: Buffer.alloc(16, 3),
    windowMs: 60_000,
    tokenEstimate: 10,
    fileEstimate: 1000,
    reservationTtlMs: TTL_MS,
    now: Date.now,
    monotonicMs: () => performance.now() + aheadMs,
  });
  await limits.tick();
  aheadMs = SILENT_MS;
  await limits.tidy();
  await limits.tidy();
  await pool.close();
  expect(limits.stats.lostBooked).toBe(6);
  expect(await noted()).toEqual([]);
  for (const tenant of ['metered', 'free']) {
    const { body } = await done(server.http, 'GET', '/v1/iam/usage', { token, tenant });
    const total = Object(body['total']);
    expect(total).toMatchObject({ requests: 3, completion_tokens: 0, estimated_tokens: total.total_tokens });
    // Four bytes are one token, and a message has some of its own.
    expect(total.prompt_tokens).toBeGreaterThanOrEqual((3 * TEXT.length) / 4);
  }
});
