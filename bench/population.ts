/**
 * Fills a migrated database with tenants, users, policies and API keys, by plain SQL with the change feed's triggers
 * off.
 */

import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type pg from 'pg';

export interface Population {
  readonly tenants: number;
  readonly keys: number;
  /** Keys whose text is known, so that they can be used. */
  readonly usable: number;
}

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

function base62(value: number, width: number): string {
  let text = '';
  for (let rest = value; rest > 0; rest = Math.floor(rest / 62)) text = DIGITS.charAt(rest % 62) + text;
  return text.padStart(width, '0');
}

/** The text of the i-th key: the format of every key, with a number where the randomness belongs. */
export function keyText(index: number): string {
  const head = `psk_${base62(index, 32)}`;
  return head + base62(crc32(head), 6);
}

/** The crockford digits of ids allow 0-9 and a-f, so a padded hexadecimal number is a valid tail. */
const id = (prefix: string, index: number): string => `${prefix}_${index.toString(16).padStart(26, '0')}`;

export const userOf = (index: number): string => id('usr', index);
export const sessionOf = (index: number): string => id('ses', index);

const USERS_PER_TENANT = 10;

/**
 * Every second key is owned by a user of its tenant; the others are their tenant's own. Five policies a tenant, four of
 * which concern chat.
 */
export async function populate(client: pg.Client, population: Population): Promise<void> {
  await client.query("set session_replication_role = 'replica'");
  await client.query(
    `insert into tenants (id, name, settings) select 'tenant-' || i, 'Tenant ' || i, '{"timezone":"Europe/Berlin","max_tokens_per_request":4096}'
     from generate_series(0, $1::int - 1) i`,
    [population.tenants],
  );
  const users = population.tenants * USERS_PER_TENANT;
  await client.query(
    `insert into users (id, tenant_id, email, name, role_names)
     select 'usr_' || lpad(to_hex(i), 26, '0'), 'tenant-' || (i % $2::int), 'user' || i || '@example.com', 'User ' || i, '{developer}' from generate_series(0, $1::int - 1) i`,
    [users, population.tenants],
  );
  await client.query(
    `insert into user_roles (user_id, role_name, tenant_id, status)
     select 'usr_' || lpad(to_hex(i), 26, '0'), 'developer', 'tenant-' || (i % $2::int), 'active' from generate_series(0, $1::int - 1) i`,
    [users, population.tenants],
  );
  const policies = [
    [
      'blocked-networks',
      'deny',
      ['*'],
      ['*'],
      { ip_address: { in: ['198.51.100.0/24', '2001:db8:bad::/48'] } },
      'everyone',
    ],
    [
      'office-at-night',
      'deny',
      ['chat:*'],
      ['*'],
      { ip_address: { in: ['203.0.113.0/24'] }, time: { between: ['22:00', '06:00'] } },
      'everyone',
    ],
    ['no-secret-models', 'deny', ['chat:*'], ['models/secret-*'], {}, 'everyone'],
    ['embeddings-on-workdays', 'deny', ['embeddings:*'], ['*'], { day_of_week: { in: ['Sat', 'Sun'] } }, 'everyone'],
    ['developers-try-phi', 'allow', ['chat:write'], ['models/phi-*'], {}, 'roles'],
  ] as const;
  for (const [name, effect, actions, resources, conditions, appliesTo] of policies) {
    await client.query(
      `insert into policies (tenant_id, name, effect, actions, resources, conditions, applies_to)
       select 'tenant-' || i, $2, $3, $4, $5, $6, $7 from generate_series(0, $1::int - 1) i`,
      [population.tenants, name, effect, actions, resources, JSON.stringify(conditions), appliesTo],
    );
  }
  await client.query(
    `insert into policy_roles (policy_id, role_name) select id, 'developer' from policies where applies_to = 'roles'`,
  );
  const owner = `case when i % 2 = 0 then 'usr_' || lpad(to_hex((i % $1::int) + $1::int * ((i / $1::int) % ${USERS_PER_TENANT})), 26, '0') end`;
  const columns = '(id, tenant_id, user_id, description, digest, prefix, last_four, scopes, expires_at, created_by)';
  for (let from = 0; from < population.usable; from += 20_000) {
    const digests = [];
    for (let i = from; i < Math.min(from + 20_000, population.usable); i++) {
      digests.push(createHash('sha256').update(keyText(i)).digest());
    }
    await client.query(
      `insert into api_keys ${columns}
       select 'key_' || lpad(to_hex(i), 26, '0'), 'tenant-' || (i % $1::int), ${owner}, 'Key ' || i, digest, 'psk_0000', '0000',
              '{chat:*,embeddings:write}', now() + interval '1 year', 'benchmark'
       from (select $2::int + ordinality::int - 1 as i, digest from unnest($3::bytea[]) with ordinality as d(digest, ordinality)) as numbered`,
      [population.tenants, from, digests],
    );
  }
  if (population.keys > population.usable) {
    await client.query(
      `insert into api_keys ${columns}
       select 'key_' || lpad(to_hex(i), 26, '0'), 'tenant-' || (i % $1::int), ${owner}, 'Key ' || i, sha256(('unused ' || i)::bytea), 'psk_0000', '0000',
              '{chat:*,embeddings:write}', now() + interval '1 year', 'benchmark'
       from generate_series($2::int, $3::int - 1) i`,
      [population.tenants, population.usable, population.keys],
    );
  }
  await client.query("set session_replication_role = 'origin'");
  await client.query('analyze');
}

/** One live session for each of the first users, for access tokens. */
export async function openSessions(client: pg.Client, count: number): Promise<void> {
  await client.query(
    `insert into sessions (id, user_id, expires_at)
     select 'ses_' || lpad(to_hex(i), 26, '0'), 'usr_' || lpad(to_hex(i), 26, '0'), now() + interval '1 day' from generate_series(0, $1::int - 1) i`,
    [count],
  );
}
