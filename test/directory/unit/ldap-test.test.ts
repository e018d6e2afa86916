/** `postern ldap test` against a real server, as an administrator runs it. */

import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Started, startServers } from '../servers/all.ts';
import { groupDn, PEOPLE } from '../servers/people.ts';

const MAIN = new URL('../../../src/main.ts', import.meta.url).pathname;

let started: Started;
let folder: string;
beforeAll(async () => {
  started = await startServers(['openldap']);
  folder = await mkdtemp(join(tmpdir(), 'postern-ldap-test-'));
});
afterAll(async () => {
  await started?.stop();
  await rm(folder, { recursive: true, force: true });
});

/** The command with a password on its standard input. */
function run(
  yaml: string,
  words: readonly string[],
  password: string,
): Promise<{ readonly code: number; readonly out: string; readonly err: string }> {
  const file = join(folder, `${randomUUID()}.yaml`);
  writeFileSync(file, yaml);
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [MAIN, 'ldap', 'test', '--config', file, ...words], (error, out, err) => {
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, out, err });
    });
    child.stdin?.end(`${password}\n`);
  });
}

it('shows every step of a login, the groups and their roles, and where it fails what to change', async (context) => {
  const server = started.servers.get('openldap');
  if (server === undefined) return context.skip(started.missing.get('openldap') ?? '');
  const yaml = (bindPassword: string): string => `
ldap:
  enabled: true
  url: ${server.secureUrl}
  ca-file: ${server.caFile}
  base-dn: ${server.suffix}
  bind-dn: ${server.service.dn}
  bind-password: ${bindPassword}
  group-search-base: ${server.groups}
  group-role-mapping: {"${groupDn(server, 'engineers')}": developer}
`;
  const [good, wrong, service, nobody] = await Promise.all([
    run(yaml(server.service.password), ['alice'], PEOPLE.alice.password),
    run(yaml(server.service.password), ['alice'], 'not the password'),
    run(yaml('not its password'), ['alice'], ''),
    run('{}', ['alice'], ''),
  ]);
  expect(good.err).toBe('');
  expect(good.out.match(/^(ok|FAILED) +\S+/gm)?.map((line) => line.replace(/ +/, ' '))).toEqual(
    ['connect', 'tls', 'service_bind', 'find_user', 'user_bind', 'attributes', 'groups', 'roles', 'tenant'].map(
      (step) => `ok ${step}`,
    ),
  );
  expect(good.out).toMatch(/^ok +roles +developer$/m);
  expect(good.code).toBe(0);
  expect(wrong.code).toBe(1);
  expect(wrong.out).toMatch(/^FAILED {2}user_bind .*wrong_password.*\n +-> Check name and password/m);
  expect(service.code).toBe(1);
  expect(service.out).toMatch(/^FAILED {2}service_bind .*\n +-> Correct ldap\.bind-dn and ldap\.bind-password\.$/m);
  expect(nobody).toMatchObject({ code: 1, err: expect.stringContaining('No directory is configured') });
  for (const { out, err } of [good, wrong, service]) {
    for (const secret of [PEOPLE.alice.password, server.service.password, 'not its password', 'not the password']) {
      expect(out + err).not.toContain(secret);
    }
  }
}, 120_000);
