/** GET /v1/iam/usage: the tenants and months that it covers, groups, pages and CSV. */

import { describe, expect, test } from 'vitest';
import { type Harness, it, type Json, outcome, type Person, rows, unique } from './harness.ts';

const USAGE = '/v1/iam/usage';
const KEY = (n: number) => `key_0000000000000000000000${String(n).padStart(4, '0')}`;
const USER = (n: number) => `usr_0000000000000000000000${String(n).padStart(4, '0')}`;

const ACME = unique('acme');
const GLOBEX = unique('globex');

let h: Harness;
let auditor: Person;
let nobody: Person;

const EARLY = '2001-02';
let count = 0;

interface Booked {
  readonly tenant?: string;
  readonly day: string;
  readonly model?: string;
  readonly key?: string;
  readonly user?: string;
  readonly prompt?: number;
  readonly completion?: number;
  readonly cached?: number;
  readonly estimated?: boolean;
}

/** Books usage like the end of a request, for any time. */
async function book(...entries: readonly Booked[]): Promise<void> {
  const list = entries.map(({ tenant = ACME, day, model = '', key = '', user = '', ...rest }) => {
    const { prompt = 0, completion = 0, cached = 0, estimated = false } = rest;
    const names = { tenant_id: tenant, period: day.slice(0, 7), day, model, key_id: key, user_id: user };
    const sums = {
      prompt_tokens: prompt,
      completion_tokens: completion,
      cached_tokens: cached,
      total_tokens: prompt + completion,
    };
    return { n: ++count, ...names, ...sums, estimated, books: true };
  });
  await h.db.knex.raw(
    `select metering_book(array(select e from jsonb_populate_recordset(cast(null as metering_entry), cast(? as jsonb)) e))`,
    [JSON.stringify(list)],
  );
}

it.beforeAll(async ({ harness }) => {
  h = harness;
  const settings = { timezone: 'Pacific/Kiritimati' };
  await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: ACME, name: 'Acme', settings } });
  await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: GLOBEX, name: 'Globex' } });
  auditor = await h.person(ACME, ['auditor']);
  nobody = await h.person(ACME, ['developer']);
  await book(
    { day: '2001-02-01', model: 'llama-3', key: KEY(1), user: USER(1), prompt: 10, completion: 5, cached: 4 },
    { day: '2001-02-01', model: 'llama-3', key: KEY(1), user: USER(1), prompt: 1, completion: 1 },
    { day: '2001-02-28', model: 'llama-3', user: USER(1), prompt: 100 },
    { day: '2001-02-28', model: 'mistral', key: KEY(2), prompt: 1000, completion: 1000, estimated: true },
    { day: '2001-02-28', key: KEY(2) },
    { day: '2001-01-31', model: 'llama-3', prompt: 7 },
    { day: '2001-03-01', model: 'llama-3', prompt: 7 },
    { day: '2001-02-14', tenant: GLOBEX, model: 'llama-3', key: KEY(9), prompt: 50_000 },
  );
});

const ask = (query: string, as = auditor.token, headers = {}) => h.api('GET', `${USAGE}?${query}`, { as, headers });
const early = (query = '', as = auditor.token) => ask(`period=${EARLY}${query}`, as);
const sums = (requests: number, prompt: number, completion: number, cached = 0, estimated = 0) => ({
  requests,
  prompt_tokens: prompt,
  completion_tokens: completion,
  cached_tokens: cached,
  total_tokens: prompt + completion,
  estimated_tokens: estimated,
});
const TOTAL = sums(5, 1111, 1006, 4, 2000);

