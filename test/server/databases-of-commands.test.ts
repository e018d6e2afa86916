/**
 * Only `serve`, `demo` and `migrate` make or migrate a database. Every other command refuses one that is not ready, and
 * leaves it as it is.
 */

import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { COMMANDS } from '../../src/cli/commands.ts';
import { openDatabase } from '../../src/store/database.ts';
import { migrationNames } from '../../src/store/migrate.ts';
import { type CommandResult, runCommand } from '../support/command.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { SECRET_KEY } from './support/client.ts';
import { type Finished, openStand, type Stand } from './support/postern.ts';
import { postmasterOf } from './support/postgres.ts';

vi.setConfig({ testTimeout: 180_000, hookTimeout: 120_000 });

const PASSWORD = 'a-password-of-the-database';

let stand: Stand;
let setup: string;
beforeAll(async () => {
  stand = await openStand();
  setup = join(stand.folder, 'setup.yaml');
  await writeFile(setup, 'version: 1\n');
});
afterAll(() => stand?.close());

/** Commands that one test runs as whole processes: one that ends by itself, and one that waits for a signal. */
const AS_PROCESSES: readonly (string | undefined)[] = ['export', 'audit'];

function run(args: readonly string[], env: NodeJS.ProcessEnv): Promise<CommandResult> {
  return runCommand(args, { ...env, POSTERN_ADMIN_LISTEN: '127.0.0.1:0' });
}

/** The arguments that a command needs to reach its database. */
const argumentsOf = (): Readonly<Record<string, readonly (readonly string[])[]>> => ({
  explain: [['--subject', 'usr_00000000000000000000000000', '--method', 'GET', '--path', '/v1/models']],
  'policy disable': [['some-policy']],
  'issuer test': [['some-issuer']],
  'issuer refresh': [['some-issuer']],
  'issuer revoke-before': [['some-issuer']],
  'webhook create': [['https://hooks.example/x', 'key.*', '--tenant', 'acme']],
  ...Object.fromEntries(
    ['test', 'rotate', 'deliveries', 'delete'].map((verb) => [`webhook ${verb}`, [['whk_00000000000000000000000000']]]),
  ),
  'webhook replay': [['whk_00000000000000000000000000', 'dlv_00000000000000000000000000']],
  ...Object.fromEntries(['get', 'delete'].map((verb) => [`budget ${verb}`, [['some-budget']]])),
  'budget create': [
    ['{"name":"b","unit":"tokens","limit":1,"period":"day","applies_to":{"tenant":true}}', ...['--tenant', 'acme']],
  ],
  'budget update': [['some-budget', '{}']],
  'budget reset': [['some-budget', '--reason', 'a test']],
  'audit follow': [['--cursor', 'cursor']],
  apply: [
    [setup, '--yes'],
    [setup, '--dry-run'],
  ],
  diff: [['-f', setup]],
  // Not the cluster of the machine's kubeconfig file.
  'gateway verify': [['--dump', setup]],
});

const named = (words: readonly string[]): string => words.join(' ');
const commandsThat = (use: NonNullable<(typeof COMMANDS)[number]['database']>): readonly string[][] =>
  COMMANDS.filter(({ database = 'ready' }) => database === use).flatMap(({ words }) =>
    (argumentsOf()[named(words)] ?? [[]]).map((more) => [...words, ...more]),
  );

function envOf(url: string): NodeJS.ProcessEnv {
  return { POSTERN_DATABASE_URL: url.replace('postern@', `postern:${PASSWORD}@`), POSTERN_SECRET_KEY: SECRET_KEY };
}

/** Every relation, and every row that a command might write. */
async function contents({ db }: FreshDatabase): Promise<unknown> {
  const { rows: relations } = await db.knex.raw(
    "select relname, pg_relation_filenode(oid) as file from pg_class where relnamespace = 'public'::regnamespace order by 1",
  );
  const has = relations.some((row: { readonly relname: string }) => row.relname === 'meta');
  const rows = has
    ? await db.query({
        text: `select (select json_agg(m order by name) from meta m) as meta, (select count(*) from signing_keys) as keys,
          (select json_agg(name order by id) from postern_migrations) as migrations, (select count(*) from audit_log) as audited`,
      })
    : [];
  return { relations, rows };
}

