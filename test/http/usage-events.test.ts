/** POST /v1/iam/usage/events: the required permission, the members of an event, and that each event counts once. */

import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { tidyUp } from '../../src/iam/auth/upkeep.ts';
import { type Call, type Harness, type Json, outcome, type Person, startHarness } from './harness.ts';

const EVENTS = '/v1/iam/usage/events';
const KEY = 'key_01jd5k3v8m2x7q9w4r6t0y1z3b';
const USER = 'usr_01jd5k3v8m2x7q9w4r6t0y1z3b';
const DAY_MS = 86_400_000;

let h: Harness;
let admin: Person;
/** The tenant that Envoy meters; the usage of all others comes from events. */
const METERED = 'initech';
const unused = Array.from({ length: 64 }, (_, index) => `tenant-${index}`);

beforeAll(async () => {
  const tenants = JSON.stringify(['acme', ...unused]);
  h = await startHarness({ settings: { POSTERN_USAGE_SOURCE: 'envoy', POSTERN_USAGE_EVENTS_TENANTS: tenants } });
  for (const id of ['acme', METERED]) {
    await h.api('POST', '/v1/iam/tenants', {
      as: h.root.token,
      body: { id, name: id, quotas: { monthly_tokens: 1000 } },
    });
  }
  admin = await h.person('acme', ['tenant-admin']);
});
afterAll(async () => {
  await h?.close();
});

const event = (members: Json = {}): Json => ({
  id: randomUUID(),
  model: 'llama-3',
  time: new Date().toISOString(),
  prompt_tokens: 10,
  completion_tokens: 5,
  ...members,
});
const tell = (events: readonly Json[], call: Call = {}) =>
  h.api('POST', EVENTS, { as: admin.token, body: { events }, ...call });

/** A tenant of its own, its month as it stands. */
async function freshTenant(settings: Json = {}) {
  const id = unused.pop();
  if (id === undefined) throw new Error('all tenants of this file are in use');
  await h.api('POST', '/v1/iam/tenants', {
    as: h.root.token,
    body: { id, name: id, settings, quotas: { monthly_tokens: 1000 } },
  });
  const as = { as: h.root.token, tenant: id };
  return {
    id,
    tell: (events: readonly Json[], call: Call = {}) => h.api('POST', EVENTS, { ...as, body: { events }, ...call }),
    usage: async (query = '') => (await h.api('GET', `/v1/iam/usage?tenant_id=${id}${query}`, as)).json,
    spent: async () => (await h.api('GET', `/v1/iam/tenants/${id}/limits`, as)).json['monthly_tokens'],
  };
}

