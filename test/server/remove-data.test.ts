/** `postern remove-data` removes an embedded database in every place where it lies, and nothing else. */

import { chmod, lstat, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { type CommandResult, runCommand } from '../support/command.ts';
import { openStand, type Stand } from './support/postern.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const ROOT = process.getuid?.() === 0;
const BASE = '/var/lib/postern';

let stand: Stand;
beforeAll(async () => {
  stand = await openStand();
});
afterAll(() => stand?.close());

const isThere = (path: string) =>
  lstat(path).then(
    () => true,
    () => false,
  );
const removeData = (dataDir: string, ...options: string[]): Promise<CommandResult> =>
  runCommand(['remove-data', ...options], { POSTERN_DATA_DIR: dataDir });
async function folder(mode: number): Promise<string> {
  const parent = await mkdtemp(join(stand.folder, 'case-'));
  // The user that PostgreSQL runs as has to get to the data.
  await chmod(parent, 0o711);
  const dataDir = join(parent, 'data');
  await mkdir(dataDir, { mode });
  return dataDir;
}

describe('a database that Postern created', () => {
  it.runIf(ROOT)(
    'outside data-dir is named at the start, kept while the server runs, and removed with data-dir after --yes',
    async () => {
      const dataDir = await folder(0o700);
      const server = await stand.serve({ POSTERN_DATA_DIR: dataDir });
      const home = (await readFile(join(dataDir, 'cluster-location'), 'utf8')).trim();
      onTestFinished(() => rm(home, { recursive: true, force: true }));
      expect(server.stdout() + server.stderr()).toContain(`the data is in two places: ${dataDir} and ${home}`);

      const early = await removeData(dataDir, '--yes');
      expect([early.code, early.stdout]).toEqual([1, '']);
      expect(early.stderr).toMatch(/^PostgreSQL runs on .* Nothing was removed\.$/m);
      expect((await server.stop()).code).toBe(0);
      const before = await readdir(dataDir);
      expect(before).toEqual(expect.arrayContaining(['cluster-location', 'secret-key']));

      const unasked = await removeData(dataDir);
      expect([unasked.code, unasked.stdout]).toEqual([2, '']);
      expect(unasked.stderr).toContain(`for good from ${dataDir} and ${home}. Nothing was changed.`);
      expect(await readdir(dataDir)).toEqual(before);
      expect(await readdir(home)).toContain('postgres');

      const done = await stand.run(['remove-data', '--yes'], { POSTERN_DATA_DIR: dataDir });
      expect([done.code, done.stdout, done.stderr]).toEqual([0, `${dataDir}: removed\n${home}: removed\n`, '']);
      expect([await isThere(dataDir), await isThere(home)]).toEqual([false, false]);
      const again = await removeData(dataDir, '--yes');
      expect([again.code, again.stdout]).toEqual([
        0,
        `There is no embedded database in ${dataDir}. Nothing was removed.\n`,
      ]);
    },
  );

  it('in data-dir is removed, and files of others there stay', async () => {
    const dataDir = await folder(0o711);
    await stand.run(['migrate'], { POSTERN_DATA_DIR: dataDir });
    await writeFile(join(dataDir, 'notes.txt'), 'of others');
    await mkdir(join(dataDir, 'postgres-backup'));
    const { code, stdout } = await removeData(dataDir, '--yes');
    expect([code, stdout]).toEqual([0, `${dataDir}: removed; the folder stays, with files of others\n`]);
    expect((await readdir(dataDir)).toSorted((a, b) => a.localeCompare(b))).toEqual(['notes.txt', 'postgres-backup']);
  });
});

describe('files that are not of an embedded database', () => {
  it('stay if data-dir holds no database', async () => {
    const dataDir = await folder(0o711);
    for (const name of ['secret-key', 'database.url', 'postgres.log'])
      await writeFile(join(dataDir, name), 'of others');
    expect((await removeData(dataDir, '--yes')).code).toBe(0);
    expect(await readdir(dataDir)).toHaveLength(3);
  });

  it('stay if the folder postgres is no cluster', async () => {
    const dataDir = await folder(0o711);
    await mkdir(join(dataDir, 'postgres'));
    await writeFile(join(dataDir, 'postgres/notes.txt'), 'of others');
    const { code, stderr } = await removeData(dataDir, '--yes');
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining('is not a PostgreSQL data directory. Nothing was removed.'),
    ]);
    expect(await isThere(join(dataDir, 'postgres/notes.txt'))).toBe(true);
  });

  it('stay if cluster-location names a folder elsewhere', async () => {
    const [dataDir, other] = [await folder(0o711), await folder(0o711)];
    await mkdir(join(other, 'postgres'));
    await writeFile(join(other, 'postgres/PG_VERSION'), '18');
    await writeFile(join(other, 'data-dir'), `${dataDir}\n`);
    await writeFile(join(dataDir, 'cluster-location'), `${other}\n`);
    const { code, stderr } = await removeData(dataDir, '--yes');
    expect([code, stderr]).toEqual([1, expect.stringContaining('which is not the folder that Postern made for')]);
    expect(await isThere(join(other, 'postgres/PG_VERSION'))).toBe(true);
  });

  it.runIf(ROOT)("stay if cluster-location names another data directory's folder", async () => {
    const dataDir = await folder(0o711);
    await mkdir(BASE, { recursive: true });
    const other = await mkdtemp(join(BASE, 'data-'));
    onTestFinished(() => rm(other, { recursive: true, force: true }));
    await mkdir(join(other, 'postgres'));
    await writeFile(join(other, 'data-dir'), '/srv/another\n');
    await writeFile(join(dataDir, 'cluster-location'), `${other}\n`);
    const { code, stderr } = await removeData(dataDir, '--yes');
    expect([code, stderr]).toEqual([1, expect.stringContaining('which is not the folder that Postern made for')]);
    expect(await readdir(other)).toEqual(expect.arrayContaining(['data-dir', 'postgres']));
  });

  it('stay where links of the database lead', async () => {
    const [dataDir, other] = [await folder(0o711), await folder(0o711)];
    await mkdir(join(dataDir, 'postgres'));
    await writeFile(join(dataDir, 'postgres/PG_VERSION'), '18');
    await writeFile(join(other, 'kept'), 'of others');
    await symlink(other, join(dataDir, 'postgres/pg_wal'));
    await symlink(other, join(dataDir, 'run'));
    expect((await removeData(dataDir, '--yes')).code).toBe(0);
    expect([await isThere(dataDir), await isThere(join(other, 'kept'))]).toEqual([false, true]);
  });

  it('stay with database.url', async () => {
    const dataDir = await folder(0o711);
    await mkdir(join(dataDir, 'postgres'));
    const env = {
      POSTERN_DATA_DIR: dataDir,
      POSTERN_DATABASE_URL: 'postgresql://x@127.0.0.1/x',
      POSTERN_SECRET_KEY: 'x'.repeat(32),
    };
    const { code, stderr } = await runCommand(['remove-data', '--yes'], env);
    expect([code, stderr]).toEqual([1, expect.stringContaining('database.url is set.')]);
    expect(await isThere(join(dataDir, 'postgres'))).toBe(true);
  });
});
