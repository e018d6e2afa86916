import { execFile } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, statfs, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, describe, expect, onTestFinished, test } from 'vitest';
import { Fault } from '../../../src/domain/errors.ts';
import { type Database, openDatabase } from '../../../src/store/database.ts';
import { type EmbeddedOptions, type EmbeddedPostgres, startEmbedded } from '../../../src/store/embedded/embedded.ts';
import { EmbeddedError } from '../../../src/store/embedded/error.ts';
import { helpersOf, readPidFile } from '../../../src/store/embedded/processes.ts';
import { embeddedSecretKey } from '../../../src/store/embedded/secret-key.ts';
import { ChangeFeed } from '../../../src/store/feed.ts';
import { migrate } from '../../../src/store/migrate.ts';
import { prepareDataDir } from '../../support/prepared-cluster.ts';
import { seedTenant } from '../seed.ts';

const run = promisify(execFile);
const started: EmbeddedPostgres[] = [];
const said: string[] = [];

async function stopAll(): Promise<void> {
  for (const server of started.splice(0)) await server.stop();
}

afterEach(async () => {
  await stopAll();
  said.length = 0;
});

/** A folder that another user can reach, so that a test as root leaves nothing elsewhere. */
async function folder(mode = 0o711): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'postern-embedded-'));
  await chmod(directory, mode);
  onTestFinished(async () => {
    const noted = await readFile(join(directory, 'data/cluster-location'), 'utf8').catch(() => undefined);
    await stopAll();
    if (noted !== undefined) {
      await rm(noted.trim(), { recursive: true, force: true });
    }
    await rm(directory, { recursive: true, force: true });
  });
  return join(directory, 'data');
}

/** The same with a database in it. */
const prepared = async (): Promise<string> => prepareDataDir(await folder());

async function start(dataDir: string, options: Partial<EmbeddedOptions> = {}): Promise<EmbeddedPostgres> {
  const server = await startEmbedded({ dataDir, durable: false, log: (message) => said.push(message), ...options });
  started.push(server);
  return server;
}

async function withDatabase<T>(url: string, use: (db: Database) => Promise<T>): Promise<T> {
  const db = openDatabase({ url });
  try {
    return await use(db);
  } finally {
    await db.close();
  }
}

async function works(url: string): Promise<boolean> {
  return withDatabase(url, async (db) => (await db.query({ text: 'select 1' })).length === 1).catch(
    (error: unknown) => {
      expect(error).toBeInstanceOf(Fault);
      return false;
    },
  );
}

const ROOT = process.getuid?.() === 0;

/** Reports whether this container may mount a small disk at the folder. */
function mountDisk(at: string, size: string): Promise<boolean> {
  return run('mount', ['-t', 'tmpfs', '-o', `size=${size},mode=711`, 'tmpfs', at]).then(
    () => true,
    () => false,
  );
}

