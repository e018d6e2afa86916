/** Grants to the servers' database role, for an installation whose migrations run as another role. */

import type { Database } from './database.ts';
import { transaction } from './transaction.ts';

/**
 * Returns GRANT statements for all objects that the connected role owns in its schema. The servers read and write rows
 * and change no object. The record of migrations is read-only for them. The last three statements apply to the objects
 * of later migrations.
 */
const STATEMENTS = `
  select format('grant usage on schema %I to %I', current_schema(), role) as statement from given
  union all
  select format('grant %s on %s to %I',
    case
      when relkind = 'S' then 'usage, select'
      when relname in ('postern_migrations', 'postern_migrations_lock') then 'select'
      else 'select, insert, update, delete'
    end, case relkind when 'S' then 'sequence ' else '' end || oid::regclass, role)
  from pg_class, given
  where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p', 'v', 'm', 'S') and pg_has_role(relowner, 'usage')
  union all
  select format('grant execute on routine %s to %I', oid::regprocedure, role)
  from pg_proc, given
  where pronamespace = current_schema()::regnamespace and pg_has_role(proowner, 'usage')
  union all
  select format('alter default privileges in schema %I grant %s to %I', current_schema(), rights, role)
  from given, unnest(array['select, insert, update, delete on tables', 'usage, select on sequences', 'execute on routines']) as rights`;

/**
 * Grants the role all rights of a server on the objects of the connected role, now and after later migrations. It runs
 * in one transaction, so a server that has one right has all.
 */
export async function grantTo(db: Database, role: string): Promise<void> {
  await transaction(db, async (trx) => {
    const { rows } = await trx.raw<{ rows: { statement: string }[] }>(
      `with given as (select cast(:role as text) as role) ${STATEMENTS}`,
      { role },
    );
    // knex replaces a question mark by a binding, except after a backslash.
    for (const { statement } of rows) await trx.raw(statement.replaceAll('?', '\\?'));
  });
}
