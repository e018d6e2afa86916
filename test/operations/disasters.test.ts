/**
 * Each section of docs/disasters.md "Disasters", tried on real servers: what is seen, what to do, and what is lost.
 */

import { execFile } from 'node:child_process';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  ADMIN,
  call,
  type Decider,
  decider,
  done,
  login,
  makeKey,
  SECRET_KEY,
  tryLogin,
} from '../server/support/client.ts';
import { becomes } from '../server/support/eventually.ts';
import { logLines, openStand, type Running, type Stand } from '../server/support/postern.ts';
import { postmasterOf } from '../server/support/postgres.ts';
import { runCommand } from '../support/command.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { prepareDataDir } from '../support/prepared-cluster.ts';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 120_000 });

const run = promisify(execFile);

const LOST_SECRET_KEY = 'the key that nobody has kept a copy of';
const OTHER_SECRET_KEY = 'the key that replaces the one that is lost';

let stand: Stand;
beforeAll(async () => {
  stand = await openStand();
});
afterAll(() => stand?.close());

async function ownDatabase(): Promise<FreshDatabase> {
  const database = await freshDatabase();
  onTestFinished(() => database.close());
  return database;
}

function envOf({ url }: Pick<FreshDatabase, 'url'>, secretKey = SECRET_KEY): NodeJS.ProcessEnv {
  return { POSTERN_DATABASE_URL: url, POSTERN_SECRET_KEY: secretKey, POSTERN_BOOTSTRAP_PASSWORD: ADMIN.password };
}

const GUIDE = new URL('../../docs/disasters.md', import.meta.url);