describe('a first start', () => {
  test('creates a database that is reachable only by a socket in a private folder, and reports its address', async () => {
    const dataDir = await folder();
    const server = await start(dataDir);
    expect(await works(server.url)).toBe(true);
    expect((await readFile(join(dataDir, 'database.url'), 'utf8')).trim()).toBe(server.url);
    expect((await stat(join(dataDir, 'database.url'))).mode & 0o777).toBe(0o600);
    const socketDir = new URL(server.url.replace('@/', '@localhost/')).searchParams.get('host') ?? '';
    expect((await stat(socketDir)).mode & 0o777).toBe(0o700);
    await withDatabase(server.url, async (db) => {
      const settings =
        "select current_setting('listen_addresses') as tcp, current_setting('server_encoding') as encoding, current_setting('data_checksums') as checksums";
      expect(await db.query({ text: settings })).toEqual([{ tcp: '', encoding: 'UTF8', checksums: 'on' }]);
    });
    await server.stop();
    expect(await works(server.url)).toBe(false);
    expect(await readPidFile(join(dataDir, 'postgres'))).toBeUndefined();
  });

  test.runIf(ROOT)(
    'as root in a folder that no other user can reach keeps the database elsewhere, and finds it again',
    async () => {
      const dataDir = await folder(0o700);
      const first = await start(dataDir);
      await withDatabase(first.url, (db) => db.query({ text: 'create table kept (x int)' }));
      expect(said[0]).toMatch(
        /^keeping the database in \/var\/(lib|tmp)\/postern\/data-\w+: PostgreSQL does not run as root/,
      );
      await first.stop();
      const second = await start(dataDir);
      expect(second.url).toBe(first.url);
      await withDatabase(second.url, (db) => db.query({ text: 'select x from kept' }));
    },
  );

  test.runIf(ROOT)('on a full disk says that no space is left, and leaves no file', async ({ skip }) => {
    const dataDir = await folder();
    await mkdir(dataDir, { mode: 0o711 });
    if (!(await mountDisk(dataDir, '20m'))) skip('this container may not mount a file system');
    try {
      await expect(start(dataDir)).rejects.toThrow(/No space left on device\. Free some space on its disk/);
      expect((await readdir(dataDir)).filter((name) => name.startsWith('postgres'))).toEqual([]);
    } finally {
      await run('umount', [dataDir]);
    }
  });

  test.runIf(ROOT)(
    'whose next segment of the WAL has no space on the disk names the disk, and starts after there is space',
    async ({ skip }) => {
      const dataDir = await folder();
      const disk = dirname(dataDir);
      if (!(await mountDisk(disk, '160m'))) skip('this container may not mount a file system');
      try {
        await prepareDataDir(dataDir);
        const first = await start(dataDir);
        // PostgreSQL creates the next segment at its start when three quarters of a segment are used.
        const fill = `select pg_switch_wal(); select pg_logical_emit_message(false, '', repeat('x', 14000000))`;
        const current = 'select pg_walfile_name(pg_current_wal_lsn()) as name';
        const [segment] = await withDatabase(first.url, async (db) => {
          await db.query({ text: fill });
          return db.query({ text: current });
        });
        await first.stop();
        const wal = join(dataDir, 'postgres/pg_wal');
        const segments = (await readdir(wal)).filter((name) => /^[0-9A-F]{24}$/.test(name));
        expect(segments).toContain(segment?.['name']);
        for (const name of segments) if (name !== segment?.['name']) await rm(join(wal, name));
        const { bavail, bsize } = await statfs(disk);
        await writeFile(join(disk, 'filler'), Buffer.alloc(bavail * bsize - 8_000_000));

        await expect(start(dataDir)).rejects.toThrow(/^PostgreSQL cannot start: no space is left on the disk of /);

        await rm(join(disk, 'filler'));
        expect(await works((await start(dataDir)).url)).toBe(true);
      } finally {
        await stopAll();
        await run('umount', [disk]);
      }
    },
  );

  test.runIf(ROOT)('as root with programs that no other user can reach copies them', async () => {
    const dataDir = await folder();
    const home = join(dataDir, '..');
    await mkdir(join(home, 'closed'), { mode: 0o700 });
    const { postgresFiles } = await import('../../../src/store/embedded/binaries.ts');
    const { serverUser } = await import('../../../src/store/embedded/server-user.ts');
    const user = await serverUser(join(dataDir, 'postgres'), home);
    const here = await postgresFiles(user, home, () => undefined);
    const hidden = await postgresFiles(user, home, (message) => said.push(message), {
      directory: await hide(here.directory, join(home, 'closed')),
      version: '18.0',
    });
    expect(said.join()).toContain('copying the PostgreSQL programs');
    const { stdout } = await run(join(hidden.directory, 'bin/postgres'), ['--version'], { cwd: '/', ...user });
    expect(stdout).toContain('(PostgreSQL) 18');
  });
});

describe('a copy of the programs', () => {
  test.runIf(ROOT)('that does not fit on the disk leaves no file', async ({ skip }) => {
    const home = join(await folder(), '..');
    const [closed, full] = [join(home, 'closed'), join(home, 'full')];
    for (const path of [closed, full]) await mkdir(path, { mode: 0o700 });
    await run('mkdir', ['-p', join(closed, 'native/bin')]);
    await writeFile(join(closed, 'native/bin/postgres'), Buffer.alloc(1024 * 1024));
    await writeFile(join(closed, 'native/pg-symlinks.json'), '[]');
    const isMounted = await run('mount', ['-t', 'tmpfs', '-o', 'size=256k,mode=711', 'tmpfs', full]).then(
      () => true,
      () => false,
    );
    if (!isMounted) skip('this container may not mount a file system');
    try {
      const { postgresFiles } = await import('../../../src/store/embedded/binaries.ts');
      const { ownUser } = await import('../../../src/store/embedded/server-user.ts');
      const copying = postgresFiles(await ownUser(home), full, () => undefined, { directory: closed, version: '18.0' });
      await expect(copying).rejects.toThrow(/cannot be copied/);
      expect(await readdir(full)).toEqual([]);
    } finally {
      await run('umount', [full]);
    }
  });
});

/** The package's folder again, under one that only its owner can enter. */
async function hide(native: string, closed: string): Promise<string> {
  await run('cp', ['-a', native, join(closed, 'native')]);
  return closed;
}

