/**
 * Writes the schema of a database as SQL, from PostgreSQL's catalog. The result does not depend on the order in which
 * migrations made the objects, and an empty database into which it is loaded has the same schema.
 */

import type { Database } from '../../src/store/database.ts';

/** A kind of object that this file does not write, so that a dump is never silently incomplete. */
const UNKNOWN = `
  select 'relation ' || relname as object from pg_class
    where relnamespace = 'public'::regnamespace and relkind not in ('r', 'i', 'S', 'c') or relrowsecurity
  union all select 'type ' || typname from pg_type
    where typnamespace = 'public'::regnamespace and typtype not in ('c', 'b')
  union all select 'function ' || proname from pg_proc
    where pronamespace = 'public'::regnamespace and prokind not in ('f', 'p')
  union all select 'extended statistics ' || stxname from pg_statistic_ext
  union all select 'extension ' || extname from pg_extension where extname <> 'plpgsql'`;

const COMPOSITE_TYPES = `
  select t.typname as name, string_agg(format(E'\n  %I %s', a.attname, format_type(a.atttypid, a.atttypmod)), ',' order by a.attnum) as definition
  from pg_type t join pg_class c on c.oid = t.typrelid and c.relkind = 'c' join pg_attribute a on a.attrelid = c.oid
  where t.typnamespace = 'public'::regnamespace group by t.typname order by t.typname collate "C"`;

/** The tables of knex's migrator are not part of the schema. */
const OWN = "c.relnamespace = 'public'::regnamespace and not starts_with(c.relname, 'postern_migrations')";

/** Sequences of identity columns are part of their tables. */
const SEQUENCES = `
  select c.relname as name, format_type(s.seqtypid, null) as type, s.seqstart as start, s.seqincrement as increment
  from pg_sequence s join pg_class c on c.oid = s.seqrelid
  where ${OWN} and not exists (select from pg_depend d where d.objid = c.oid and d.classid = 'pg_class'::regclass and d.deptype = 'i')
  order by c.relname collate "C"`;

/** `tables`: a column, a constraint or an index uses the function. */
const FUNCTIONS = `
  select pg_get_functiondef(p.oid) as definition, exists (
      select from pg_depend where refobjid = p.oid
        and classid in ('pg_class'::regclass, 'pg_attrdef'::regclass, 'pg_constraint'::regclass)
    ) as tables
  from pg_proc p where pronamespace = 'public'::regnamespace
  order by proname collate "C", pg_get_function_identity_arguments(oid) collate "C"`;

const TABLES = `
  select c.relname as name, c.relpersistence = 'u' as unlogged, array_to_string(c.reloptions, ', ') as options,
    array(select distinct f.confrelid::regclass::text from pg_constraint f
      where f.conrelid = c.oid and f.contype = 'f' and f.confrelid <> c.oid order by 1) as references
  from pg_class c where ${OWN} and c.relkind = 'r' order by c.relname collate "C"`;

const COLUMNS = `
  select a.attname as name, format_type(a.atttypid, a.atttypmod) as type, a.attnotnull as required,
    case when a.attstorage <> t.typstorage
      then case a.attstorage when 'e' then 'EXTERNAL' when 'x' then 'EXTENDED' when 'm' then 'MAIN' else 'PLAIN' end end as storage,
    (select collname from pg_collation where oid = a.attcollation and a.attcollation <> t.typcollation) as collation,
    a.attidentity as identity, a.attgenerated as generated, pg_get_expr(d.adbin, d.adrelid, true) as value
  from pg_attribute a join pg_type t on t.oid = a.atttypid left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
  where a.attrelid = to_regclass(quote_ident($1)) and a.attnum > 0 and not a.attisdropped order by a.attnum`;

/** The column states NOT NULL. */
const CONSTRAINTS = `
  select conname as name, pg_get_constraintdef(oid, true) as definition from pg_constraint
  where conrelid = to_regclass(quote_ident($1)) and contype not in ('n', 't')
  order by position(contype in 'pucxf'), conname collate "C"`;

