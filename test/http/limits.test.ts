/** GET /v1/iam/tenants/{id}/limits and PUT …/usage: the remainder of each limit, and corrections of the usage. */

import { describe, expect, test } from 'vitest';
import { allModelRates } from '../../src/decision/model-rates.ts';
import { parseTenantId, type TenantId } from '../../src/domain/ids.ts';
import { runsOutAtMs } from '../../src/iam/usage/tenant-limits.ts';
import { rateSubjectName } from '../../src/metering/rate-plans.ts';
import { placesOf } from '../../src/metering/request-plans.ts';
import { type Harness, it, type Json, outcome, type Person, unique } from './harness.ts';

const ACME = unique('acme');

let h: Harness;
let auditor: Person;
let count = 0;

it.beforeAll(async ({ harness }) => {
  h = harness;
  await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: ACME, name: 'Acme' } });
  auditor = await h.person(ACME, ['auditor']);
});

const limits = async (id: string, as = h.root.token): Promise<Json> =>
  (await h.api('GET', `/v1/iam/tenants/${id}/limits`, { as })).json;
const correct = (id: string, body: object, as = h.root.token) =>
  h.api('PUT', `/v1/iam/tenants/${id}/usage`, { as, body });

async function tenantWith(settings: Json, quotas: Json): Promise<string> {
  const id = `limited-${++count}`;
  await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id, name: id, settings, quotas } });
  return id;
}

function tenantId(text: string): TenantId {
  const id = parseTenantId(text);
  if (id === undefined) throw new Error(`${text} is no tenant id`);
  return id;
}

const NONE = { limit: null, used: null, reserved: null, remaining: null, resets_at: null };

describe('the pace of a month', () => {
  const DAY = 86_400_000;
  const month = { period: '2026-11', periodEndsMs: Date.UTC(2026, 10, 30, 23) };
  const at = (day: number) => Date.UTC(2026, 9, 31, 23) + day * DAY;

  test('gives the time at which the quota is spent at the average usage of the month', () => {
    expect(runsOutAtMs({ limit: 300, used: 100 }, month, at(5))).toBe(at(15));
  });

  test.each([
    ['the quota lasts to the end', { limit: 300, used: 40 }, at(5)],
    ['the month has just begun', { limit: 300, used: 200 }, at(1)],
    ['nothing was used', { limit: 300, used: 0 }, at(5)],
    ['everything is used', { limit: 300, used: 301 }, at(5)],
    ['there is no quota', { limit: undefined, used: 100 }, at(5)],
  ])('is unknown if %s', (_, quota, nowMs) => {
    expect(runsOutAtMs(quota, month, nowMs)).toBeUndefined();
  });
});