describe('a server that outlives the process that started it', () => {
  test('is adopted by the next process, and ends with the last process that uses it', async () => {
    const dataDir = await prepared();
    const [first, second] = [await start(dataDir), await start(dataDir)];
    expect(second.url).toBe(first.url);
    expect(second.pid()).toBe(first.pid());
    await first.stop();
    expect(said.at(-1)).toBe('leaving the PostgreSQL server to another Postern that uses it');
    expect(await works(second.url)).toBe(true);
    await second.stop();
    expect(await works(second.url)).toBe(false);
  });

  test('is adopted at its address also before it has recorded its socket', async () => {
    const dataDir = await prepared();
    const first = await start(dataDir);
    const pidFile = join(dataDir, 'postgres/postmaster.pid');
    const recorded = await readFile(pidFile, 'utf8');
    await writeFile(pidFile, recorded.split('\n').slice(0, 4).join('\n'));
    const second = await start(dataDir);
    await writeFile(pidFile, recorded);
    expect(second.url).toBe(first.url);
    expect(await works(second.url)).toBe(true);
  });

  test('and two that start at once, for the first time, agree on one', async () => {
    const dataDir = await folder();
    const servers = await Promise.all([start(dataDir), start(dataDir)]);
    expect(new Set(servers.map((server) => server.pid())).size).toBe(1);
    expect(await works(servers[0].url)).toBe(true);
  });

  test('ends if all processes that use it stop at once', async () => {
    const dataDir = await prepared();
    const servers = [await start(dataDir), await start(dataDir)];
    await Promise.all(servers.map((server) => server.stop()));
    expect(await readPidFile(join(dataDir, 'postgres'))).toBeUndefined();
  });

  test('but does not answer is a fault for every statement, and the next start stops and replaces it', {
    timeout: 60_000,
  }, async () => {
    const dataDir = await prepared();
    const { pid, url } = await start(dataDir);
    const hung = pid();
    const db = openDatabase({ url, queryTimeoutMs: 200, acquireTimeoutMs: 200 });
    await expect.poll(() => db.query({ text: 'select 1 as one' })).toEqual([{ one: 1 }]);
    const cluster = join(dataDir, 'postgres');
    for (const one of [hung, ...(await helpersOf(cluster, undefined))]) {
      process.kill(one, 'SIGSTOP');
    }
    // The first has a connection, the second would make one.
    await expect(db.query({ text: 'select 1' })).rejects.toBeInstanceOf(Fault);
    await expect(db.query({ text: 'select 1' })).rejects.toBeInstanceOf(Fault);
    await db.close();
    const second = await start(dataDir, { silenceTimeoutMs: 100 });
    expect(said.join()).toContain('which does not answer');
    expect(second.pid()).not.toBe(hung);
    expect(await works(second.url)).toBe(true);
  });
});

describe('a server that dies', () => {
  test('by kill -9 is started again at the same address, with all that was committed; feed and pool recover by themselves', {
    timeout: 120_000,
  }, async () => {
    const dataDir = await prepared();
    const server = await start(dataDir, { durable: true });
    const db = openDatabase({ url: server.url });
    await migrate(db);
    const keys: string[] = [];
    const feed = new ChangeFeed({
      db,
      pollIntervalMs: 50,
      listeners: [
        { apply: (batch) => keys.push(...batch.map((change) => change.key)), flush: () => keys.push('flush') },
      ],
    });
    await feed.start();
    await seedTenant(db, 'before');
    for (let round = 0; round < 3; round++) {
      const pid = server.pid();
      process.kill(pid, 'SIGKILL');
      await expect.poll(() => server.pid(), { timeout: 20_000 }).not.toBe(pid);
      await expect.poll(() => works(server.url), { timeout: 20_000 }).toBe(true);
    }
    expect(await withDatabase(server.url, (other) => other.query({ text: 'select id from tenants' }))).toEqual([
      { id: 'before' },
    ]);
    // Every connection of the pool finds out for itself.
    await expect.poll(() => seedTenant(db, 'after').catch(() => 'not yet'), { timeout: 20_000 }).toBe('after');
    await expect.poll(() => keys.slice(-1), { timeout: 20_000 }).toEqual(['after']);
    await feed.stop();
    await db.close();
  });

  test('repeatedly is started by one of its sharers at a time, and the process id file always names it', {
    timeout: 120_000,
  }, async () => {
    const dataDir = await prepared();
    const sharers = await Promise.all(Array.from({ length: 6 }, () => start(dataDir)));
    for (let round = 0; round < 10; round++) {
      const { pid } = (await readPidFile(join(dataDir, 'postgres'))) ?? {};
      process.kill(pid ?? 0, 'SIGKILL');
      await expect
        .poll(() => sharers.every((sharer) => sharer.pid() !== pid), { timeout: 20_000, interval: 20 })
        .toBe(true);
      const named = await readPidFile(join(dataDir, 'postgres'));
      expect(sharers.map((sharer) => sharer.pid())).toEqual(sharers.map(() => named?.pid));
    }
    // PostgreSQL's own lock files do not keep two servers apart that find the lock file of a killed one at the same
    // time.
    expect(await readFile(join(dataDir, 'postgres.log'), 'utf8')).not.toMatch(/lock file|shared memory/);
    expect(said.filter((message) => /left behind/.test(message))).toEqual([]);
  });

  test('without a running supervisor leaves a process id that another program now has: the program keeps running, and the server starts', async () => {
    const dataDir = await prepared();
    const first = await start(dataDir);
    await first.stop();
    const pidFile = join(dataDir, 'postgres/postmaster.pid');
    await writeFile(
      pidFile,
      `${process.pid}\n${join(dataDir, 'postgres')}\n1700000000\n5432\n${join(dataDir, 'run')}\n\n  1 1\nready\n`,
      { mode: 0o600 },
    );
    const second = await start(dataDir);
    expect(await works(second.url)).toBe(true);
  });
});

