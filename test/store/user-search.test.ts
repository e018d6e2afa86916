/** Lists of thousands of users by text and role, where every way of finding them is taken, against a naive twin. */

import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { TenantId } from '../../src/domain/ids.ts';
import { listUsers, type UserFilter, type UserOrder, userSearch } from '../../src/iam/users/list-queries.ts';
import type { Database } from '../../src/store/database.ts';
import type { Page, TenantScope } from '../../src/store/paging.ts';
import { hideValuesFromPlanner, type NamedQuery, runNamedQuery } from '../../src/store/prepared.ts';
import { matchingPage, scanOf } from '../../src/store/sorted-pages.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { runs } from '../support/properties.ts';
import { tenantId } from './seed.ts';

/** More than a search scans. */
const USERS = 12_000;
const SMALL = tenantId('small');
const LARGE = tenantId('large');
/** The texts with a predicate on the number of a user: all, some, few, or the last users have the text. */
const TEXTS: readonly (readonly [text: string, has: (i: number) => boolean])[] = [
  ['everybody', () => true],
  ['third', (i) => i % 3 === 0],
  ['fiftieth', (i) => i % 50 === 7],
  ['threehundredth', (i) => i % 300 === 11],
  ['twothousandth', (i) => i % 2000 === 1999],
  ['latecomer', (i) => i > USERS * 0.9],
  // Characters with a meaning in the text index.
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
    `insert into users (id, tenant_id, name, status, role_names, created_at)
     select id, tenant, name, status, array(select jsonb_array_elements_text(roles)), to_timestamp(n)
     from rows from (jsonb_to_recordset(cast(:people as jsonb)) as (id text, tenant text, name text, status text, roles jsonb))
       with ordinality one (id, tenant, name, status, roles, n)`,
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

/** The position of the user of a number: the microseconds of its creation, and its id. */
const positionOf = (i: number): readonly string[] => [String((i + 1) * 1_000_000), people[i]?.id ?? ''];
const OLDEST_FIRST: UserOrder = { member: 'created_at', descending: false };

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
  after: fc.option(fc.nat({ max: USERS - 1 }).map(positionOf), { nil: undefined }),
  take: fc.oneof(fc.integer({ min: 2, max: 201 }), fc.constant(51)),
});

function naive(scope: TenantScope, { q = '', role, status }: UserFilter, { after, take }: Page): readonly string[] {
  return people
    .filter((one) => scope.kind === 'every' || one.tenant === scope.tenant)
    .filter((one) => after === undefined || one.id > (after[1] ?? ''))
    .filter((one) => one.name.includes(q.toLowerCase()))
    .filter(
      (one) => (role === undefined || one.roles.includes(role)) && (status === undefined || one.status === status),
    )
    .slice(0, take)
    .map((one) => one.id);
}

/** Returns the generic plan, as PostgreSQL uses it for a statement that runs often. */
async function planOf(asking: NamedQuery): Promise<string> {
  const { rows } = await db.knex.raw<{ rows: { 'QUERY PLAN': string }[] }>(
    `explain ${hideValuesFromPlanner(asking)}`,
    asking.bindings,
  );
  return rows.map((row) => row['QUERY PLAN']).join('\n');
}

describe.sequential('a search among thousands of users', () => {
  test('returns exactly the page that it describes, also by the index of lexemes alone', async () => {
    await fc.assert(
      fc.asyncProperty(scopes, filters, pages, async (scope, filter, page) => {
        const { rows } = await listUsers(db.knex, scope, filter, page, OLDEST_FIRST);
        expect(rows.map((row) => row.id)).toEqual(naive(scope, filter, page));
        const search = userSearch(scope, filter, OLDEST_FIRST);
        const byText = await runNamedQuery<{ id: string }>(db.knex, matchingPage(search, page));
        expect(byText.map(({ id }) => id)).toEqual(naive(scope, filter, page));
      }),
      {
        numRuns: runs(300),
        // A page that begins right behind a holder of a role that many have.
        examples: [
          [
            { kind: 'one', tenant: LARGE },
            { q: 'everybody', role: 'common' },
            { after: positionOf(2281), take: 148 },
          ],
        ],
      },
    );
  });

  test('a prepared plan reads the index of lexemes, and no index of tenants or statuses', async () => {
    const filter = { q: 'twothousandth', status: 'active', role: 'common' } as const;
    const page = { after: positionOf(10), take: 51 };
    const plan = await planOf(matchingPage(userSearch({ kind: 'one', tenant: LARGE }, filter, OLDEST_FIRST), page));
    expect(new Set(plan.match(/users_\w+/g))).toEqual(new Set(['users_by_lexeme']));
    expect(plan).not.toContain('Seq Scan');
  });

  test('a prepared plan looks up the holders of a role, and reads no other user', async () => {
    const page = { after: undefined, take: 51 };
    for (const scope of [every, { kind: 'one', tenant: LARGE }] as const) {
      for (const status of [{}, { status: 'active' }, { status: 'deactivated' }] as const) {
        const plan = await planOf(matchingPage(userSearch(scope, { role: 'rare', ...status }, OLDEST_FIRST), page));
        const index = scope.kind === 'every' ? 'user_roles_by_role' : 'user_roles_by_tenant_role';
        expect(new Set(plan.match(/\b(?:users|user_roles)_\w+/g))).toEqual(new Set([index, 'users_pkey']));
        expect(plan).not.toContain('Seq Scan');
      }
    }
  });

  test('a prepared plan reads the next users in the order of an index, and sorts none', async () => {
    const page = { after: undefined, take: 51 };
    for (const scope of [every, { kind: 'one', tenant: LARGE }] as const) {
      for (const member of ['created_at', 'name', 'last_login_at'] as const) {
        for (const descending of [true, false]) {
          const search = userSearch(scope, {}, { member, descending });
          for (const rows of search.ordered) {
            // The sort of the page itself, at most 51 rows, stands before the rows that the scan reads.
            const [, scan = ''] = (await planOf(scanOf(search, rows, page, 51))).split('CTE next');
            expect(scan.split('CTE page')[0], `${member} ${rows.value}`).not.toMatch(/Sort|Seq Scan/);
          }
        }
      }
    }
  });
});