describe('a month', () => {
  test('is summed from its first day to its last, failed requests and estimates among it', async () => {
    expect((await early()).json).toEqual({
      period: EARLY,
      tenant_id: ACME,
      total: TOTAL,
      data: [],
      has_more: false,
      next_cursor: null,
    });
  });

  test.each([
    [
      'model',
      [
        [null, sums(1, 0, 0)],
        ['llama-3', sums(3, 111, 6, 4)],
        ['mistral', sums(1, 1000, 1000, 0, 2000)],
      ],
    ],
    [
      'key',
      [
        [null, sums(1, 100, 0)],
        [KEY(1), sums(2, 11, 6, 4)],
        [KEY(2), sums(2, 1000, 1000, 0, 2000)],
      ],
    ],
    [
      'user',
      [
        [null, sums(2, 1000, 1000, 0, 2000)],
        [USER(1), sums(3, 111, 6, 4)],
      ],
    ],
    [
      'day',
      [
        ['2001-02-01', sums(2, 11, 6, 4)],
        ['2001-02-28', sums(3, 1100, 1000, 0, 2000)],
      ],
    ],
  ] as const)('by %s is the same in parts', async (group, parts) => {
    const reply = await early(`&group_by=${group}`);
    expect(reply.json['total']).toEqual(TOTAL);
    expect(rows(reply)).toEqual(parts.map(([member, rest]) => ({ [group]: member, ...rest })));
  });

  test('without usage is nothing, not an error', async () => {
    const reply = await ask('period=1999-12&group_by=key');
    expect(reply.json).toMatchObject({ total: sums(0, 0, 0), data: [], has_more: false });
  });

  test("that is not named is the current one of the tenant's time zone, of all tenants that of UTC", async () => {
    const periodOf = (timeZone: string) => new Date().toLocaleDateString('sv', { timeZone }).slice(0, 7);
    expect((await ask('')).json['period']).toBe(periodOf('Pacific/Kiritimati'));
    expect((await ask('tenant_id=*', h.root.token)).json['period']).toBe(periodOf('UTC'));
  });
});

describe('pages', () => {
  test('of any group have each member once, and the total on every page', async () => {
    for (const group of ['model', 'key', 'user', 'day']) {
      const whole = rows(await early(`&group_by=${group}`)).map((row) => row[group]);
      const seen: unknown[] = [];
      let cursor = '';
      for (let more = true; more; ) {
        const reply = await early(`&group_by=${group}&limit=1${cursor}`);
        expect(reply.json['total']).toEqual(TOTAL);
        seen.push(...rows(reply).map((row) => row[group]));
        more = reply.json['has_more'] === true;
        cursor = `&cursor=${String(reply.json['next_cursor'])}`;
      }
      expect(seen).toEqual(whole);
    }
  });

  test("continue only in their own list: not in another grouping, month or tenant's", async () => {
    const cursor = String((await early('&group_by=key&limit=1')).json['next_cursor']);
    expect(outcome(await early(`&group_by=key&cursor=${cursor}`))).toBe('200');
    const others = [
      early(`&group_by=user&cursor=${cursor}`),
      early(`&cursor=${cursor}`),
      ask(`group_by=key&cursor=${cursor}`),
    ];
    for (const reply of await Promise.all(others)) expect(outcome(reply)).toBe('400 invalid_parameter');
    expect(outcome(await early(`&group_by=key&tenant_id=${GLOBEX}&cursor=${cursor}`, h.root.token))).toBe(
      '400 invalid_parameter',
    );
  });
});

describe('reading usage', () => {
  test('needs usage:read', async () => {
    expect(outcome(await early('', nobody.token))).toBe('403 insufficient_permission');
    expect(outcome(await h.api('GET', USAGE))).toBe('401 missing_credential');
  });

  test("covers only the caller's own tenant", async () => {
    expect(outcome(await early(`&tenant_id=${GLOBEX}`))).toBe('403 tenant_mismatch');
    expect(outcome(await early('&tenant_id=*'))).toBe('403 tenant_mismatch');
    expect(rows(await early('&group_by=key')).map((row) => row['key'])).not.toContain(KEY(9));
  });

  test('as a platform administrator covers every tenant, and all together', async () => {
    const one = await early(`&tenant_id=${GLOBEX}&group_by=key`, h.root.token);
    expect(one.json).toMatchObject({ tenant_id: GLOBEX, total: { prompt_tokens: 50_000 }, data: [{ key: KEY(9) }] });
    const all = await early('&tenant_id=*&group_by=model', h.root.token);
    expect(all.json).toMatchObject({ tenant_id: '*', total: { requests: 6, prompt_tokens: 51_111 } });
    expect(rows(all)).toContainEqual({ model: 'llama-3', ...sums(4, 50_111, 6, 4) });
    const keys = rows(await early('&tenant_id=*&group_by=key', h.root.token)).map((row) => row['key']);
    expect(keys).toEqual([null, KEY(1), KEY(2), KEY(9)]);
  });
});

