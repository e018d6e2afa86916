/** GET /v1/iam/decisions: the tenants and minutes that it covers, and its pages. */

import { describe, expect, test } from 'vitest';
import { type Harness, it, type Json, outcome, type Person, rows, unique } from './harness.ts';

const DECISIONS = '/v1/iam/decisions';
const CHAT = 'POST /v1/chat/completions';

const ACME = unique('acme');
const GLOBEX = unique('globex');

let h: Harness;
let auditor: Person;
let nobody: Person;

/** Records a decision as a server does. */
async function count(tenant: string, minute: string, code: string, route: string, decisions: number): Promise<void> {
  await h.db.query({
    text: 'insert into decision_counts (tenant_id, minute, code, route, decisions) values ($1, $2, $3, $4, $5)',
    values: [tenant, `2026-11-21T${minute}:00Z`, code, route, decisions],
  });
}

it.beforeAll(async ({ harness }) => {
  h = harness;
  for (const id of [ACME, GLOBEX]) await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id, name: id } });
  auditor = await h.person(ACME, ['auditor']);
  nobody = await h.person(ACME, ['developer']);
  await count(ACME, '09:00', 'allow', CHAT, 40);
  await count(ACME, '09:00', 'denied_by_policy', CHAT, 2);
  await count(ACME, '09:01', 'allow', 'GET /v1/models', 7);
  await count(ACME, '09:01', 'unavailable', '', 1);
  await count(ACME, '10:00', 'allow', CHAT, 1000);
  await count(GLOBEX, '09:00', 'allow', CHAT, 500);
  await count('', '09:00', 'missing_credential', CHAT, 3);
  await count('', '09:00', 'public', '', 5);
});

const ask = (query: string, as = auditor.token) => h.api('GET', `${DECISIONS}?${query}`, { as });
const NINE = 'from=2026-11-21T09:00:00Z&to=2026-11-21T10:00:00Z';

