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
  /** Of version 3 of a list of prices. */
  readonly cost?: number;
}

/** Books usage like the end of a request, for any time. */
async function book(...entries: readonly Booked[]): Promise<void> {
  const list = entries.map(({ tenant = ACME, day, model = '', key = '', user = '', ...rest }) => {
    const { prompt = 0, completion = 0, cached = 0, estimated = false, cost } = rest;
    const names = { tenant_id: tenant, period: day.slice(0, 7), day, model, key_id: key, user_id: user };
    const sums = {
      prompt_tokens: prompt,
      completion_tokens: completion,
      cached_tokens: cached,
      total_tokens: prompt + completion,
    };
    const price = { cost: cost ?? 0, price_version: cost === undefined ? 0 : 3, charges: [] };
    return { n: ++count, ...names, ...sums, ...price, estimated, books: true };
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
    { day: '2001-02-28', model: 'mistral', key: KEY(2), prompt: 1000, completion: 1000, estimated: true, cost: COST },
    { day: '2001-02-28', key: KEY(2) },
    { day: '2001-01-31', model: 'llama-3', prompt: 7 },
    { day: '2001-03-01', model: 'llama-3', prompt: 7 },
    { day: '2001-02-14', tenant: GLOBEX, model: 'llama-3', key: KEY(9), prompt: 50_000 },
  );
});

const ask = (query: string, as = auditor.token, headers = {}) => h.api('GET', `${USAGE}?${query}`, { as, headers });
const early = (query = '', as = auditor.token) => ask(`period=${EARLY}${query}`, as);
const sums = (requests: number, prompt: number, completion: number, cached = 0, estimated = 0, cost = '0.00') => ({
  requests,
  prompt_tokens: prompt,
  completion_tokens: completion,
  cached_tokens: cached,
  total_tokens: prompt + completion,
  estimated_tokens: estimated,
  cost,
});
/** The price of the tokens of `mistral` is that of version 3 of a list; `llama-3` has none. */
const COST = 2_500_000_001;
const IN_TOTAL = sums(5, 1111, 1006, 4, 2000, '2.500000001');
const TOTAL = { ...IN_TOTAL, unpriced_requests: 3 };

/** Adds the requests that named a model without a price. */
const unpriced = (requests: number, row: ReturnType<typeof sums>) => ({ ...row, unpriced_requests: requests });