describe('a database that cannot be used is refused in one sentence', () => {
  async function broken(breaking: (dataDir: string) => Promise<void>): Promise<string> {
    const dataDir = await folder();
    await breaking(dataDir);
    const error: unknown = await startEmbedded({ dataDir, durable: false }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(EmbeddedError);
    return error instanceof Error ? error.message.replaceAll(dataDir, 'DATA') : '';
  }

  const files = (contents: Record<string, string>) => async (dataDir: string) => {
    for (const [name, text] of Object.entries(contents)) {
      await mkdir(join(dataDir, 'postgres'), { recursive: true });
      await writeFile(join(dataDir, 'postgres', name), text);
    }
  };

  test.each([
    [
      'garbage',
      { 'notes.txt': 'hello' },
      'DATA/postgres is not a PostgreSQL data directory: it holds files but no PG_VERSION.',
    ],
    [
      'another version',
      { PG_VERSION: '14\n' },
      'DATA/postgres was created by PostgreSQL 14, and this is PostgreSQL 18.',
    ],
    ['no version', { PG_VERSION: 'abc' }, 'DATA/postgres is damaged: its PG_VERSION is not a version.'],
    ['half of it', { PG_VERSION: '18\n' }, 'DATA/postgres is damaged: parts of it are missing.'],
  ])('%s', async (_, contents, message) => {
    expect(await broken(files(contents))).toContain(message);
  });

  test('a file where the folder should be', async () => {
    expect(await broken((dataDir) => writeFile(dataDir, ''))).toMatch(
      /^The data directory DATA cannot be used \(.*\)\. Give this user a folder/,
    );
  });

  test('control data that is not PostgreSQL’s', async () => {
    const message = await broken(async (dataDir) => {
      await prepareDataDir(dataDir);
      await writeFile(join(dataDir, 'postgres/global/pg_control'), 'x'.repeat(8192));
    });
    expect(message).toMatch(
      /^PostgreSQL cannot start with DATA\/postgres: .+\. See DATA\/postgres\.log\. Restore DATA from a backup/,
    );
  });

  test('kept elsewhere, and gone from there', async () => {
    const message = await broken(async (dataDir) => {
      await mkdir(dataDir);
      await writeFile(join(dataDir, 'cluster-location'), '/var/lib/postern/gone\n');
    });
    expect(message).toBe(
      'The database of DATA is kept in /var/lib/postern/gone, and that folder no longer exists. Restore it, or delete DATA/cluster-location to begin with an empty database.',
    );
  });
});

describe('the secret key of an embedded database', () => {
  test('is made once, for its owner alone, and the same for all who start together', async () => {
    const dataDir = await folder();
    const keys = await Promise.all([1, 2, 3, 4].map(() => embeddedSecretKey(dataDir)));
    expect(new Set(keys).size).toBe(1);
    expect(keys[0]).toMatch(/^[\w-]{64}$/);
    expect(await embeddedSecretKey(dataDir)).toBe(keys[0]);
    expect((await stat(join(dataDir, 'secret-key'))).mode & 0o777).toBe(0o600);
  });

  test('that was cut short is refused rather than replaced', async () => {
    const dataDir = await folder();
    await embeddedSecretKey(dataDir);
    await rename(join(dataDir, 'secret-key'), join(dataDir, 'old'));
    await writeFile(join(dataDir, 'secret-key'), 'short');
    await expect(embeddedSecretKey(dataDir)).rejects.toBeInstanceOf(EmbeddedError);
  });
});
