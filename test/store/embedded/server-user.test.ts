/** As root: the user that runs the embedded server, and the access that processes of other users have to it. */

import { execFile, spawn } from 'node:child_process';
import {
  chmod,
  chown,
  lchown,
  link,
  lstat,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { openDatabase } from '../../../src/store/database.ts';
import { postgresFiles } from '../../../src/store/embedded/binaries.ts';
import { type EmbeddedPostgres, startEmbedded } from '../../../src/store/embedded/embedded.ts';
import { readPidFile, signal, whoIs } from '../../../src/store/embedded/processes.ts';
import { ownUser } from '../../../src/store/embedded/server-user.ts';
import { prepareDataDir } from '../../support/prepared-cluster.ts';

const run = promisify(execFile);
const ROOT = process.getuid?.() === 0;
const NOBODY = 65_534;

let template: string;
beforeAll(async () => {
  const directory = await mkdtemp(join(tmpdir(), 'postern-user-'));
  await chmod(directory, 0o711);
  template = join(directory, 'data');
  await (await startEmbedded({ dataDir: await prepareDataDir(template), durable: false })).stop();
});
afterAll(() => rm(join(template, '..'), { recursive: true, force: true }));

/** A data-dir that others can reach, removed after the test with its server. */
async function folder(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'postern-user-'));
  await chmod(directory, 0o711);
  onTestFinished(async () => {
    const recorded = await readPidFile(join(directory, 'data/postgres'));
    if (recorded !== undefined && (await whoIs(recorded.pid, join(directory, 'data/postgres'))) === 'server') {
      signal(recorded.pid, 'SIGQUIT');
      await expect.poll(() => whoIs(recorded.pid, join(directory, 'data/postgres'))).not.toBe('server');
    }
    await rm(directory, { recursive: true, force: true });
  });
  return join(directory, 'data');
}

/** A data-dir as an earlier version left it: everything of the server belongs to a shared user. */
async function ofShared(uid = NOBODY): Promise<string> {
  const dataDir = await folder();
  await run('cp', ['-a', template, dataDir]);
  for (const part of ['postgres', 'run']) await run('chown', ['-R', `${uid}:${uid}`, join(dataDir, part)]);
  return dataDir;
}

async function start(dataDir: string, said: string[] = []): Promise<EmbeddedPostgres> {
  const server = await startEmbedded({ dataDir, durable: false, log: (message) => said.push(message) });
  onTestFinished(() => server.stop());
  return server;
}

async function works(url: string): Promise<boolean> {
  const db = openDatabase({ url });
  try {
    return (await db.query({ text: 'select 1' })).length === 1;
  } finally {
    await db.close();
  }
}

/** Users of all processes: real, effective, saved and of the file system. */
async function usersOf(pid: number): Promise<string | undefined> {
  return /^Uid:\t(.*)$/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1];
}

async function ownersIn(directory: string): Promise<ReadonlySet<number>> {
  const entries = await readdir(directory, { recursive: true });
  const owners = await Promise.all(['', ...entries].map(async (entry) => (await lstat(join(directory, entry))).uid));
  return new Set(owners);
}

/** Exit codes of a shell command as a user. */
async function as(uid: number, command: string, ...args: readonly string[]): Promise<number> {
  return run('/bin/sh', ['-c', command, 'sh', ...args], { cwd: '/', uid, gid: uid }).then(
    () => 0,
    () => 1,
  );
}

describe.runIf(ROOT)('the embedded server of a Postern that runs as root', () => {
  test('runs as a user without a name, which owns its files, and processes of the user `nobody` cannot reach them or its socket', async () => {
    const dataDir = await folder();
    const server = await start(dataDir);
    const { uid } = await stat(join(dataDir, 'postgres'));
    expect(uid).toBeGreaterThanOrEqual(60_578);
    expect(uid).toBeLessThanOrEqual(61_183);
    await expect(run('id', ['-nu', String(uid)])).rejects.toThrow('no such user');
    expect(await usersOf(server.pid())).toBe([uid, uid, uid, uid].join('\t'));
    expect(await ownersIn(join(dataDir, 'postgres'))).toEqual(new Set([uid]));
    expect((await readdir(dataDir)).filter((name) => name.includes('.new-'))).toEqual([]);
    expect(await works(server.url)).toBe(true);

    const socket = join(dataDir, 'run/.s.PGSQL.5432');
    expect(await as(uid, 'test -S "$1"', socket)).toBe(0);
    for (const other of [NOBODY, 101, 1000]) {
      expect(await as(other, 'test -e "$1"', socket)).toBe(1);
      expect(await as(other, 'ls "$1"', join(dataDir, 'postgres'))).toBe(1);
      expect(await as(other, 'kill -0 "$1"', String(server.pid()))).toBe(1);
    }
  });

  test('has another user for another data-dir, and the same at each start', async () => {
    const users = await Promise.all(['/a', '/b', '/c', '/d', '/a'].map(ownUser));
    expect(users[4]).toEqual(users[0]);
    expect(new Set(users.map(({ uid }) => uid)).size).toBeGreaterThan(1);
  });

  test('while its first files are made, keeps processes of the user that makes them out', async () => {
    const dataDir = await folder();
    const seen = new Set<string>();
    const starting = start(dataDir);
    let done = false;
    void starting.finally(() => {
      done = true;
    });
    while (!done) {
      for (const name of await readdir(dataDir).catch(() => [])) {
        if (!name.startsWith('postgres.new-')) continue;
        // As soon as there is anything in it.
        if ((await readdir(join(dataDir, name, 'postgres')).catch(() => [])).length === 0) continue;
        const { uid, mode } = await stat(join(dataDir, name)).catch(() => ({ uid: 0, mode: 0o710 }));
        seen.add(
          `${uid} ${(mode & 0o777).toString(8)} ${await as(NOBODY, 'test -e "$1"', join(dataDir, name, 'postgres'))}`,
        );
      }
      await new Promise((resolve) => setImmediate(resolve));
    }
    await starting;
    expect(seen).toEqual(new Set(['0 710 1']));
  });
});

