/**
 * Creates the users and keys for the benchmark of lists, with easy and difficult cases. One tenant has nine tenths of
 * the users, and a thousand tenants share the rest. Roles are held by all users, by some, by the latest few or by none.
 * Names are shared or unique. The older half of the keys has expired. The statements run without triggers, so they
 * also fill the columns that triggers would fill.
 */

import type pg from 'pg';
import { openSessions } from './population.ts';

export interface IamPopulation {
  readonly users: number;
  readonly keys: number;
  /** Tenants beside the big one. Default: SMALL_TENANTS. */
  readonly tenants?: number;
}

export const SMALL_TENANTS = 1000;
/** The tenant with nine tenths of all users and keys. */
export const BIG = 'tenant-big';

const FIRST =
  'Ada Alan Amina Ben Carla Chen Dana Elif Emil Fatima Femi Greta Hana Hugo Ines Ivan Jamal Jana Kofi Lena Luca Maja Mehmet Mina Nadia Nils Noor Olga Omar Paula Priya Ravi Rosa Sami Sara Tomas Uma Vera Wei Yuki Zoe'.split(
    ' ',
  );
const LAST =
  'Abe Adeyemi Ahmed Bauer Becker Berg Chen Costa Dias Fischer Fofana Garcia Gruber Haddad Hansen Ito Ivanov Jansen Kaya Khan Kim Kovacs Lange Lindt Lopez Maier Mensah Moreau Nagy Nakamura Novak Okafor Olsen Park Patel Perez Petrov Rossi Sato Schmidt Silva Singh Smith Sokolov Tanaka Toth Vega Vogel Wagner Wang Weber Wolf Yilmaz Zhang'.split(
    ' ',
  );
const DEPARTMENTS = 'Engineering Research Sales Support Finance Legal Operations Marketing'.split(' ');

/** Ids that are in order and have the form of every id. */
const id = (prefix: string): string => `'${prefix}_' || lpad(to_hex(i), 26, '0')`;
const tenantOfRow = (tenants: number): string =>
  `case when i % 10 < 9 then '${BIG}' else 'tenant-' || (i / 10 % ${tenants}) end`;
/** Scatters numbers, so that neighbours differ in everything. */
const pick = (list: string, salt: number): string =>
  `(${list})[1 + (hashint4extended(i, ${salt}) & 1048575)::int % cardinality(${list})]`;
const status = `case when (hashint4extended(i, 7) & 1023) < 31 then 'deactivated' else 'active' end`;

/** Roles by name, and who holds each: a condition on the number i of $1 users. */
const HOLDERS: Readonly<Record<string, string>> = {
  developer: 'true',
  analyst: '(hashint4extended(i, 11) & 1023) < 102',
  auditor: '(hashint4extended(i, 12) & 1023) < 10',
  newcomer: 'i >= $1::int * 0.95',
  'fire-warden': 'i % 50021 = 77',
};
export const UNUSED_ROLE = 'ml-engineer';

