/** `postern verify-audit` beside a server that seals. */

import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { ADMIN, done, login, SECRET_KEY, tryLogin } from '../server/support/client.ts';
import { eventually } from '../server/support/eventually.ts';
import { type ApiServer, logLines, openStand, type Stand } from '../server/support/postern.ts';
import { type CommandResult, runCommand } from '../support/command.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

let stand: Stand;
let database: FreshDatabase;
let server: ApiServer;
let env: NodeJS.ProcessEnv;
beforeAll(async () => {
  stand = await openStand();
  database = await freshDatabase();
  env = { POSTERN_DATABASE_URL: database.url, POSTERN_SECRET_KEY: SECRET_KEY };
  server = await stand.serveApi({ ...env, POSTERN_BOOTSTRAP_PASSWORD: ADMIN.password });
});
afterAll(async () => {
  await stand?.close();
  await database?.close();
});

const verify = (...args: readonly string[]): Promise<CommandResult> => runCommand(['verify-audit', ...args], env);

function allSealed(): Promise<boolean> {
  return eventually('everything is sealed', async () => {
    const [row] = await database.db.query({ text: 'select not exists (select from audit_unsealed) as sealed' });
    return row?.['sealed'] === true;
  });
}

test('postern verify-audit reports how much it checked and exits 0 while the server seals; after a change of a row it exits 1 and names the row', async () => {
  const token = await login(server.http);
  await tryLogin(server.http, { email: 'nobody@example.com', password: 'not a password of anybody' });
  await done(server.http, 'POST', '/v1/iam/tenants', { token, body: { id: 'sealed', name: 'Sealed' } });
  await allSealed();
  const whole = await verify();
  expect([whole.code, whole.stderr]).toEqual([0, '']);
  expect(whole.stdout).toMatch(
    /^Rows checked: [4-9], in \d+ seals\.\nNot sealed yet: 0\.\nNewest seal checked: \d+:[0-9a-f]{64}\nThe chain is intact\.\n$/,
  );

  const anchor = /checked: (\d+:\S+)/.exec(whole.stdout)?.[1] ?? '';
  expect((await verify('--anchor', anchor)).code).toBe(0);
  const other = await verify('--anchor', anchor.replace(/.{8}$/, '00000000'));
  expect(other.code).toBe(1);
  expect(other.stdout).toMatch(/^The chain is broken: the chain does not pass through the seal \d+ that was given\.$/m);

  const [row] = await database.db.query({
    text: `select id from audit_log where action = 'auth.login' and result = 'failure'`,
  });
  await database.db.query({ text: `update audit_log set address = '192.0.2.1' where id = $1`, values: [row?.['id']] });
  const broken = await verify();
  expect([broken.code, broken.stderr]).toEqual([1, '']);
  expect(broken.stdout).toMatch(
    new RegExp(`^The chain is broken at row ${row?.['id']}: it was changed after it was sealed`, 'm'),
  );
  const { code, stdout, stderr } = await stand.run(['verify-audit'], env);
  expect({ code, stdout, stderr }).toEqual(broken);
});

test('a server that stops leaves no row unsealed, and logs the newest seal', async () => {
  const token = await login(server.http);
  await done(server.http, 'POST', '/v1/iam/tenants', { token, body: { id: 'last', name: 'Last' } });
  const { code, stdout } = await server.stop();
  expect(code).toBe(0);
  const verified = await verify();
  expect(verified.stdout).toMatch(/^Not sealed yet: 0\.$/m);
  const told = logLines(stdout).findLast((line) => line['anchor'] !== undefined);
  expect(told?.['anchor']).toMatch(/^\d+:[0-9a-f]{64}$/);
});

test('postern verify-audit with another secret-key fails with the next step and reports nothing about the chain', async () => {
  const refused = await stand.run(['verify-audit'], { ...env, POSTERN_SECRET_KEY: `${SECRET_KEY} no longer` });
  expect([refused.code, refused.stdout]).toEqual([1, '']);
  expect(refused.stderr).toMatch(/secret-key/);
});

test('an anchor that is none is refused', async () => {
  const refused = await verify('--anchor', '12');
  expect([refused.code, refused.stdout]).toEqual([2, '']);
  expect(refused.stderr).toMatch(/^--anchor 12 is not a seal\./);
});

test('a database that no server has used yet is not bound to the secret-key of the check', async () => {
  const unused = await freshDatabase();
  const { code } = await runCommand(['verify-audit'], { ...env, POSTERN_DATABASE_URL: unused.url });
  expect([code, await unused.db.query({ text: `select name from meta where name <> 'additive_migrations'` })]).toEqual([
    0,
    [],
  ]);
  await unused.close();
});

test('a database that is behind is left as it is', async () => {
  const empty = await freshDatabase('');
  const refused = await runCommand(['verify-audit'], { ...env, POSTERN_DATABASE_URL: empty.url });
  expect([refused.code, refused.stdout]).toEqual([2, '']);
  expect(refused.stderr).toMatch(/postern migrate/);
  await empty.close();
});
