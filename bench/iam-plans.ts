/** What PostgreSQL does for each kind of list: EXPLAIN (ANALYZE, BUFFERS) of the statements that find a page. */

import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { TenantId, UserId } from '../src/domain/ids.ts';
import { type KeyFilter, keyIdsInOrder } from '../src/iam/api-keys/list-queries.ts';
import { idsByText, idsInOrder, type UserFilter } from '../src/iam/users/list-queries.ts';
import { openDatabase } from '../src/store/database.ts';
import type { TenantScope } from '../src/store/paging.ts';
import { hideValuesFromPlanner, type NamedQuery } from '../src/store/prepared.ts';
import { BIG, UNUSED_ROLE } from './iam-population.ts';

const DAY_MS = 86_400_000;
const PAGE = { after: undefined, take: 51 };

const USERS: readonly (readonly [name: string, filter: UserFilter])[] = [
  ['all', {}],
  ['status', { status: 'deactivated' }],
  ['role that everybody holds', { role: 'developer' }],
  ['role that nobody holds', { role: UNUSED_ROLE }],
  ['role and status', { role: 'newcomer', status: 'deactivated' }],
  ['email', { email: 'nobody@example.com' }],
];

const SEARCHES: readonly (readonly [name: string, filter: UserFilter])[] = [
  ['q that 1 in 8 has', { q: 'engineering' }],
  ['q that 1 in 50 has', { q: 'smith' }],
  ['q that 1 in 250 has', { q: '123' }],
  ['q that ten have', { q: 'zbigniew' }],
  ['q that nobody has', { q: 'nobody at all' }],
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
  for (const [whose, scope] of scopes) {
    for (const [name, filter] of USERS) await explain(`users of ${whose}: ${name}`, idsInOrder(scope, filter, PAGE));
    for (const [name, filter] of SEARCHES) await explain(`users of ${whose}: ${name}`, idsByText(scope, filter, PAGE));
    for (const [name, filter] of KEYS)
      await explain(`keys of ${whose}: ${name}`, keyIdsInOrder(scope, filter, PAGE, new Date()));
  }
  await db.close();
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, written.join('\n'));
  return written.length;
}