describe('limits', () => {
  test('that are not set are null, and their usage and what is reserved of them are shown', async () => {
    const id = await tenantWith({}, {});
    expect(await limits(id)).toEqual({
      rate_limit_rpm: NONE,
      max_tokens_per_request: NONE,
      monthly_tokens: { ...NONE, used: 0, resets_at: expect.any(String), reserved: 0, runs_out_at: null },
      max_users: { ...NONE, used: 0, reserved: 0 },
      max_collections: { ...NONE, used: 0, reserved: 0 },
      rate_limits: [],
    });
  });

  test('of 0 have a remainder of 0', async () => {
    const zero = { monthly_tokens: 0, max_users: 0, max_collections: 0 };
    const id = await tenantWith({ rate_limit_rpm: 0, max_tokens_per_request: 0 }, zero);
    const nothing = { limit: 0, used: 0, reserved: 0, remaining: 0 };
    expect(await limits(id)).toMatchObject({
      rate_limit_rpm: nothing,
      max_tokens_per_request: { ...NONE, limit: 0 },
      monthly_tokens: nothing,
      max_users: nothing,
      max_collections: nothing,
    });
  });

  test('of requests are those of the current minute, which ends within 60 s', async () => {
    const id = await tenantWith({ rate_limit_rpm: 60 }, {});
    const grant = (granted: number) =>
      h.db.knex.raw(
        `insert into rate_windows (subject, number, granted)
         select :subject, floor(extract(epoch from clock_timestamp()) / 60) + n, :granted from generate_series(-1, 1) n
         on conflict (subject, number) do update set granted = excluded.granted`,
        { subject: `tenant:${id}`, granted },
      );
    await grant(13);
    const { rate_limit_rpm: rate } = await limits(id);
    expect(rate).toMatchObject({ limit: 60, used: 13, remaining: 47 });
    const left = Date.parse(String(Object(rate).resets_at)) - Date.now();
    expect(left).toBeLessThanOrEqual(61_000);
    expect(left).toBeGreaterThan(-10_000);
    // A limit that was lowered since.
    await grant(70);
    expect(await limits(id)).toMatchObject({ rate_limit_rpm: { used: 70, remaining: 0 } });
  });

  test('by model show the current minute of requests and tokens, and the places that are taken', async () => {
    const rules = [
      { models: ['a', 'b-*'], requests_per_minute: 5, tokens_per_minute: 100 },
      { models: ['*'], parallel: 2 },
    ];
    const id = await tenantWith({ rate_limits: rules }, {});
    const [requests, tokens, places] = allModelRates({ id: tenantId(id), settings: { rate_limits: rules } });
    if (requests === undefined || tokens === undefined || places === undefined) throw new Error('a rule is missing');
    await h.db.knex.raw(
      `insert into rate_windows (subject, number, granted)
       select s.subject, floor(extract(epoch from clock_timestamp()) / 60) + n, s.granted
       from generate_series(-1, 1) n, (values (:requests, 2), (:tokens, 130)) s (subject, granted)`,
      { requests: rateSubjectName(requests), tokens: rateSubjectName(tokens) },
    );
    await h.db.knex('token_budgets').insert({ tenant_id: id, period: placesOf(places), spent: 0, held: 1 });
    const resets_at = expect.any(String);
    expect((await limits(id))['rate_limits']).toEqual([
      {
        models: ['a', 'b-*'],
        dimension: 'requests_per_minute',
        limit: 5,
        used: 2,
        reserved: 0,
        remaining: 3,
        resets_at,
      },
      {
        models: ['a', 'b-*'],
        dimension: 'tokens_per_minute',
        limit: 100,
        used: 130,
        reserved: 0,
        remaining: 0,
        resets_at,
      },
      { models: ['*'], dimension: 'parallel', limit: 2, used: 1, reserved: 0, remaining: 1, resets_at: null },
    ]);
    const listed = await h.api('GET', '/v1/iam/tenants?include=limits&limit=200', { as: h.root.token });
    const data: readonly Json[] = Object(listed.json)['data'];
    expect(data.find((each) => each['id'] === id)?.['limits']).toMatchObject({ rate_limits: [{ used: 2 }, {}, {}] });
  });

  test("of tokens are those of the month in the tenant's time zone, with reserved tokens apart", async () => {
    const id = await tenantWith({ timezone: 'Pacific/Kiritimati' }, { monthly_tokens: 100 });
    const local = new Date().toLocaleDateString('sv', { timeZone: 'Pacific/Kiritimati' });
    const [year = 0, month = 0] = local.split('-').map(Number);
    const row = { tenant_id: id, period: local.slice(0, 7), spent: 30, held: 20 };
    await h.db.knex('token_budgets').insert([row, { ...row, period: '2001-01', spent: 5, held: 0 }]);
    const resets_at = new Date(Date.UTC(year, month, 1) - 14 * 3_600_000).toISOString();
    expect((await limits(id))['monthly_tokens']).toEqual({
      limit: 100,
      used: 30,
      remaining: 70,
      resets_at,
      reserved: 20,
      runs_out_at: expect.toSatisfy((at) => at === null || at < resets_at),
    });
  });

  test('of users count those that are active', async () => {
    const id = await tenantWith({}, { max_users: 3 });
    await h.person(id, []);
    const gone = await h.person(id, []);
    await h.api('POST', `/v1/iam/users/${gone.id}/deactivate`, { as: h.root.token, tenant: id });
    expect((await limits(id))['max_users']).toEqual({ limit: 3, used: 1, reserved: 0, remaining: 2, resets_at: null });
  });

  test('of collections show unexpired reservations apart', async () => {
    const id = await tenantWith({}, { max_collections: 5 });
    await correct(id, { collections: 2 });
    const reserve = (counter: number, ttl: number) =>
      h.db.knex.raw('select metering_reserve_collection(:holder, :counter, :id, 5, :ttl)', {
        holder: id,
        counter,
        id,
        ttl,
      });
    await reserve(1, 60_000);
    await reserve(2, -1);
    expect((await limits(id))['max_collections']).toEqual({
      limit: 5,
      used: 2,
      remaining: 3,
      resets_at: null,
      reserved: 1,
    });
  });
});