const INDEXES = `
  select pg_get_indexdef(i.indexrelid, 0, true) as definition from pg_index i join pg_class c on c.oid = i.indexrelid
  where i.indrelid = to_regclass(quote_ident($1)) and not exists (select from pg_constraint where conindid = i.indexrelid)
  order by c.relname collate "C"`;

const TRIGGERS = `
  select pg_get_triggerdef(t.oid, true) as definition from pg_trigger t join pg_class c on c.oid = t.tgrelid
  where not t.tgisinternal order by c.relname collate "C", t.tgname collate "C"`;

const HEAD = `-- The schema of the database after all migrations (src/store/migrations).
-- \`npm run schema\` writes this file, and a test compares it with a migrated database.

SET check_function_bodies = off;`;

/**
 * Returns the SQL of all objects that the migrations made. Throws if there is an object of a kind that it cannot write.
 */
export async function dumpSchema(db: Database): Promise<string> {
  const rows = (text: string, ...values: readonly unknown[]) => db.query({ text, values });
  const [unknown] = await rows(UNKNOWN);
  if (unknown !== undefined) throw new Error(`scripts/lib/database-schema.ts cannot write the ${unknown['object']}`);

  const types = (await rows(COMPOSITE_TYPES)).map(
    ({ name, definition }) => `CREATE TYPE ${name} AS (${definition}\n);`,
  );
  const sequences = (await rows(SEQUENCES)).map(
    ({ name, type, start, increment }) =>
      `CREATE SEQUENCE ${name} AS ${type} START WITH ${start} INCREMENT BY ${increment};`,
  );
  const functions = await rows(FUNCTIONS);
  const tables: string[] = [];
  for (const { name, unlogged, options } of inOrderOfReferences(await rows(TABLES))) {
    const members = [
      ...(await rows(COLUMNS, name)).map(columnDefinition),
      ...(await rows(CONSTRAINTS, name)).map(
        (constraint) => `CONSTRAINT ${constraint['name']} ${constraint['definition']}`,
      ),
    ];
    const create = unlogged === true ? 'CREATE UNLOGGED TABLE' : 'CREATE TABLE';
    const suffix = options === null ? '' : ` WITH (${options})`;
    const table = `${create} ${name} (\n${members.map((member) => `  ${member}`).join(',\n')}\n)${suffix};`;
    tables.push([table, ...(await rows(INDEXES, name)).map(definition)].join('\n'));
  }
  const objects = [
    ...[HEAD, ...types, ...sequences],
    ...functions.filter((row) => row['tables'] === true).map(definition),
    ...tables,
    ...functions.filter((row) => row['tables'] !== true).map(definition),
    (await rows(TRIGGERS)).map(definition).join('\n'),
  ];
  return `${objects.join('\n\n')}\n`;
}

function definition(row: Row): string {
  return `${String(row['definition']).trimEnd()};`;
}

type Row = Readonly<Record<string, unknown>>;

function columnDefinition({ name, type, required, storage, collation, identity, generated, value }: Row): string {
  return [
    `${name} ${type}`,
    ...(storage === null ? [] : [`STORAGE ${storage}`]),
    ...(collation === null ? [] : [`COLLATE "${collation}"`]),
    ...(identity === '' ? [] : [`GENERATED ${identity === 'a' ? 'ALWAYS' : 'BY DEFAULT'} AS IDENTITY`]),
    ...(generated === '' ? [] : [`GENERATED ALWAYS AS (${value}) ${generated === 's' ? 'STORED' : 'VIRTUAL'}`]),
    ...(generated !== '' || value === null ? [] : [`DEFAULT ${value}`]),
    ...(required === true ? ['NOT NULL'] : []),
  ].join(' ');
}

/** Sorts tables by name, except that a table comes after all tables that it references. */
function inOrderOfReferences(tables: readonly Row[]): readonly Row[] {
  const open = [...tables];
  const sorted: Row[] = [];
  while (open.length > 0) {
    const at = open.findIndex(
      ({ references }) => Array.isArray(references) && !open.some(({ name }) => references.includes(name)),
    );
    if (at === -1) throw new Error('foreign keys of several tables form a cycle');
    sorted.push(...open.splice(at, 1));
  }
  return sorted;
}