/** The SQL of a section of the guide, so that what it advises is what is tried. */
async function statementOfGuide(heading: string): Promise<string> {
  const section = (await readFile(GUIDE, 'utf8')).split(/^#+ /m).find((text) => text.startsWith(`${heading}\n`));
  return /```sql\n([^`]+)```/.exec(section ?? '')?.[1] ?? expect.fail(`${heading} has no SQL`);
}

function logs(server: Running, message: string): boolean {
  return logLines(server.stdout()).some(({ msg }) => String(msg).startsWith(message));
}

function gateAt(grpc: string): Decider {
  const gate = decider(grpc);
  onTestFinished(() => gate.close());
  return gate;
}

/** The newest seal that `postern verify-audit` has found whole. */
async function anchorOf(env: NodeJS.ProcessEnv): Promise<string> {
  const { code, stdout } = await runCommand(['verify-audit'], env);
  expect([code, stdout]).toEqual([0, expect.stringContaining('The chain is intact.')]);
  return /^Newest seal checked: (\S+)$/m.exec(stdout)?.[1] ?? expect.fail(stdout);
}

describe('a lost secret-key', () => {
  it('stops the start; after the statements of the guide, keys, passwords and sessions work, access tokens do not, and the audit log shows a break', async () => {
    const database = await ownDatabase();
    const former = await stand.serveApi(envOf(database));
    const { access_token: token, refresh_token: refresh } = (await tryLogin(former.http, ADMIN)).body;
    const { key } = await makeKey(former.http, String(token));
    await former.stop();
    // The database has what an earlier change of the key left, too.
    const rotating = { ...envOf(database, LOST_SECRET_KEY), POSTERN_SECRET_KEY_PREVIOUS: SECRET_KEY };
    expect((await runCommand(['rotate-secret-key', '--yes'], rotating)).code).toBe(0);

    const env = envOf(database, OTHER_SECRET_KEY);
    const refused = await stand.run(['serve'], env);
    expect(refused.code).toBeGreaterThan(0);
    expect(refused.stdout + refused.stderr).toContain('secret-key is not the key with which this database was set up');
    await database.db.knex.raw(await statementOfGuide('A lost `secret-key`'));

    const server = await stand.serve(env);
    const gate = gateAt(server.grpc);
    expect(await gate.decide(key)).toBe('allow');
    expect(await gate.decide(String(token))).toBe('invalid_credential');
    const refreshed = await call(server.http, 'POST', '/v1/auth/refresh', { body: { refresh_token: refresh } });
    expect(refreshed.status).toBe(200);
    expect(await gate.decide(String(refreshed.body['access_token']))).toBe('allow');
    await becomes('the break is logged', true, async () => logs(server, 'the chain of the audit log is broken'));
    await server.stop();
    const verified = await runCommand(['verify-audit'], env);
    expect([verified.code, verified.stdout]).toEqual([1, expect.stringContaining('or was created without secret-key')]);
  });
});

describe('a lost database', () => {
  it('is replaced by its backup: what it holds works, what was revoked since works again, and an anchor shows what is missing', async () => {
    const database = await ownDatabase();
    const env = envOf(database);
    const before = await stand.serveApi(env);
    const admin = await login(before.http);
    const kept = await makeKey(before.http, admin);
    const revoked = await makeKey(before.http, admin);
    await before.stop();
    const backup = await freshDatabase(database.db.newClient().database);
    onTestFinished(() => backup.close());

    const last = await stand.serveApi(env);
    await done(last.http, 'DELETE', `/v1/iam/api-keys/${revoked.id}`, { token: admin });
    const later = await makeKey(last.http, admin);
    await last.stop();
    const anchor = await anchorOf(env);

    const restored = envOf(backup);
    expect((await runCommand(['verify-audit', '--anchor', anchor], restored)).code).toBe(1);
    expect((await runCommand(['verify-audit'], restored)).code).toBe(0);
    const server = await stand.serveGate(restored);
    const gate = gateAt(server.grpc);
    expect(await gate.decide(kept.key)).toBe('allow');
    expect(await gate.decide(revoked.key)).toBe('allow');
    expect(await gate.decide(later.key)).toBe('invalid_credential');
    expect(await gate.decide(admin)).toBe('allow');
    await server.stop();
  });
});

describe('without any administrator', () => {
  it('reset-admin makes one with another address, who activates the former one', async () => {
    const database = await ownDatabase();
    const env = envOf(database);
    const server = await stand.serveApi(env);
    const admin = await login(server.http);
    const id = String((await done(server.http, 'GET', '/v1/auth/me', { token: admin })).body['id']);
    // The API refuses to get here.
    const refused = await call(server.http, 'POST', `/v1/iam/users/${id}/deactivate`, { token: admin });
    expect([refused.status, refused.body['code']]).toEqual([409, 'last_admin']);
    await database.db.knex('users').where({ id }).update({ status: 'deactivated' });
    await becomes(
      'the token of the former administrator is refused',
      401,
      async () => (await call(server.http, 'GET', '/v1/auth/me', { token: admin })).status,
    );

    const same = await runCommand(['reset-admin', '--yes'], env);
    expect([same.code, same.stderr]).toEqual([1, expect.stringContaining('deactivated')]);
    const other = { email: 'rescue@localhost', password: ADMIN.password };
    expect((await runCommand(['reset-admin', '--yes', '--create', '--email', other.email], env)).code).toBe(0);
    const rescue = await login(server.http, other);
    await done(server.http, 'POST', `/v1/iam/users/${id}/activate`, { token: rescue });
    expect((await tryLogin(server.http, ADMIN)).status).toBe(200);
    await server.stop();
  });
});

describe('a lost data-dir', () => {
  it('is put back from a copy; without its secret-key the server refuses to start', async () => {
    const dataDir = await prepareDataDir(join(stand.folder, 'data'));
    const copy = join(stand.folder, 'copy');
    const env = { POSTERN_DATA_DIR: dataDir, POSTERN_BOOTSTRAP_PASSWORD: ADMIN.password };
    const former = await stand.serveApi(env);
    const { key } = await makeKey(former.http, await login(former.http));
    await former.stop();
    expect(await postmasterOf(dataDir)).toBeUndefined();
    // With owners: PostgreSQL's files belong to another user if Postern is root.
    await run('cp', ['-a', dataDir, copy]);
    await rm(dataDir, { recursive: true });
    await run('cp', ['-a', copy, dataDir]);
    const secretKey = join(dataDir, 'secret-key');
    await rm(secretKey);
    const refused = await stand.run(['serve'], env);
    expect(refused.code).toBeGreaterThan(0);
    expect(refused.stdout + refused.stderr).toContain(
      'With the embedded database, the key is the file secret-key in data-dir',
    );
    await run('cp', ['-a', join(copy, 'secret-key'), secretKey]);
    const restored = await stand.serveGate(env);
    expect(await gateAt(restored.grpc).decide(key)).toBe('allow');
    await restored.stop();
    await anchorOf(env);
  });
});