describe('the summary of decisions', () => {
  test('is shown by minute, code and route, with the totals, from one instant to another, of the tenant alone', async () => {
    const row = (minute: string, kind: string, code: string, route: string | null, number: number) => ({
      ...{ minute: `2026-11-21T${minute}:00.000Z`, outcome: kind, code, route },
      count: number,
    });
    expect((await ask(NINE)).json).toEqual({
      from: '2026-11-21T09:00:00.000Z',
      to: '2026-11-21T10:00:00.000Z',
      tenant_id: ACME,
      interval: 'minute',
      total: { allow: 47, deny: 2, fault: 1 },
      data: [
        row('09:00', 'allow', 'allow', CHAT, 40),
        row('09:00', 'deny', 'denied_by_policy', CHAT, 2),
        row('09:01', 'allow', 'allow', 'GET /v1/models', 7),
        row('09:01', 'fault', 'unavailable', null, 1),
      ],
      has_more: false,
      next_cursor: null,
    });
  });

  test('is grouped by UTC minute, hour or day, and by code or outcome, so that a chart of a day or a week is one page', async () => {
    await count(ACME, '22:30', 'allow', CHAT, 4);
    await count(ACME, '22:59', 'public', '', 1);
    await count(ACME, '22:59', 'no_route', '', 1);
    const day = 'from=2026-11-21T00:00:00Z&to=2026-11-22T00:00:00Z';
    const table = async (query: string) =>
      rows(await ask(`${day}&${query}`)).map((row) => [
        String(row['minute']).slice(11, 16),
        row['outcome'],
        row['code'],
        row['route'],
        row['count'],
      ]);
    expect(await table('interval=hour')).toEqual([
      ['09:00', 'allow', 'allow', 'GET /v1/models', expect.any(Number)],
      ['09:00', 'allow', 'allow', CHAT, 40],
      ['09:00', 'deny', 'denied_by_policy', CHAT, 2],
      ['09:00', 'fault', 'unavailable', null, 1],
      ['10:00', 'allow', 'allow', CHAT, 1000],
      ['22:00', 'allow', 'allow', CHAT, 4],
      ['22:00', 'deny', 'no_route', null, 1],
      ['22:00', 'allow', 'public', null, 1],
    ]);
    expect(await table('interval=day&group_by=outcome')).toEqual([
      ['00:00', 'allow', null, null, expect.any(Number)],
      ['00:00', 'deny', null, null, 3],
      ['00:00', 'fault', null, null, 1],
    ]);
    expect(await table('interval=hour&group_by=code')).toEqual([
      ['09:00', 'allow', 'allow', null, expect.any(Number)],
      ['09:00', 'deny', 'denied_by_policy', null, 2],
      ['09:00', 'fault', 'unavailable', null, 1],
      ['10:00', 'allow', 'allow', null, 1000],
      ['22:00', 'allow', 'allow', null, 4],
      ['22:00', 'deny', 'no_route', null, 1],
      ['22:00', 'allow', 'public', null, 1],
    ]);
    const paged: unknown[] = [];
    for (let cursor = ''; ; ) {
      const reply = await ask(`${day}&interval=hour&limit=1${cursor}`);
      paged.push(...rows(reply).map((row) => [row['minute'], row['code'], row['route']]));
      if (reply.json['has_more'] !== true) break;
      cursor = `&cursor=${String(reply.json['next_cursor'])}`;
    }
    expect(paged).toEqual(
      rows(await ask(`${day}&interval=hour`)).map((row) => [row['minute'], row['code'], row['route']]),
    );
    expect((await ask(`${day}&interval=hour`)).json['total']).toMatchObject({ deny: 3, fault: 1 });
  });

  test('begins with the minute that `from` is in, and ends before a minute that begins with `to`', async () => {
    const { json } = await ask('from=2026-11-21T09:01:59Z&to=2026-11-21T10:00:00.001Z');
    expect(json['total']).toEqual({ allow: 1007, deny: 0, fault: 1 });
    expect(json['from']).toBe('2026-11-21T09:01:00.000Z');
  });

  test('covers the last hour by default', async () => {
    const { json } = await ask('');
    const span = Date.parse(String(json['to'])) - Date.parse(String(json['from']));
    expect(span).toBeGreaterThanOrEqual(3_600_000);
    expect(span).toBeLessThan(3_660_000);
    expect(json).toMatchObject({ total: { allow: 0, deny: 0, fault: 0 }, data: [] });
  });

  test('of another tenant, of all tenants, and of requests without a known tenant, is for platform administrators only', async () => {
    const root = h.root.token;
    expect((await ask(`${NINE}&tenant_id=${GLOBEX}`, root)).json).toMatchObject({
      tenant_id: GLOBEX,
      total: { allow: 500 },
    });
    expect((await ask(`${NINE}&tenant_id=*`, root)).json).toMatchObject({
      tenant_id: '*',
      total: { allow: 552, deny: 5, fault: 1 },
    });
    for (const tenant of [GLOBEX, 'no-such-tenant', '*']) {
      expect(outcome(await ask(`${NINE}&tenant_id=${tenant}`)), tenant).toBe('403 tenant_mismatch');
    }
  });

  test('needs usage:read', async () => {
    expect(outcome(await ask(NINE, nobody.token))).toBe('403 insufficient_permission');
  });

  test.each([
    ['from=yesterday', 'from'],
    ['to=2026-11-21', 'to'],
    ['from=2026-02-30T25:00:00Z', 'from'],
    ['from=9999-12-31T23:59:59-23:59', 'from'],
    ['from=0000-01-01T00:00:00+23:59', 'from'],
    ['period=2026-11', 'period'],
    ['limit=0', 'limit'],
    ['cursor=x', 'cursor'],
  ])('is rejected with %s', async (query, param) => {
    const reply = await ask(query);
    expect([outcome(reply), reply.json['error']]).toMatchObject(['400 invalid_parameter', { param }]);
  });
});

describe('pages', () => {
  test('show every row once, in order, while others are counted', async () => {
    const seen: Json[] = [];
    let cursor = '';
    do {
      const reply = await ask(`${NINE}&limit=1${cursor}`);
      seen.push(...rows(reply));
      expect(reply.json['total'], 'on every page').toMatchObject({ deny: 2, fault: 1 });
      cursor = reply.json['has_more'] === true ? `&cursor=${String(reply.json['next_cursor'])}` : '';
      if (seen.length === 2) await count(ACME, '09:00', 'allow', 'GET /v1/models', 1);
    } while (cursor !== '');
    expect(seen.map((row) => row['count'])).toEqual([40, 2, 7, 1]);
  });

  test('reject a cursor of another time or of another tenant', async () => {
    const cursor = String((await ask(`${NINE}&limit=1`)).json['next_cursor']);
    for (const [query, as] of [
      ['from=2026-11-21T08:00:00Z', auditor.token],
      [`${NINE}&tenant_id=${GLOBEX}`, h.root.token],
    ] as const) {
      expect(outcome(await ask(`${query}&cursor=${cursor}`, as))).toBe('400 invalid_parameter');
    }
  });
});
