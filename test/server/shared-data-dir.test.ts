/** Several servers on the embedded database of one data-dir. */

import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { prepareDataDir } from '../support/prepared-cluster.ts';
import { ADMIN, call, decider, done, login, makeKey } from './support/client.ts';
import { becomes, eventually } from './support/eventually.ts';
import { openStand, type Stand } from './support/postern.ts';
import { postmasterOf } from './support/postgres.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 180_000 });

const KEY = { description: 'made after a crash', scopes: ['chat:read'], expires_in_days: 1 };

let stand: Stand;
let dataDir: string;

beforeAll(async () => {
  stand = await openStand();
  dataDir = await prepareDataDir(join(stand.folder, 'data'));
});
afterAll(() => stand?.close());

it('a second server adopts the database, a third connects to it by url; all decide alike, and the last one that owns it ends it', async () => {
  const embedded = { POSTERN_DATA_DIR: dataDir, POSTERN_BOOTSTRAP_PASSWORD: ADMIN.password };
  const first = await stand.serve(embedded);
  const postmaster = await postmasterOf(dataDir);
  const [second, third] = await Promise.all([
    stand.serve(embedded),
    stand.serve({
      POSTERN_DATABASE_URL: (await readFile(join(dataDir, 'database.url'), 'utf8')).trim(),
      POSTERN_SECRET_KEY_FILE: join(dataDir, 'secret-key'),
    }),
  ]);
  expect(await postmasterOf(dataDir)).toBe(postmaster);

  const admin = await login(first.http);
  const { id, key } = await makeKey(second.http, admin);
  const gates = [first, second, third].map(({ grpc }) => decider(grpc));
  try {
    for (const gate of gates) await becomes('the key is known', 'allow', () => gate.decide(key), 10_000);
    await done(third.http, 'DELETE', `/v1/iam/api-keys/${id}`, { token: admin });
    for (const gate of gates) await becomes('the key is refused', 'invalid_credential', () => gate.decide(key), 10_000);
  } finally {
    for (const gate of gates) gate.close();
  }

  // The first server that detects it restarts it, and the others adopt it.
  process.kill(postmaster ?? 0, 'SIGKILL');
  for (const { http } of [first, second, third]) {
    await eventually('the server writes again', async () => {
      const reply = await call(http, 'POST', '/v1/iam/api-keys', { token: admin, body: KEY });
      return reply.status === 201;
    });
  }
  const restarted = await postmasterOf(dataDir);
  expect(restarted).toBeDefined();

  expect((await third.stop()).code).toBe(0);
  expect((await first.stop()).code).toBe(0);
  expect(await postmasterOf(dataDir)).toBe(restarted);
  expect((await done(second.http, 'GET', '/v1/auth/me', { token: admin })).body['email']).toBe(ADMIN.email);
  expect((await second.stop()).code).toBe(0);
  expect(await postmasterOf(dataDir)).toBeUndefined();
});

describe('a first start', () => {
  it("prints the administrator's password once, to the terminal that started it, and never to the log; the next start does not", async () => {
    const env = { POSTERN_DATA_DIR: await prepareDataDir(join(stand.folder, 'printed')) };
    const first = await stand.serve(env);
    const password = /^ +Password +(\S+)$/m.exec(first.stdout())?.[1] ?? '';
    expect(password).toMatch(/^[a-z2-9-]{15,}$/);
    await login(first.http, { email: ADMIN.email, password });
    const { stdout, stderr, code } = await first.stop();
    expect(code).toBe(0);
    expect(stdout.split(password)).toHaveLength(2);
    expect(stderr).toBe('');

    const second = await stand.serveApi(env);
    await login(second.http, { email: ADMIN.email, password });
    const { stdout: later } = await second.stop();
    expect(later).not.toContain(password);
    expect(later).not.toContain('Password');
  });
});

describe('a data-dir that cannot be used ends the start with one sentence', () => {
  async function refused(path: string, sentence: RegExp): Promise<void> {
    const { code, stdout, stderr } = await stand.run(['serve'], { POSTERN_DATA_DIR: path });
    expect(code).toBe(1);
    expect(stderr).toMatch(sentence);
    expect(stderr.trimEnd()).not.toContain('\n');
    expect(stdout).not.toContain('"ready"');
    expect(await postmasterOf(path)).toBeUndefined();
  }

  it('when the cluster in it is damaged', async () => {
    const path = join(stand.folder, 'damaged');
    await mkdir(join(path, 'postgres'), { recursive: true });
    await chmod(path, 0o711);
    await writeFile(join(path, 'postgres/somebody-elses-file'), 'not a database');
    await refused(path, /^\S+damaged\/postgres is not a PostgreSQL data directory: .*backup.*\.\n$/);
  });

  it('when it is a file', async () => {
    const path = join(stand.folder, 'file');
    await writeFile(path, '');
    await refused(path, /^The data directory \S+file cannot be used .*data-dir.*database\.url\.\n$/);
  });

  it.runIf(process.platform === 'linux')(
    'when it is in a file system that takes no folders, such as /proc',
    async () => {
      for (const path of ['/proc/postern', '/proc/postern/data']) {
        await refused(path, /^The data directory \S+ cannot be used .*data-dir.*database\.url\.\n$/);
      }
    },
  );
});
