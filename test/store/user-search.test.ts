/** Searches by text among thousands of users, where every way of finding them is taken, against a naive twin. */

import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { TenantId } from '../../src/domain/ids.ts';
import type { UserFilter } from '../../src/iam/users/list-queries.ts';
import { listUsers } from '../../src/iam/users/page-queries.ts';
import { allMarks, idBehind, idsAmongNext, idsByText } from '../../src/iam/users/search-queries.ts';
import type { Database } from '../../src/store/database.ts';
import type { Page, TenantScope } from '../../src/store/paging.ts';
import { hideValuesFromPlanner, type NamedQuery } from '../../src/store/prepared.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { runs } from '../support/properties.ts';
import { tenantId } from './seed.ts';

const USERS = 8000;
const SMALL = tenantId('small');
const LARGE = tenantId('large');
/** By their number, how many have each: all, some, few, and those who came last. */
const TEXTS: readonly (readonly [text: string, has: (i: number) => boolean])[] = [
  ['everybody', () => true],
  ['third', (i) => i % 3 === 0],
  ['fiftieth', (i) => i % 50 === 7],
  ['threehundredth', (i) => i % 300 === 11],
  ['twothousandth', (i) => i % 2000 === 1999],
  ['latecomer', (i) => i > USERS * 0.9],
  // What means something to the index of text.
  ["o'neil\\ & co:*", (i) => i % 1700 === 1613],
];
const ROLES: readonly (readonly [role: string, has: (i: number) => boolean])[] = [
  ['common', () => true],
  ['rare', (i) => i % 40 === 0],
  ['late', (i) => i > USERS * 0.8],
  ['early', (i) => i < USERS * 0.2],
];

interface Somebody {
  readonly id: string;
  readonly tenant: TenantId;
  readonly name: string;
  readonly status: 'active' | 'deactivated';
  readonly roles: readonly string[];
}

const people: readonly Somebody[] = Array.from({ length: USERS }, (_, i) => ({
  id: `usr_${i.toString(16).padStart(26, '0')}`,
  tenant: i % 10 === 3 ? SMALL : LARGE,
  name: TEXTS.flatMap(([text, has]) => (has(i) ? [text] : [])).join(' '),
  status: i % 20 === 0 ? 'deactivated' : 'active',
  roles: ROLES.flatMap(([role, has]) => (has(i) ? [role] : [])),
}));

let fresh: FreshDatabase;
let db: Database;

beforeAll(async () => {
  fresh = await freshDatabase();
  db = fresh.db.reopen({ poolMax: 1, queryTimeoutMs: 60_000 });
  for (const id of [SMALL, LARGE]) await db.knex('tenants').insert({ id, name: id });
  // So that the statistics are made when a test says so.
  await db.knex.raw('alter table users set (autovacuum_enabled = false)');
  await db.knex.raw(
    `insert into users (id, tenant_id, name, status, role_names)
     select id, tenant, name, status, array(select jsonb_array_elements_text(roles))
     from jsonb_to_recordset(cast(:people as jsonb)) one (id text, tenant text, name text, status text, roles jsonb)`,
    { people: JSON.stringify(people) },
  );
  await db.knex.raw(
    `insert into user_roles (user_id, role_name, tenant_id, status)
     select id, unnest(role_names), tenant_id, status from users`,
  );
});
afterAll(async () => {
  await db.close();
  await fresh.close();
});

const every: TenantScope = { kind: 'every' };
const scopes = fc.constantFrom<TenantScope>(every, { kind: 'one', tenant: LARGE }, { kind: 'one', tenant: SMALL });
const filters = fc.record(
  {
    q: fc.constantFrom(
      ...TEXTS.map(([text]) => text),
      'FIFTIETH three',
      'two',
      'tw',
      'w',
      'late',
      'nobody at all',
      'qx',
      "o'n",
      'neil\\ &',
      ' & ',
      ':*',
      "'\\",
    ),
    role: fc.constantFrom(...ROLES.map(([role]) => role), 'nobody'),
    status: fc.constantFrom('active' as const, 'deactivated' as const),
  },
  { requiredKeys: ['q'] },
);
const pages = fc.record({
  after: fc.option(
    fc.nat({ max: USERS - 1 }).map((i) => [people[i]?.id ?? '']),
    { nil: undefined },
  ),
  take: fc.oneof(fc.integer({ min: 2, max: 201 }), fc.constant(51)),
});