describe('an event', () => {
  test("counts in usage and toward the tenant's quota", async () => {
    const tenant = await freshTenant();
    const whole = { key_id: KEY, user_id: USER, cached_tokens: 4, total_tokens: 20, requests: 3 };
    expect((await tenant.tell([event(whole), event({ key_id: null })])).json).toEqual({ accepted: 2, duplicates: 0 });
    const total = {
      requests: 4,
      prompt_tokens: 20,
      completion_tokens: 10,
      cached_tokens: 4,
      total_tokens: 35,
      estimated_tokens: 0,
    };
    expect(await tenant.usage()).toMatchObject({ total });
    expect(await tenant.usage('&group_by=key')).toMatchObject({
      data: [
        { key: null, requests: 1 },
        { key: KEY, requests: 3 },
      ],
    });
    expect(await tenant.usage('&group_by=user')).toMatchObject({
      data: [{ user: null }, { user: USER, total_tokens: 20 }],
    });
    expect(await tenant.spent()).toMatchObject({ used: 35, remaining: 965 });
  });

  test("belongs to the day and month of its time in the tenant's time zone", async () => {
    const tenant = await freshTenant({ timezone: 'Pacific/Kiritimati' });
    // Fourteen hours ahead: the first of a month there, the last of the one before in UTC.
    const now = new Date();
    const border = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 1) - 14 * 3_600_000);
    const after = border.getTime() + 60_000 > now.getTime() ? now : border;
    const local = after.toLocaleDateString('sv', { timeZone: 'Pacific/Kiritimati' });
    await tenant.tell([event({ time: after.toISOString() })]);
    expect(await tenant.usage(`&group_by=day&period=${local.slice(0, 7)}`)).toMatchObject({
      data: [{ day: local, requests: 1 }],
    });
  });

  test('of a batch waits for a turn of its own if the events before it took long', async () => {
    const tenant = await freshTenant();
    const readings = async (events: number): Promise<number> => {
      const clock = vi.spyOn(performance, 'now');
      try {
        expect((await tenant.tell(Array.from({ length: events }, () => event()))).json['accepted']).toBe(events);
        return clock.mock.calls.length;
      } finally {
        clock.mockRestore();
      }
    };
    await readings(1);
    expect(await readings(1_000)).toBeGreaterThanOrEqual(1_000);
  });

  test('past the quota counts too', async () => {
    const tenant = await freshTenant();
    await tenant.tell([event({ prompt_tokens: 5000 })]);
    expect((await tenant.tell([event()])).json).toEqual({ accepted: 1, duplicates: 0 });
    expect(await tenant.spent()).toMatchObject({ limit: 1000, used: 5020, remaining: 0 });
  });

  test.each([
    [{ id: '' }, '/events/0/id'],
    [{ id: 'with space' }, '/events/0/id'],
    [{ id: 'x'.repeat(129) }, '/events/0/id'],
    [{ model: ' ' }, '/events/0/model'],
    [{ key_id: 'psk_secret' }, '/events/0/key_id'],
    [{ user_id: KEY }, '/events/0/user_id'],
    [{ time: 'yesterday' }, '/events/0/time'],
    [{ time: '2026-01-01T00:00:60Z' }, '/events/0/time'],
    [{ time: '2026-01-01T00:00:00+02' }, '/events/0/time'],
    [{ time: new Date(Date.now() - 36 * DAY_MS).toISOString() }, '/events/0/time'],
    [{ time: new Date(Date.now() + DAY_MS).toISOString() }, '/events/0/time'],
    [{ prompt_tokens: -1 }, '/events/0/prompt_tokens'],
    [{ completion_tokens: 1.5 }, '/events/0/completion_tokens'],
    [{ prompt_tokens: 1_000_000_001 }, '/events/0/prompt_tokens'],
    [{ cached_tokens: 11 }, '/events/0/cached_tokens'],
    [{ total_tokens: 14 }, '/events/0/total_tokens'],
    [{ requests: 0 }, '/events/0/requests'],
    [{ colour: 'red' }, '/events/0/colour'],
    [{ prompt_tokens: undefined }, '/events/0/prompt_tokens'],
  ])('with %j is rejected with the path of the error', async (members, path) => {
    const reply = await tell([event(members)]);
    expect([outcome(reply), reply.json['errors']]).toEqual(['422 invalid_field', [expect.objectContaining({ path })]]);
  });
});

describe('a batch', () => {
  test('counts as a whole or not at all', async () => {
    const tenant = await freshTenant();
    expect(outcome(await tenant.tell([event(), event({ cached_tokens: 11 })]))).toBe('422 invalid_field');
    expect(await tenant.usage()).toMatchObject({ total: { requests: 0 } });
  });

  test('holds 1 to 1000 events', async () => {
    const tenant = await freshTenant();
    const many = Array.from({ length: 1001 }, () => event({ prompt_tokens: 0 }));
    expect(outcome(await tenant.tell(many))).toBe('422 invalid_field');
    expect(outcome(await tenant.tell([]))).toBe('422 invalid_field');
    expect((await tenant.tell(many.slice(1))).json).toEqual({ accepted: 1000, duplicates: 0 });
    expect(await tenant.spent()).toMatchObject({ used: 5000 });
  });

  test('with the same event twice counts it once, as it came first', async () => {
    const tenant = await freshTenant();
    const first = event();
    expect((await tenant.tell([first, { ...first, prompt_tokens: 99 }])).json).toEqual({ accepted: 1, duplicates: 1 });
    expect(await tenant.usage()).toMatchObject({ total: { requests: 1, prompt_tokens: 10 } });
  });

  test('leaves a row in the audit log', async () => {
    const reply = await tell([event()]);
    const written = await h.audit('usage.record');
    expect(written.find((row) => row['request_id'] === reply.headers['x-request-id'])).toMatchObject({
      tenant_id: 'acme',
      actor_id: admin.id,
      target_type: 'tenant',
      target_id: 'acme',
      after: { accepted: 1, duplicates: 0, total_tokens: 15 },
    });
  });
});

