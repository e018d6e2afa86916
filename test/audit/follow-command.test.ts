/** `postern audit follow`, as a process, beside a server that seals. */

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type EmbeddedPostgres, startEmbedded } from '../../src/store/embedded/embedded.ts';
import { ADMIN, done, login, SECRET_KEY } from '../server/support/client.ts';
import { eventually } from '../server/support/eventually.ts';
import { type ApiServer, logLines, openStand, type Running, type Stand } from '../server/support/postern.ts';
import { runCommand } from '../support/command.ts';
import { prepareDataDir } from '../support/prepared-cluster.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

let stand: Stand;
let dataDir: string;
let postgres: EmbeddedPostgres;
let server: ApiServer;
let token: string;
let env: NodeJS.ProcessEnv;
let tenants = 0;

const startPostgres = (): Promise<EmbeddedPostgres> => startEmbedded({ dataDir, durable: false });

beforeAll(async () => {
  stand = await openStand();
  dataDir = await prepareDataDir(join(stand.folder, 'remote'));
  postgres = await startPostgres();
  env = { POSTERN_DATABASE_URL: postgres.url, POSTERN_SECRET_KEY: SECRET_KEY };
  server = await stand.serveApi({ ...env, POSTERN_BOOTSTRAP_PASSWORD: ADMIN.password });
  token = await login(server.http);
});
afterAll(async () => {
  await postgres?.stop();
  await stand?.close();
});

/** A change that leaves one audit row. @returns the tenant's id, the target of that row */
async function change(): Promise<string> {
  const id = `tenant-${tenants++}`;
  await done(server.http, 'POST', '/v1/iam/tenants', { token, body: { id, name: 'Followed' } });
  return id;
}

const follow = (...args: readonly string[]): Running => stand.start(['audit', 'follow', ...args], env);

interface Line {
  readonly target: unknown;
  readonly cursor: string;
}

function linesOf({ stdout }: Pick<Running, 'stdout'>): readonly Line[] {
  return logLines(stdout()).map(({ target, cursor }) => ({ target, cursor: String(cursor) }));
}

const created = (id: string) => ({ type: 'tenant', id });
const hasTarget = (running: Running, id: string): boolean =>
  linesOf(running).some(({ target }) => JSON.stringify(target) === JSON.stringify(created(id)));

function delivered(running: Running, id: string): Promise<boolean> {
  return eventually(`the row of ${id} is delivered`, async () => hasTarget(running, id));
}

describe('postern audit follow', () => {
  it('delivers each row as it is sealed, exits 0 at SIGTERM, and continues after its last row at the next start', async () => {
    const file = join(stand.folder, 'cursor');
    const before = await change();
    const first = follow('--cursor', file);
    await delivered(first, before);
    const during = await change();
    await delivered(first, during);
    const ended = await first.stop();
    expect([ended.code, ended.stderr]).toEqual([0, '']);
    expect((await readFile(file, 'utf8')).trim()).toBe(linesOf(first).at(-1)?.cursor);

    const between = await change();
    const second = follow('--cursor', file);
    await delivered(second, between);
    expect([before, during].map((id) => hasTarget(second, id))).toEqual([false, false]);
    expect((await second.stop('SIGINT')).code).toBe(0);
  });

  it('loses no row when it is killed at any moment', async () => {
    const file = join(stand.folder, 'killed');
    const runs: Running[] = [];
    const changes: string[] = [];
    for (let round = 0; round < 4; round++) {
      const running = follow('--cursor', file);
      runs.push(running);
      for (let i = 0; i < 5; i++) changes.push(await change());
      // Killed at the first line, between two batches, and at once.
      if (round !== 2) await eventually('a line', async () => linesOf(running).length > 0);
      await running.stop('SIGKILL');
    }
    const last = follow('--cursor', file);
    runs.push(last);
    // One that was killed may have delivered the newest row already.
    const newest = changes.at(-1) ?? '';
    await eventually(`the row of ${newest} is delivered`, async () =>
      runs.some((running) => hasTarget(running, newest)),
    );
    await last.stop();
    const missing = changes.filter((id) => !runs.some((running) => hasTarget(running, id)));
    expect(missing).toEqual([]);
  });

  it('continues after a restart of the database', async () => {
    const running = follow('--cursor', join(stand.folder, 'restarted'), '--from', 'now');
    await eventually('the cursor is kept', () => readFile(join(stand.folder, 'restarted'), 'utf8'));
    await delivered(running, await change());
    const pid = postgres.pid();
    const watched = postgres.stop();
    process.kill(pid, 'SIGINT');
    await watched;
    await eventually('it says that the database is gone', async () =>
      running.stderr().includes('the database did not answer'),
    );
    postgres = await startPostgres();
    const after = await eventually('a change is written', () => change());
    await delivered(running, after);
    expect(running.stderr()).toContain('the database answers again');
    expect((await running.stop()).code).toBe(0);
  });

  it('begins with what comes when it is started with --from now', async () => {
    const before = await change();
    const all = follow('--after', '0:0:');
    await delivered(all, before);
    await all.stop();
    const running = follow('--cursor', join(stand.folder, 'from-now'), '--from', 'now');
    await eventually('the cursor is kept', () => readFile(join(stand.folder, 'from-now'), 'utf8'));
    const after = await change();
    await delivered(running, after);
    expect(hasTarget(running, before)).toBe(false);
    await running.stop();
  });

  it('continues after a given cursor', async () => {
    const ids = [await change(), await change(), await change()];
    const running = follow('--after', '0:0:');
    await delivered(running, ids[2] ?? '');
    await running.stop();
    const lines = linesOf(running);
    const at = lines.findIndex(({ target }) => JSON.stringify(target) === JSON.stringify(created(ids[0] ?? '')));
    const again = follow('--after', lines[at]?.cursor ?? '');
    await delivered(again, ids[2] ?? '');
    await again.stop();
    expect(ids.map((id) => hasTarget(again, id))).toEqual([false, true, true]);
    expect(linesOf(again)).toEqual(lines.slice(at + 1, at + 1 + linesOf(again).length));
  });

  it('moves no cursor and exits 1 when its reader is gone', async () => {
    const file = join(stand.folder, 'gone');
    await change();
    const running = follow('--cursor', file, '--from', 'now');
    const kept = await eventually('the cursor is kept', () => readFile(file, 'utf8'));
    running.deafen();
    await change();
    expect((await running.finished).code).toBe(1);
    expect(await readFile(file, 'utf8')).toBe(kept);
  });

  it('refuses what it cannot follow with one sentence', async () => {
    const file = join(stand.folder, 'other');
    await writeFile(file, 'nonsense\n');
    for (const [args, code, says] of [
      [[], 2, /Give --cursor FILE/],
      [['--cursor', file], 1, /holds no cursor of postern audit follow/],
      [['--after', '99999:1:0123456789abcdef'], 1, /has no such seal/],
      [['--after', '1:1:0123456789abcdef'], 1, /another seal of that number/],
      [['--cursor', file, '--from', 'then'], 2, /--from takes start or now/],
      [
        ['--cursor', join(stand.folder, 'missing/cursor')],
        1,
        /^The cursor file \S+\/missing\/cursor cannot be written: /,
      ],
    ] as const) {
      const { code: got, stdout, stderr } = await runCommand(['audit', 'follow', ...args], env);
      expect([args, got, stdout]).toEqual([args, code, '']);
      expect(stderr).toMatch(says);
    }
  });
});