function naive(scope: TenantScope, { q = '', role, status }: UserFilter, { after, take }: Page): readonly string[] {
  return people
    .filter((one) => scope.kind === 'every' || one.tenant === scope.tenant)
    .filter((one) => after === undefined || one.id > (after[0] ?? ''))
    .filter((one) => one.name.includes(q.toLowerCase()))
    .filter(
      (one) => (role === undefined || one.roles.includes(role)) && (status === undefined || one.status === status),
    )
    .slice(0, take)
    .map((one) => one.id);
}

async function behind(page: Page, near: number): Promise<string | null> {
  const { sql, bindings } = idBehind(page, near);
  return (await db.knex.raw<{ rows: { id: string }[] }>(sql, bindings)).rows[0]?.id ?? null;
}

/** Made once for all values, as for those that are asked often. */
async function planOf(asking: NamedQuery): Promise<string> {
  const { rows } = await db.knex.raw<{ rows: { 'QUERY PLAN': string }[] }>(
    `explain ${hideValuesFromPlanner(asking)}`,
    asking.bindings,
  );
  return rows.map((row) => row['QUERY PLAN']).join('\n');
}

const matchesNaive = () =>
  fc.assert(
    fc.asyncProperty(scopes, filters, pages, async (scope, filter, page) => {
      const rows = await listUsers(db.knex, scope, filter, page);
      expect(rows.map((row) => row.id)).toEqual(naive(scope, filter, page));
    }),
    {
      numRuns: runs(300),
      // A page that begins right behind a holder of a role that many have.
      examples: [
        [
          { kind: 'one', tenant: LARGE },
          { q: 'everybody', role: 'common' },
          { after: [people[2281]?.id ?? ''], take: 148 },
        ],
      ],
    },
  );

describe.sequential('a search among thousands', () => {
  test('shows exactly the page that it describes when PostgreSQL has no statistics yet', async () => {
    expect(await behind({ after: undefined, take: 51 }, 1000)).toBeNull();
    await matchesNaive();
  });

  test('shows exactly the page that it describes when it knows how far the next thousands reach', async () => {
    await db.knex.raw('analyze users');
    await matchesNaive();
  });

  test('knows an id behind about as many of the next users as it asks for, and none behind the last', async () => {
    for (const [first, near] of [
      [0, 1000],
      [3210, 2500],
    ] as const) {
      const upTo = await behind({ after: [people[first]?.id ?? ''], take: 51 }, near);
      const number = people.filter(({ id }, i) => i > first && id <= (upTo ?? '')).length;
      expect(Math.abs(number - near)).toBeLessThan(USERS / 50);
    }
    expect(await behind({ after: [people.at(-1)?.id ?? ''], take: 51 }, 1)).toBeNull();
    expect(await behind({ after: undefined, take: 51 }, 10 * USERS)).toBeNull();
  });

  test('walks through no tenant and no status: a plan that is kept asks the index of text and an interval of ids alone', async () => {
    const scope: TenantScope = { kind: 'one', tenant: LARGE };
    const filter = { q: 'twothousandth', status: 'active', role: 'common' } as const;
    for (const upTo of [null, people[4000]?.id ?? '']) {
      const marks = allMarks(scope, filter);
      const plan = await planOf(idsByText(scope, filter, { after: [people[10]?.id ?? ''], take: 51 }, { marks, upTo }));
      expect(new Set(plan.match(/users_\w+/g))).toEqual(
        new Set(['users_by_lexeme', ...(upTo === null ? [] : ['users_pkey'])]),
      );
      expect(plan).not.toContain('Seq Scan');
    }
  });

  test('looks through the next in the order of an index, whatever the tenant: a plan that is kept sorts nobody', async () => {
    for (const scope of [every, { kind: 'one', tenant: LARGE }] as const) {
      for (const status of [{}, { status: 'active' }] as const) {
        const filter = { q: 'fiftieth', ...status };
        const plan = await planOf(
          idsAmongNext(scope, filter, { after: [people[10]?.id ?? ''], take: 51 }, 'users', 1000),
        );
        expect(plan).not.toMatch(/Sort|Seq Scan/);
      }
    }
  });
});