describe('an id', () => {
  test('that was sent counts no second time, also with other values', async () => {
    const tenant = await freshTenant();
    const sent = event();
    await tenant.tell([sent]);
    expect((await tenant.tell([{ ...sent, prompt_tokens: 500 }, event()])).json).toEqual({
      accepted: 1,
      duplicates: 1,
    });
    expect(await tenant.spent()).toMatchObject({ used: 30 });
  });

  test('is of one tenant: another may use the same', async () => {
    const [one, other] = [await freshTenant(), await freshTenant()];
    const sent = event();
    await one.tell([sent]);
    expect((await other.tell([sent])).json).toEqual({ accepted: 1, duplicates: 0 });
    expect([await one.spent(), await other.spent()]).toMatchObject([{ used: 15 }, { used: 15 }]);
  });

  test('of one batch sent twenty times at once, in any order, counts once', async () => {
    const tenant = await freshTenant();
    const batch = Array.from({ length: 50 }, (_, n) =>
      event({ model: `model-${n % 7}`, key_id: n % 2 === 0 ? KEY : null }),
    );
    const shuffled = (n: number) => (n % 2 === 0 ? batch : batch.toReversed());
    const replies = await Promise.all(Array.from({ length: 20 }, (_, n) => tenant.tell(shuffled(n))));
    expect(replies.map(outcome)).toEqual(replies.map(() => '200'));
    const accepted = replies.map(({ json }) => Number(json['accepted']));
    expect(accepted.toSorted((a, b) => a - b)).toEqual([...accepted.slice(1).map(() => 0), 50]);
    expect(await tenant.usage()).toMatchObject({ total: { requests: 50, total_tokens: 750 } });
    expect(await tenant.spent()).toMatchObject({ used: 750 });
  });

  test('of overlapping batches sent at once counts once', async () => {
    const tenant = await freshTenant();
    const all = Array.from({ length: 60 }, () => event());
    const replies = await Promise.all(Array.from({ length: 12 }, (_, n) => tenant.tell(all.slice(n * 4, n * 4 + 16))));
    const accepted = replies.reduce((sum, { json }) => sum + Number(json['accepted']), 0);
    expect(accepted).toBe(60);
    expect(await tenant.spent()).toMatchObject({ used: 900 });
  });

  test('is deleted only after the period in which its event is accepted', async () => {
    const tenant = await freshTenant();
    const old = event({ time: new Date(Date.now() - 34 * DAY_MS).toISOString() });
    const older = event({ time: new Date(Date.now() - 34 * DAY_MS).toISOString() });
    await tenant.tell([old, older]);
    await h.db
      .knex('usage_events')
      .where({ id: older['id'] })
      .update({ time: new Date(Date.now() - 37 * DAY_MS) });
    await tidyUp(h.db);
    expect(await h.db.knex('usage_events').where({ tenant_id: tenant.id }).pluck('id')).toEqual([old['id']]);
    expect((await tenant.tell([old])).json).toEqual({ accepted: 0, duplicates: 1 });
  });

  test('of the request makes the whole batch safe to repeat', async () => {
    const tenant = await freshTenant();
    const [batch, headers] = [[event(), event()], { 'idempotency-key': randomUUID() }];
    const first = await tenant.tell(batch, { headers });
    const again = await tenant.tell(batch, { headers });
    expect([first.json, again.json]).toEqual([first.json, first.json]);
    expect(again.headers['idempotency-replayed']).toBe('true');
    expect(await tenant.spent()).toMatchObject({ used: 30 });
  });
});

describe('sending events', () => {
  test('needs usage:write', async () => {
    const auditor = await h.person('acme', ['auditor']);
    expect(outcome(await tell([event()], { as: auditor.token }))).toBe('403 insufficient_permission');
    expect(outcome(await h.api('POST', EVENTS, { body: { events: [event()] } }))).toBe('401 missing_credential');
  });

  test('is possible with a key that has only that scope', async () => {
    const body = { description: 'meter', scopes: ['usage:write'], expires_in_days: 1 };
    const { json } = await h.api('POST', '/v1/iam/api-keys', { as: admin.token, body });
    expect(outcome(await tell([event()], { as: String(json['key']) }))).toBe('200');
  });

  test("covers only the caller's own tenant, except for platform administrators", async () => {
    const other = await freshTenant();
    const body = { tenant_id: other.id, events: [event()] };
    expect(outcome(await tell([], { body }))).toBe('403 tenant_mismatch');
    expect(outcome(await tell([event()], { tenant: other.id }))).toBe('403 tenant_mismatch');
    expect(outcome(await tell([], { as: h.root.token, body }))).toBe('200');
    expect(await other.spent()).toMatchObject({ used: 15 });
  });
});

test('where Envoy meters a tenant events are refused, and nothing counts twice', async () => {
  const reply = await tell([event()], { as: h.root.token, tenant: METERED });
  expect([outcome(reply), reply.headers['x-should-retry']]).toEqual(['409 in_use', 'false']);
  const { json } = await h.api('GET', `/v1/iam/usage?tenant_id=${METERED}`, { as: h.root.token });
  expect(json).toMatchObject({ total: { requests: 0 } });
});

test('an unreachable database is 503, and the batch may be sent again', async () => {
  const batch = [event()];
  await h.cutDatabase();
  try {
    expect(outcome(await tell(batch))).toBe('503 unavailable');
  } finally {
    await h.restoreDatabase();
  }
  expect((await tell(batch)).json).toEqual({ accepted: 1, duplicates: 0 });
});