function expectRefused({ code, stdout, stderr }: Finished | CommandResult, says: RegExp, label: string): void {
  // 2 is the finding of `diff`, so its errors are 1.
  expect([label, code, stdout]).toEqual([label, label.startsWith('diff') ? 1 : 2, '']);
  expect(stderr, label).toMatch(says);
  expect(stderr.trimEnd(), label).not.toContain('\n');
  expect(stderr, label).not.toContain(PASSWORD);
}

describe('the table of commands', () => {
  it('lets serve, demo and migrate alone make a database', () => {
    expect(commandsThat('makes')).toEqual([['serve'], ['demo'], ['migrate']]);
  });

  it('is what the code does: no other command opens a database that may be made', async () => {
    const folder = new URL('../../src/cli/', import.meta.url);
    const files = (await readdir(folder)).filter((name) => name.endsWith('.ts'));
    const makers: string[] = [];
    for (const name of files) {
      if (/\b(?:openStore|prepareStore|startEmbedded|migrate)\(/.test(await readFile(new URL(name, folder), 'utf8')))
        makers.push(name);
    }
    expect(new Set(makers)).toEqual(new Set(['child.ts', 'demo.ts', 'migrate.ts', 'serve.ts']));
  });
});

describe.each([
  {
    state: 'without a schema',
    make: () => freshDatabase(''),
    says: /^The database test_\w+ at \/\S+ \(database\.url\) has no Postern schema\. .*run postern migrate\. .*\.\n$/,
  },
  {
    state: 'with an older schema',
    async make() {
      const database = await freshDatabase();
      await database.db
        .knex('postern_migrations')
        .where({ name: migrationNames().at(-1) })
        .delete();
      return database;
    },
    says: /^The database test_\w+ at \/\S+ \(database\.url\) is older than this program: it lacks \d{4}-\S+\.sql\. Run postern migrate first\. .*\.\n$/,
  },
  {
    state: 'with a newer schema',
    async make() {
      const database = await freshDatabase();
      await database.db.knex('postern_migrations').insert({ name: '9999-future.sql', batch: 9 });
      return database;
    },
    says: /^The database test_\w+ at \/\S+ \(database\.url\) is newer than this program: it has 9999-future\.sql, .*newer one\.\n$/,
  },
])('a database $state', ({ make, says }) => {
  it('is refused by every command that needs one, with where it is and what to run, and stays as it was', async () => {
    const database = await make();
    onTestFinished(() => database.close());
    const before = await contents(database);
    for (const args of commandsThat('ready')) expectRefused(await run(args, envOf(database.url)), says, named(args));
    expect(await contents(database)).toEqual(before);
  });
});

it('a database with tables of another program is refused by migrate in one line, and one without them is migrated', async () => {
  const database = await freshDatabase('');
  onTestFinished(() => database.close());
  await database.db.query({ text: 'create table users (id int)' });
  const refused = await run(['migrate'], envOf(database.url));
  expect([refused.code, refused.stdout, refused.stderr]).toEqual([
    1,
    '',
    'The database rejected a statement. Check that database.url names the right database and role. PostgreSQL says: relation "users" already exists\n',
  ]);
  const noRole = await run(['migrate', '--grant-to', 'nobody-here'], envOf(database.url));
  expect(noRole.stderr).toBe(refused.stderr);
  await database.db.query({ text: 'drop table users' });
  const absent = await run(['migrate', '--grant-to', 'nobody-here'], envOf(database.url));
  expect(absent.stderr).toMatch(
    /^The database rejected a statement\. .* PostgreSQL says: role "nobody-here" does not exist\n$/,
  );
  expect((await run(['migrate'], envOf(database.url))).stdout).toBe('The database is up to date.\n');
});

describe('a database that does not exist', () => {
  it('on a server of its own is refused with its name, and not made', async () => {
    const database = await freshDatabase('');
    await database.close();
    const refused = await run(['export'], envOf(database.url));
    expectRefused(
      refused,
      /^The database test_\w+ at \/\S+ \(database\.url\) does not exist\. Create it, .*postern migrate\.\n$/,
      'export',
    );
    const again = openDatabase({ url: database.url });
    await expect(again.query({ text: 'select 1' })).rejects.toThrow('does not exist');
    await again.close();
  });

  it('in a data-dir that is not there is refused by every command that needs one, and nothing is made', async () => {
    const dataDir = join(stand.folder, 'absent');
    const says = new RegExp(`^There is no database in ${dataDir}\\. Set data-dir .*postern migrate.*\\.\\n$`);
    for (const args of commandsThat('ready')) {
      const env = { POSTERN_DATA_DIR: dataDir };
      const refused = await (AS_PROCESSES.includes(args[0]) ? stand.run(args, env) : run(args, env));
      expectRefused(refused, says, named(args));
    }
    await expect(stat(dataDir)).rejects.toThrow('ENOENT');
  });

  it.each([
    ['is empty', async () => undefined],
    ['holds an empty cluster folder', (dataDir: string) => mkdir(join(dataDir, 'postgres'))],
    [
      'names a cluster that is gone',
      (dataDir: string) => writeFile(join(dataDir, 'cluster-location'), '/var/lib/postern/gone\n'),
    ],
  ])('in a data-dir that %s is refused, and nothing is made', async (what, prepare) => {
    const dataDir = join(stand.folder, what.replaceAll(' ', '-'));
    await mkdir(dataDir);
    await prepare(dataDir);
    const before = await readdir(dataDir, { recursive: true });
    const refused = await run(['reset-admin', '--yes'], { POSTERN_DATA_DIR: dataDir });
    expectRefused(refused, /^There is no database in \S+\. Set data-dir .*postern migrate/, what);
    expect(await readdir(dataDir, { recursive: true })).toEqual(before);
  });
});

describe('an embedded database', () => {
  it('with an older schema is refused with its data-dir; once migrated, commands use it, and its server ends again', async () => {
    const dataDir = join(stand.folder, 'embedded');
    const env = { POSTERN_DATA_DIR: dataDir };
    const migrated = await stand.run(['migrate'], env);
    expect([migrated.code, migrated.stdout]).toEqual([0, expect.stringMatching(/^Migrated: /m)]);
    expect(await postmasterOf(dataDir)).toBeUndefined();
    expect((await stand.run(['export'], env)).code).toBe(0);
    const key = await readFile(join(dataDir, 'secret-key'), 'utf8');
    expect(await postmasterOf(dataDir)).toBeUndefined();

    const { startEmbedded } = await import('../../src/store/embedded/embedded.ts');
    const server = await startEmbedded({ dataDir, durable: false });
    const db = openDatabase({ url: server.url });
    const name = migrationNames().at(-1);
    const [row] = await db.knex('postern_migrations').where({ name }).delete().returning('*');
    const refused = await run(['rotate-signing-key', '--yes'], env);
    await db.knex('postern_migrations').insert(row);
    await db.close();
    await server.stop();
    expectRefused(
      refused,
      /^The database in \S+embedded \(data-dir\) is older than this program: .* Run postern migrate first/,
      'rotate',
    );
    expect(await readFile(join(dataDir, 'secret-key'), 'utf8')).toBe(key);
  });
});

describe('a command without a database', () => {
  it('makes no data-dir', async () => {
    const dataDir = join(stand.folder, 'unused');
    for (const args of commandsThat('none'))
      await run([...args, ...(args[0] === 'ldap' ? ['alice'] : [])], { POSTERN_DATA_DIR: dataDir });
    await expect(stat(dataDir)).rejects.toThrow('ENOENT');
  });
});
