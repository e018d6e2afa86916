/** The program as it is run, with directories in its configuration: one process, and several. */

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { UserId } from '../../src/domain/ids.ts';
import { decider } from '../server/support/client.ts';
import { becomes } from '../server/support/eventually.ts';
import { type ApiServer, logLines, metric, openStand, type Stand } from '../server/support/postern.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { send } from '../support/http.ts';
import {
  type DirectoryWorld,
  describeWithSlapd,
  LDAP_PASSWORD,
  LOCKED,
  startDirectoryWorld,
  WRONG,
} from './directory-world.ts';
import { addKey } from './people.ts';

await describeWithSlapd('the program with directories', () => {
  let world: DirectoryWorld;
  let database: FreshDatabase;
  let stand: Stand;
  let configuration: string;

  beforeAll(async () => {
    world = await startDirectoryWorld();
    database = await freshDatabase();
    stand = await openStand();
    configuration = join(stand.folder, 'postern.yaml');
    const { server } = world;
    await writeFile(
      configuration,
      `ldap:
  - name: corp
    enabled: true
    url: ${server.url}
    base-dn: ${server.suffix}
    bind-dn: ${server.service.dn}
    bind-password: ${server.service.password}
    group-search-base: ${server.groups}
    names-without-domain: true
    group-role-mapping:
      "cn=developers,${server.groups}": developer
  # Of names @far.example alone, so nobody here ever asks it.
  - name: far
    enabled: true
    url: ldap://ldap.far.example
    domain: far.example
    base-dn: dc=far,dc=example
`,
    );
    await world.add('ada');
    await world.join('developers', 'ada');
  });
  afterAll(async () => {
    await stand.close();
    await database.close();
    await world.stop();
  });

  const settings = (workers = '1'): NodeJS.ProcessEnv => ({
    POSTERN_CONFIG: configuration,
    POSTERN_DATABASE_URL: database.url,
    POSTERN_SECRET_KEY: 'a secret key of tests that is long enough',
    POSTERN_BOOTSTRAP_PASSWORD: 'a lake of tin whistles',
    POSTERN_WORKERS: workers,
  });

  async function login({ http }: ApiServer, password: string): Promise<number> {
    const body = JSON.stringify({ auth_type: 'ldap', username: 'ada', password });
    const headers = { 'content-type': 'application/json' };
    return (await send(`http://${http}`, { method: 'POST', path: '/v1/auth/login', headers, body })).status;
  }

  test('the API process looks up the owners of keys, and every gate rejects the keys of a disabled one', async () => {
    const server = await stand.serve(settings('2'));
    expect(await login(server, LDAP_PASSWORD)).toBe(200);
    const user = await database.db.knex<{ id: UserId; source: string }>('users').where('source', 'ldap').first('id');
    if (user === undefined) throw new Error('no user was made');
    const key = await addKey(database.db, user.id);
    const me = async (): Promise<number> =>
      (await send(`http://${server.http}`, { path: '/v1/auth/me', headers: { authorization: `Bearer ${key}` } }))
        .status;
    expect(await me()).toBe(200);
    // Both gates listen on one port, so that eight connections reach both nearly always.
    const connections = Array.from({ length: 8 }, () => decider(server.grpc));
    onTestFinished(() => connections.forEach((each) => void each.close()));
    const decisions = async (): Promise<string> =>
      [...new Set(await Promise.all(connections.map((each) => each.decide(key))))].join();
    await becomes('the key at every gate', 'allow', decisions);
    await world.set('ada', ...LOCKED);
    await database.db.knex.raw(`update users set directory_checked_at = clock_timestamp() - interval '2 days'`);
    await becomes('the key', 401, me);
    await becomes('the key at every gate', 'invalid_credential', decisions);
    await becomes('the lookup is counted', 1, () =>
      metric(server.admin, 'postern_directory_lookups_total{directory="corp",outcome="disabled"'),
    );
    await world.set('ada', LOCKED[0], undefined);
    expect(await login(server, LDAP_PASSWORD)).toBe(200);
    expect(await me()).toBe(200);
    await becomes('the key at every gate', 'allow', decisions);
    const { stdout } = await server.stop();
    expect(stdout).not.toContain('uid=ada');
  });

  test.each([
    { server: 'the API as one process', serve: () => stand.serveApi(settings()) },
    { server: 'two workers', serve: () => stand.serve(settings('2')) },
  ])(
    '$server: logins of a directory are admitted and counted, and warnings about its configuration are on /readyz and in the log',
    async ({ serve }) => {
      const server: ApiServer = await serve();
      expect([await login(server, LDAP_PASSWORD), await login(server, WRONG)]).toEqual([200, 401]);
      const counted = (outcome: string): Promise<number> =>
        metric(server.admin, `postern_directory_logins_total{directory="corp",outcome="${outcome}"`);
      // A process that is late with its numbers is shown with its last ones.
      await becomes('both are counted', '1,1', async () =>
        [await counted('success'), await counted('wrong_password')].join(),
      );
      const { body } = await send(`http://${server.admin}`, { path: '/readyz' });
      const { status, warnings }: { status: string; warnings: readonly string[] } = JSON.parse(body);
      expect([status, warnings]).toEqual(['ready', expect.arrayContaining([expect.stringContaining('far')])]);
      const { stdout } = await server.stop();
      const logged = logLines(stdout).filter((line) => line['part'] === 'directory');
      expect(logged.map((line) => line['msg'])).toEqual(warnings);
      expect(stdout).not.toContain(world.server.service.password);
    },
  );
});