export async function populateIam(
  client: pg.Client,
  { users, keys, tenants = SMALL_TENANTS }: IamPopulation,
): Promise<void> {
  await client.query("set session_replication_role = 'replica'");
  await client.query("set maintenance_work_mem = '512MB'");
  const rebuild = await setIndexesAside(client);
  await client.query(
    `insert into tenants (id, name) select 'tenant-' || i, 'Tenant ' || i from generate_series(0, $1::int - 1) i
     union all select '${BIG}', 'The big one'`,
    [tenants],
  );
  const holds = Object.entries(HOLDERS).map(([role, condition]) => `case when ${condition} then '${role}' end`);
  await client.query(
    `insert into users (id, tenant_id, email, name, department, status, role_names)
     select ${id('usr')}, ${tenantOfRow(tenants)}, lower(first || '.' || last) || i || '@example.com', first || ' ' || last, department, ${status},
       array_remove(array[${holds.join(', ')}], null)
     from (select i, ${pick('$2::text[]', 1)} as first, ${pick('$3::text[]', 2)} as last, ${pick('$4::text[]', 3)} as department
           from generate_series(0, $1::int - 1) i) made`,
    [users, FIRST, LAST, DEPARTMENTS],
  );
  // A few whom nobody else is called like.
  await client.query(
    `update users set name = 'Zbigniew Quux ' || substr(id, 25) where id = any(array(select ${id('usr')} from generate_series(1000, $1::int - 1, 99991) i))`,
    [users],
  );
  await client.query(
    `insert into user_roles (user_id, role_name, tenant_id, status)
     select id, unnest(role_names), tenant_id, status from users order by id`,
  );
  await client.query(
    `insert into roles (tenant_id, name, permissions)
     select t.id, r.name, '{chat:read}' from tenants t cross join (select 'role-' || n as name from generate_series(1, 20) n
       union all values ('newcomer'), ('fire-warden')) r where t.id like 'tenant-%'`,
  );
  await client.query(
    `insert into policies (tenant_id, name, effect, actions, resources, applies_to)
     select id, 'policy-' || n, 'deny', '{rag:*}', '{*}', 'roles' from tenants cross join generate_series(1, 5) n where id like 'tenant-%'`,
  );
  await client.query(`insert into policy_roles (policy_id, role_name) select id, 'developer' from policies`);
  await insertKeys(client, users, keys, tenants);
  for (const definition of rebuild) await client.query(definition);
  await client.query("set session_replication_role = 'origin'");
  await client.query('vacuum analyze');
}

/** Indexes are built faster over rows that are there. Gives what makes those again that were dropped. */
async function setIndexesAside(client: pg.Client): Promise<readonly string[]> {
  const { rows } = await client.query<{ name: string; definition: string }>(
    `select i.indexrelid::regclass::text as name, pg_get_indexdef(i.indexrelid) as definition from pg_index i
     where i.indrelid in ('users'::regclass, 'user_roles'::regclass, 'api_keys'::regclass)
       and not exists (select from pg_constraint c where c.conindid = i.indexrelid)`,
  );
  for (const { name } of rows) await client.query(`drop index ${name}`);
  return rows.map((row) => row.definition);
}

/**
 * The first half has expired, month by month; of the others each lives to a day of the coming year. One in ten is
 * revoked, and one in five has no name.
 */
async function insertKeys(client: pg.Client, users: number, keys: number, tenants: number): Promise<void> {
  const ownerOf = `case when i % 3 > 0 then ${id('usr').replace('(i)', '(i * 7 % $1::int / 10 * 10 + i % 10)')} end`;
  const name = `case when i % 5 > 0 then 'Service ' || (hashint4extended(i, 21) & 65535) end`;
  await client.query(
    `insert into api_keys (id, tenant_id, user_id, name, description, digest, prefix, last_four, scopes, expires_at, revoked_at, created_by)
     select ${id('key')}, ${tenantOfRow(tenants)}, ${ownerOf}, ${name}, 'Key ' || i, sha256(('key ' || i)::bytea), 'psk_0000', '0000', '{chat:*}',
       case when i % 50 = 1 then null else now() + interval '365 days' * (2.0 * i / $2::int - 1) end,
       case when i % 10 = 5 then now() end, 'benchmark'
     from generate_series(0, $2::int - 1) i`,
    [users, keys],
  );
}

/**
 * Makes the first users callers: a platform administrator, then administrators of their tenants, with a session each.
 */
export async function addCallers(client: pg.Client, callers: number): Promise<void> {
  await client.query(
    `update users set status = 'active' where id = any(array(select ${id('usr')} from generate_series(0, $1::int - 1) i))`,
    [callers],
  );
  await client.query(
    `insert into user_roles (user_id, role_name) select ${id('usr')}, case i when 0 then 'admin' else 'tenant-admin' end
     from generate_series(0, $1::int - 1) i`,
    [callers],
  );
  await openSessions(client, callers);
}

/** Takes away what measured writes made, so that a run on data that were kept begins like the first. */
export async function removeWritten(client: pg.Client): Promise<void> {
  for (const text of [
    "delete from roles where name like 'bench-%'",
    "delete from users where email like 'bench%@example.org'",
    "delete from api_keys where description like 'Nr %'",
    'vacuum analyze',
  ]) {
    await client.query(text);
  }
}