describe.runIf(ROOT)('a data-dir of an earlier version, whose server ran as the user `nobody`', () => {
  test('is taken over: every file has the new owner, and no link leads to a file of another', async () => {
    const dataDir = await ofShared();
    const cluster = join(dataDir, 'postgres');
    const outside = join(dataDir, '../outside');
    await writeFile(outside, 'of root');
    const foreign = join(dataDir, '../foreign');
    await writeFile(foreign, 'of nobody, and of another program');
    await chown(foreign, NOBODY, NOBODY);
    await symlink(outside, join(cluster, 'a-link'));
    await lchown(join(cluster, 'a-link'), NOBODY, NOBODY);
    await link(outside, join(cluster, 'a-hard-link'));
    await link(foreign, join(cluster, 'another-hard-link'));
    // A server that was killed leaves these.
    await writeFile(join(dataDir, 'run/.s.PGSQL.5432.lock'), '1\n');
    await chown(join(dataDir, 'run/.s.PGSQL.5432.lock'), NOBODY, NOBODY);

    const said: string[] = [];
    const server = await start(dataDir, said);
    expect(said[0]).toMatch(
      /^changing the owner of \S+postgres to user 6\d{4}: other programs may run as its owner, user 65534$/,
    );
    expect(await works(server.url)).toBe(true);
    const { uid } = await stat(cluster);
    expect(uid).toBe((await ownUser(dataDir)).uid);
    expect(await usersOf(server.pid())).toContain(String(uid));
    expect([(await stat(outside)).uid, (await stat(foreign)).uid]).toEqual([0, NOBODY]);
    for (const name of ['a-link', 'a-hard-link', 'another-hard-link']) await rm(join(cluster, name));
    expect(await ownersIn(cluster)).toEqual(new Set([uid]));
    expect(await ownersIn(join(dataDir, 'run'))).toEqual(new Set([uid]));
  });

  test('is taken over by two starts at once', async () => {
    const dataDir = await ofShared();
    const servers = await Promise.all([start(dataDir), start(dataDir)]);
    expect(new Set(servers.map((server) => server.pid())).size).toBe(1);
    expect((await stat(join(dataDir, 'postgres'))).uid).toBe((await ownUser(dataDir)).uid);
  });

  test('is left alone while its server runs, and taken over at the next start', async () => {
    const dataDir = await ofShared();
    const cluster = join(dataDir, 'postgres');
    const { directory } = await postgresFiles(undefined, dataDir, () => undefined);
    const settings = ['listen_addresses=', `unix_socket_directories=${join(dataDir, 'run')}`, 'fsync=off'];
    const child = spawn(join(directory, 'bin/postgres'), ['-D', cluster, ...settings.flatMap((each) => ['-c', each])], {
      cwd: '/',
      stdio: 'ignore',
      uid: NOBODY,
      gid: NOBODY,
    });
    await expect.poll(() => readdir(join(dataDir, 'run'))).toContain('.s.PGSQL.5432');

    const said: string[] = [];
    const first = await start(dataDir, said);
    expect(first.pid()).toBe(child.pid);
    expect(said[0]).toMatch(
      /^the PostgreSQL server runs as user 65534, .* after its next start, it runs as a user of its own$/,
    );
    expect(await works(first.url)).toBe(true);
    expect((await stat(cluster)).uid).toBe(NOBODY);
    await first.stop();

    const second = await start(dataDir);
    expect(await works(second.url)).toBe(true);
    expect((await stat(cluster)).uid).toBe((await ownUser(dataDir)).uid);
  });

  test('is unchanged if Postern itself runs as `nobody`', async () => {
    const dataDir = await ofShared();
    await run('chown', ['-R', `${NOBODY}:${NOBODY}`, dataDir]);
    const server = await start(dataDir);
    expect(await works(server.url)).toBe(true);
    expect((await stat(join(dataDir, 'postgres'))).uid).toBe(NOBODY);
  });
});