test.each([
  'period=2026',
  'period=2026-13',
  'period=0000-01',
  'period=2026-11-01',
  'group_by=tenant',
  'group_by=model&group_by=key',
  'limit=0',
  'limit=201',
  'cursor=x',
  'colour=red',
])('%s is refused', async (query) => {
  expect(outcome(await ask(query))).toBe('400 invalid_parameter');
});

describe('as CSV', () => {
  const csv = (query: string, as = auditor.token) => ask(query, as, { accept: 'text/csv' });
  const COLUMNS = 'requests,prompt_tokens,completion_tokens,cached_tokens,total_tokens,estimated_tokens';

  test('has the total on one line', async () => {
    const reply = await csv(`period=${EARLY}`);
    expect(reply.text).toBe(`period,tenant_id,${COLUMNS}\r\n2001-02,${ACME},5,1111,1006,4,2117,2000\r\n`);
    expect(reply.headers).toMatchObject({
      'content-type': 'text/csv; charset=utf-8; header=present',
      'content-disposition': 'attachment; filename="usage-2001-02.csv"',
      vary: 'accept',
    });
  });

  test('has a line for each member of a group', async () => {
    expect((await csv(`period=${EARLY}&group_by=model`)).text.split('\r\n')).toEqual([
      `period,tenant_id,model,${COLUMNS}`,
      `2001-02,${ACME},,1,0,0,0,0,0`,
      `2001-02,${ACME},llama-3,3,111,6,4,117,0`,
      `2001-02,${ACME},mistral,1,1000,1000,0,2000,2000`,
      '',
    ]);
  });

  test('has every key, however many, and each once', async () => {
    const many = Array.from({ length: 1203 }, (_, n) => ({
      tenant: GLOBEX,
      day: '2002-01-15',
      key: KEY(n),
      prompt: 1,
    }));
    await book(...many);
    const lines = (await csv(`period=2002-01&group_by=key&tenant_id=${GLOBEX}`, h.root.token)).text
      .split('\r\n')
      .slice(1, -1);
    expect(lines.map((line) => line.split(',')[2])).toEqual(many.map(({ key }) => key));
  });

  test('lets no spreadsheet take the name of a model for a formula', async () => {
    await book({ day: '2003-01-01', model: '=HYPERLINK("http://evil.example")' });
    expect((await csv('period=2003-01&group_by=model')).text).toContain(`,"'=HYPERLINK(""http://evil.example"")",`);
  });

  test('takes no limit and no cursor', async () => {
    for (const paging of ['limit=10', 'cursor=x']) {
      const reply = await csv(`period=${EARLY}&group_by=key&${paging}`);
      expect([outcome(reply), reply.json['error']]).toEqual([
        '400 invalid_parameter',
        expect.objectContaining({ param: paging.split('=')[0] }),
      ]);
    }
  });

  test('has the same access rules as the pages', async () => {
    expect(outcome(await csv('', nobody.token))).toBe('403 insufficient_permission');
    expect(outcome(await csv(`tenant_id=${GLOBEX}`))).toBe('403 tenant_mismatch');
  });
});

test('the usage by model and day equals the bookings by key and user', async () => {
  const sumsOf = async (table: string) => {
    const names = [
      'requests',
      'prompt_tokens',
      'completion_tokens',
      'cached_tokens',
      'total_tokens',
      'estimated_tokens',
    ];
    const columns = names.map((name) => `sum(${name})::text as ${name}`).join(', ');
    const { rows: summed } = await h.db.knex.raw<{ rows: Json[] }>(
      `select tenant_id, day::text, model, ${columns} from ${table} group by 1, 2, 3 order by 1, 2, 3`,
    );
    return summed;
  };
  const booked = await sumsOf('usage_daily');
  expect(booked.length).toBeGreaterThan(5);
  expect(await sumsOf('usage_by_model')).toEqual(booked);
});