describe('reading limits', () => {
  test("needs usage:read, and covers only the caller's own tenant", async () => {
    expect(outcome(await h.api('GET', `/v1/iam/tenants/${ACME}/limits`, { as: auditor.token }))).toBe('200');
    const developer = await h.person(ACME, ['developer']);
    expect(outcome(await h.api('GET', `/v1/iam/tenants/${ACME}/limits`, { as: developer.token }))).toBe(
      '403 insufficient_permission',
    );
    for (const other of ['default', 'nowhere', 'No%20Tenant']) {
      expect(outcome(await h.api('GET', `/v1/iam/tenants/${other}/limits`, { as: auditor.token }))).toBe(
        '404 not_found',
      );
    }
  });

  test('as a platform administrator covers every existing tenant', async () => {
    expect(outcome(await h.api('GET', `/v1/iam/tenants/${ACME}/limits`, { as: h.root.token }))).toBe('200');
    expect(outcome(await h.api('GET', '/v1/iam/tenants/nowhere/limits', { as: h.root.token }))).toBe('404 not_found');
  });
});

describe('the usage', () => {
  test('is set to the corrected values, and the audit row has the old and the new ones', async () => {
    const id = await tenantWith({}, { monthly_tokens: 100, max_collections: 5 });
    await correct(id, { collections: 4 });
    const reply = await correct(id, { collections: 7, monthly_tokens_used: 40 });
    const now = { monthly_tokens: { used: 40, remaining: 60 }, max_collections: { used: 7, remaining: 0 } };
    expect(reply.json).toMatchObject(now);
    expect(await limits(id)).toMatchObject(now);
    expect((await h.audit('tenant.correct_usage')).at(-1)).toMatchObject({
      tenant_id: id,
      target_type: 'tenant',
      target_id: id,
      result: 'success',
      before: { collections: 4, monthly_tokens_used: 0 },
      after: { collections: 7, monthly_tokens_used: 40 },
    });
  });

  test('notes the alerts of the monthly tokens that a correction and a lower quota reach, each once', async () => {
    const id = await tenantWith({ timezone: 'Pacific/Kiritimati' }, { monthly_tokens: 100 });
    const noted = () => h.db.knex('budget_alerts').where({ tenant_id: id }).orderBy('id').select('threshold', 'spent');
    await correct(id, { monthly_tokens_used: 80 });
    expect(await noted()).toEqual([{ threshold: 0.8, spent: 80 }]);
    const body = { quotas: { monthly_tokens: 80 } };
    expect(outcome(await h.api('PATCH', `/v1/iam/tenants/${id}`, { as: h.root.token, body }))).toBe('200');
    await correct(id, { monthly_tokens_used: 90 });
    expect(await noted()).toEqual([
      { threshold: 0.8, spent: 80 },
      { threshold: 1, spent: 80 },
    ]);
  });

  test('stays unchanged if a member is absent', async () => {
    const id = await tenantWith({}, {});
    await correct(id, { collections: 4, monthly_tokens_used: 9 });
    await correct(id, { monthly_tokens_used: 0 });
    expect(await limits(id)).toMatchObject({ monthly_tokens: { used: 0 }, max_collections: { used: 4 } });
    expect((await correct(id, {})).json).toMatchObject({ monthly_tokens: { used: 0 }, max_collections: { used: 4 } });
  });

  test('is the base of later bookings', async () => {
    const id = await tenantWith({}, {});
    await correct(id, { monthly_tokens_used: 1000 });
    const event = {
      id: 'one',
      model: 'llama-3',
      time: new Date().toISOString(),
      prompt_tokens: 1,
      completion_tokens: 1,
    };
    await h.api('POST', '/v1/iam/usage/events', { as: h.root.token, tenant: id, body: { events: [event] } });
    expect(await limits(id)).toMatchObject({ monthly_tokens: { used: 1002 } });
  });

  test.each([
    { collections: -1 },
    { collections: 1.5 },
    { collections: '3' },
    { collections: null },
    { monthly_tokens_used: -1 },
    { monthly_tokens_used: 1e16 },
    { max_users: 3 },
  ])('is not set to %j', async (body) => {
    expect(outcome(await correct(ACME, body))).toBe('422 invalid_field');
  });

  test('is set by platform administrators only', async () => {
    const admin = await h.person(ACME, ['tenant-admin']);
    expect(outcome(await correct(ACME, { collections: 0 }, admin.token))).toBe('403 insufficient_permission');
    expect(outcome(await correct('nowhere', { collections: 0 }))).toBe('404 not_found');
  });
});