describe('a month', () => {
  test('is summed from its first day to its last, failed requests and estimates among it', async () => {
    expect((await early()).json).toEqual({
      period: EARLY,
      from: '2001-02-01',
      to: '2001-02-28',
      tenant_id: ACME,
      total: TOTAL,
      data: [],
      has_more: false,
      timezone: 'Pacific/Kiritimati',
      next_cursor: null,
    });
  });

  test.each([
    [
      'model',
      [
        [null, unpriced(0, sums(1, 0, 0))],
        ['llama-3', unpriced(3, sums(3, 111, 6, 4))],
        ['mistral', unpriced(0, sums(1, 1000, 1000, 0, 2000, IN_TOTAL.cost))],
      ],
    ],
    [
      'key',
      [
        [null, sums(1, 100, 0)],
        [KEY(1), sums(2, 11, 6, 4)],
        [KEY(2), sums(2, 1000, 1000, 0, 2000, IN_TOTAL.cost)],
      ],
    ],
    [
      'user',
      [
        [null, sums(2, 1000, 1000, 0, 2000, IN_TOTAL.cost)],
        [USER(1), sums(3, 111, 6, 4)],
      ],
    ],
    [
      'day',
      [
        ['2001-02-01', unpriced(2, sums(2, 11, 6, 4))],
        ['2001-02-28', unpriced(1, sums(3, 1100, 1000, 0, 2000, IN_TOTAL.cost))],
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

  test('that is the last one of a year of four digits is answered like any other', async () => {
    const reply = await ask('period=9999-12&group_by=key');
    expect(reply.json).toMatchObject({ from: '9999-12-01', to: '9999-12-31', data: [], has_more: false });
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
    expect(rows(all)).toContainEqual({ model: 'llama-3', ...unpriced(4, sums(4, 50_111, 6, 4)) });
    const keys = rows(await early('&tenant_id=*&group_by=key', h.root.token)).map((row) => row['key']);
    expect(keys).toEqual([null, KEY(1), KEY(2), KEY(9)]);
  });
});

describe('a span of days', () => {
  const SPANS = [
    ['2001-02-01', '2001-02-28'],
    ['2001-02-01', '2001-02-01'],
    ['2001-02-02', '2001-02-28'],
    ['2001-01-31', '2001-02-01'],
    ['2001-02-14', '2001-03-01'],
    ['2000-12-15', '2001-03-20'],
    ['2001-02-28', '2001-02-28'],
    ['9999-12-30', '9999-12-31'],
  ] as const;

  /** The groups of a span, from the bookings themselves. */
  const naive = async (column: string, from: string, to: string) => {
    const { rows: found } = await h.db.knex.raw<{ rows: Json[] }>(
      `select nullif(${column}, '') as member, sum(requests)::int as requests, sum(total_tokens)::int as total_tokens
       from usage_daily where tenant_id = :tenant and day between :from and :to group by 1`,
      { tenant: ACME, from, to },
    );
    return new Map(found.map((row) => [row['member'], [row['requests'], row['total_tokens']]]));
  };

  test.each(SPANS)('from %s to %s has each day of it, the first and the last included', async (from, to) => {
    for (const [group, column] of [
      ['key', 'key_id'],
      ['user', 'user_id'],
      ['model', 'model'],
      ['day', 'day::text'],
    ] as const) {
      const reply = await ask(`from=${from}&to=${to}&group_by=${group}`);
      expect(reply.json).toMatchObject({ period: null, from, to });
      const found = rows(reply).map((row) => [row[group], [row['requests'], row['total_tokens']]] as const);
      expect(new Map(found)).toEqual(await naive(column, from, to));
    }
  });

  test('that has no end ends today', async () => {
    const today = new Date().toLocaleDateString('sv', { timeZone: 'Pacific/Kiritimati' });
    expect((await ask(`from=${today}`)).json).toMatchObject({ from: today, to: today });
  });

  test('has at most 366 days', async () => {
    expect(outcome(await ask('from=2004-01-01&to=2004-12-31'))).toBe('200');
    expect(outcome(await ask('from=2004-01-01&to=2005-01-01'))).toBe('400 invalid_parameter');
  });

  test('is named in the CSV and its file', async () => {
    const reply = await ask('from=2001-02-01&to=2001-02-02&group_by=key', auditor.token, { accept: 'text/csv' });
    expect(reply.text.split('\r\n')[1]).toBe(`2001-02-01/2001-02-02,${ACME},${KEY(1)},2,11,6,4,17,0,0.00`);
    expect(reply.headers['content-disposition']).toBe('attachment; filename="usage-2001-02-01_2001-02-02.csv"');
  });
});

describe('a sorted list', () => {
  const NUMBERS = [
    'requests',
    'prompt_tokens',
    'completion_tokens',
    'cached_tokens',
    'total_tokens',
    'estimated_tokens',
    'cost',
  ] as const;

  test.each(['model', 'key', 'user', 'day'])(
    'by %s has the order of each number in both directions, over pages too',
    async (group) => {
      const isPriced = group === 'model' || group === 'day';
      for (const number of isPriced ? [...NUMBERS, 'unpriced_requests'] : NUMBERS) {
        for (const sort of [number, `-${number}`]) {
          const seen: Json[] = [];
          let cursor = '';
          for (let more = true; more; ) {
            const reply = await early(`&group_by=${group}&sort=${sort}&limit=1${cursor}`);
            seen.push(...rows(reply));
            more = reply.json['has_more'] === true;
            cursor = `&cursor=${String(reply.json['next_cursor'])}`;
          }
          const values = seen.map((row) => Number(row[number]));
          expect(values, sort).toEqual(values.toSorted((a, b) => (sort === number ? a - b : b - a)));
          const members = (await early(`&group_by=${group}`)).json['data'];
          expect(new Set(seen.map((row) => row[group]))).toEqual(
            new Set(rows({ json: { data: members } } as never).map((row) => row[group])),
          );
        }
      }
    },
  );

  test.each(['group_by=key', 'group_by=user', `group_by=model&key_id=${KEY(1)}`])(
    'of rows without unpriced_requests is not sorted by it: %s',
    async (query) => {
      expect(rows(await early(`&${query}`))[0]).not.toHaveProperty('unpriced_requests');
      expect(outcome(await early(`&${query}&sort=unpriced_requests`))).toBe('400 invalid_parameter');
    },
  );

  test('has a cursor that continues only in its own order', async () => {
    const cursor = String((await early('&group_by=key&sort=-requests&limit=1')).json['next_cursor']);
    expect(outcome(await early(`&group_by=key&sort=-requests&limit=1&cursor=${cursor}`))).toBe('200');
    for (const sort of ['', '&sort=requests', '&sort=-total_tokens', '&sort=id'])
      expect(outcome(await early(`&group_by=key&limit=1${sort}&cursor=${cursor}`))).toBe('400 invalid_parameter');
  });

  test('is also that of the CSV', async () => {
    const reply = await ask(`period=${EARLY}&group_by=key&sort=-total_tokens`, auditor.token, { accept: 'text/csv' });
    expect(
      reply.text
        .split('\r\n')
        .slice(1, -1)
        .map((line) => line.split(',')[2]),
    ).toEqual([KEY(2), '', KEY(1)]);
  });
});

describe('grouped by tenant', () => {
  test('it names the tenants of the platform by their usage, for platform administrators', async () => {
    const reply = await early('&tenant_id=*&group_by=tenant&sort=-total_tokens&include=names', h.root.token);
    expect(rows(reply)).toEqual([
      { tenant: GLOBEX, name: 'Globex', ...unpriced(1, sums(1, 50_000, 0)) },
      { tenant: ACME, name: 'Acme', ...TOTAL },
    ]);
  });

  test('it is refused to all others, and for one tenant', async () => {
    expect(outcome(await early('&group_by=tenant'))).toBe('400 invalid_parameter');
    expect(outcome(await early('&group_by=tenant&tenant_id=*'))).toBe('403 tenant_mismatch');
    expect(outcome(await early('&group_by=tenant', h.root.token))).toBe('400 invalid_parameter');
  });
});

test('a list of keys that would sum more than 200,000 rows is refused with that number, and is read in the order of their ids', async () => {
  const batch = 20_000;
  try {
    for (let from = 0; from <= 200_000; from += batch) {
      await h.db.knex.raw(
        `insert into usage_by_month (tenant_id, month, key_id, user_id, requests)
         select :tenant, '1999-05-01', 'key_' || lpad(n::text, 26, '0'), '', 1 from generate_series(:from::int, :to::int) n`,
        { tenant: ACME, from, to: Math.min(200_000, from + batch - 1) },
      );
    }
    const sorted = await ask('period=1999-05&group_by=key&sort=-requests');
    expect(outcome(sorted)).toBe('400 invalid_parameter');
    expect(sorted.json['detail']).toBe(
      'The server sums at most 200,000 rows of usage for one answer by key. Ask for fewer days.',
    );
    expect(rows(await ask('period=1999-05&group_by=key'))).toHaveLength(50);
  } finally {
    await h.db.knex('usage_by_month').where('month', '1999-05-01').delete();
  }
});

describe('of one key', () => {
  const spans = ['period=2001-02', 'from=2001-01-31&to=2001-02-01', 'from=2000-12-15&to=2001-03-20'];

  test.each(spans)('with %s is the part of that key, in the total, in every group and in the CSV', async (span) => {
    for (const [key, total] of [
      [KEY(1), sums(2, 11, 6, 4)],
      [KEY(2), span.endsWith('02-01') ? sums(0, 0, 0) : sums(2, 1000, 1000, 0, 2000, IN_TOTAL.cost)],
    ] as const) {
      const of = `${span}&key_id=${key}`;
      expect((await ask(of)).json).toMatchObject({ total, data: [] });
      for (const group of ['model', 'key', 'user', 'day', 'tenant']) {
        const scope = group === 'tenant' ? '&tenant_id=*' : '';
        const as = group === 'tenant' ? h.root.token : auditor.token;
        const reply = await ask(`${of}&group_by=${group}${scope}`, as);
        expect(reply.json['total']).toEqual(total);
        const found = rows(reply).reduce((sum, row) => sum + Number(row['total_tokens']), 0);
        expect(found).toBe(total.total_tokens);
        if (group === 'key') expect(rows(reply)).toEqual(total.requests === 0 ? [] : [{ key, ...total }]);
      }
      const csv = await ask(of, auditor.token, { accept: 'text/csv' });
      expect(csv.text.split('\r\n')[1]?.split(',').slice(2)).toEqual(Object.values(total).map(String));
    }
  });

  test("is nothing for another tenant's key, and refused for a text that is no id or the cursor of another key", async () => {
    expect((await early(`&key_id=${KEY(9)}&group_by=day`)).json).toMatchObject({ total: sums(0, 0, 0), data: [] });
    for (const text of ['', 'key_1', USER(1)])
      expect(outcome(await early(`&key_id=${text}`))).toBe('400 invalid_parameter');
    const cursor = String((await early(`&key_id=${KEY(2)}&group_by=model&limit=1`)).json['next_cursor']);
    expect(outcome(await early(`&key_id=${KEY(2)}&group_by=model&limit=1&cursor=${cursor}`))).toBe('200');
    expect(outcome(await early(`&key_id=${KEY(1)}&group_by=model&limit=1&cursor=${cursor}`))).toBe(
      '400 invalid_parameter',
    );
  });
});

describe('with include=names', () => {
  test('a row has the name of its key or user only if the caller may read it', async () => {
    const { id } = await h.person(ACME, ['developer']);
    await book({ day: '2004-05-05', user: id, prompt: 1 }, { day: '2004-05-05', prompt: 1 });
    const admin = await h.person(ACME, ['tenant-admin']);
    const named = async (as: string) =>
      rows(await ask('period=2004-05&group_by=user&include=names', as)).map(({ user, name }) => [user, name]);
    expect(await named(auditor.token)).toEqual([
      [null, null],
      [id, null],
    ]);
    expect(await named(admin.token)).toEqual([
      [null, null],
      [id, expect.stringMatching(/./)],
    ]);
  });
});

test.each([
  'period=2026',
  'period=2026-13',
  'period=0000-01',
  'period=2026-11-01',
  'group_by=tenant',
  'sort=name',
  'from=2026-02-30',
  'from=2026-02-02&to=2026-02-01',
  'from=2026-02-02&period=2026-02',
  'to=2026-02-02',
  'include=everything',
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
  const COLUMNS = 'requests,prompt_tokens,completion_tokens,cached_tokens,total_tokens,estimated_tokens,cost';

  test('has the total on one line', async () => {
    const reply = await csv(`period=${EARLY}`);
    expect(reply.text).toBe(`period,tenant_id,${COLUMNS}\r\n2001-02,${ACME},5,1111,1006,4,2117,2000,2.500000001\r\n`);
    expect(reply.headers).toMatchObject({
      'content-type': 'text/csv; charset=utf-8; header=present',
      'content-disposition': 'attachment; filename="usage-2001-02.csv"',
      vary: 'accept',
    });
  });

  test('has a line for each member of a group', async () => {
    expect((await csv(`period=${EARLY}&group_by=model`)).text.split('\r\n')).toEqual([
      `period,tenant_id,model,${COLUMNS}`,
      `2001-02,${ACME},,1,0,0,0,0,0,0.00`,
      `2001-02,${ACME},llama-3,3,111,6,4,117,0,0.00`,
      `2001-02,${ACME},mistral,1,1000,1000,0,2000,2000,2.500000001`,
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

test('the usage by model and day, and by month, equals the bookings by key and user', async () => {
  const sumsOf = async (table: string, by: string) => {
    const names = [
      'requests',
      'prompt_tokens',
      'completion_tokens',
      'cached_tokens',
      'total_tokens',
      'estimated_tokens',
      'cost',
    ];
    const columns = names.map((name) => `sum(${name})::text as ${name}`).join(', ');
    const { rows: summed } = await h.db.knex.raw<{ rows: Json[] }>(
      `select ${by}, ${columns} from ${table} where tenant_id in (?, ?) group by 1, 2, 3, 4 order by 1, 2, 3, 4`,
      [ACME, GLOBEX],
    );
    return summed;
  };
  const byModel = `tenant_id, day::text, model, ''`;
  const booked = await sumsOf('usage_daily', byModel);
  expect(booked.length).toBeGreaterThan(5);
  expect(await sumsOf('usage_by_model', byModel)).toEqual(booked);
  const byMonth = `tenant_id, date_trunc('month', DAY)::date::text as month, key_id collate "C" as key, user_id collate "C" as user`;
  expect(await sumsOf('usage_by_month', byMonth.replace('DAY', 'month'))).toEqual(
    await sumsOf('usage_daily', byMonth.replace('DAY', 'day')),
  );
});
