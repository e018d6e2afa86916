/** What PostgreSQL does for each kind of list: EXPLAIN (ANALYZE, BUFFERS) of the statements that find a page. */

import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { TenantId, UserId } from '../src/domain/ids.ts';
import { KEY_ORDERS, type KeyFilter, keySearch, NEWEST_FIRST } from '../src/iam/api-keys/list-queries.ts';
import { NEWEST_USERS_FIRST, USER_ORDERS, type UserFilter, userSearch } from '../src/iam/users/list-queries.ts';
import { openDatabase } from '../src/store/database.ts';
import type { TenantScope } from '../src/store/paging.ts';
import { hideValuesFromPlanner, type NamedQuery } from '../src/store/prepared.ts';
import { matchingPage, type SortedSearch, scanOf } from '../src/store/sorted-pages.ts';
import { BIG, UNUSED_ROLE } from './iam-population.ts';

const DAY_MS = 86_400_000;
const PAGE = { after: undefined, take: 51 };

const USERS: readonly (readonly [name: string, filter: UserFilter])[] = [
  ['all', {}],
  ['status', { status: 'deactivated' }],
  ['role that all hold', { role: 'developer' }],
  ['role without a holder', { role: UNUSED_ROLE }],
  ['role and status', { role: 'newcomer', status: 'deactivated' }],
  ['email', { email: 'nobody@example.com' }],
];

const SEARCHES: readonly (readonly [name: string, filter: UserFilter])[] = [
  ['q that 1 in 8 has', { q: 'engineering' }],
  ['q that 1 in 50 has', { q: 'smith' }],
  ['q that 1 in 250 has', { q: '123' }],
  ['q that ten have', { q: 'zbigniew' }],
  ['q without a match', { q: 'no such text' }],
  ['q and role', { q: 'smith', role: 'auditor' }],
];

const KEYS: readonly (readonly [name: string, filter: KeyFilter])[] = [
  ['all', {}],
  ['status=active', { status: 'active' }],
  ['expiring within a week', { status: 'active', expiresBefore: new Date(Date.now() + 7 * DAY_MS) }],
  ['user_id', { userId: 'usr_0000000000000000000000000a' as UserId }],
];

/** @returns how many plans were written */
export async function explainLists(url: string, file: string): Promise<number> {
  const db = openDatabase({ url, queryTimeoutMs: 60_000 });
  const written: string[] = [];
  const explain = async (name: string, asking: NamedQuery): Promise<void> => {
    // As they are planned once for all values.
    const sql = hideValuesFromPlanner(asking);
    const { bindings } = asking;
    // The second time, so that reading from disk is not what is seen.
    await db.knex.raw(sql, bindings);
    const { rows } = await db.knex.raw<{ rows: { 'QUERY PLAN': string }[] }>(
      `explain (analyze, buffers, costs off, timing off) ${sql}`,
      bindings,
    );
    written.push(`## ${name}\n\n${rows.map((row) => row['QUERY PLAN']).join('\n')}\n`);
  };
  const scopes: readonly (readonly [string, TenantScope])[] = [
    ['one tenant', { kind: 'one', tenant: BIG as TenantId }],
    ['all tenants', { kind: 'every' }],
  ];
  const explainSearch = async (name: string, search: SortedSearch): Promise<void> => {
    for (const [i, rows] of search.ordered.entries())
      await explain(`${name}, in order ${i}`, scanOf(search, rows, PAGE, 10_000));
    await explain(`${name}, all that match`, matchingPage(search, PAGE));
  };
  for (const [whose, scope] of scopes) {
    for (const [name, filter] of [...USERS, ...SEARCHES])
      await explainSearch(`users of ${whose}: ${name}`, userSearch(scope, filter, NEWEST_USERS_FIRST));
    for (const member of USER_ORDERS)
      await explainSearch(`users of ${whose} by ${member}`, userSearch(scope, {}, { member, descending: true }));
    for (const [name, filter] of KEYS)
      await explainSearch(`keys of ${whose}: ${name}`, keySearch(scope, filter, new Date(), NEWEST_FIRST));
    for (const member of KEY_ORDERS)
      await explainSearch(
        `keys of ${whose} by ${member}`,
        keySearch(scope, {}, new Date(), { member, descending: true }),
      );
  }
  await db.close();
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, written.join('\n'));
  return written.length;
}
