/** `postern ldap test` against a real server, as an administrator runs it. */

import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Attribute, Change, Client } from 'ldapts';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Started, startServers } from '../servers/all.ts';
import { tlsFor } from '../servers/client.ts';
import { groupDn, PEOPLE, uidDn } from '../servers/people.ts';
import type { DirectoryServer } from '../servers/server.ts';

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

function yamlOf(server: DirectoryServer, bindPassword: string): string {
  return `
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
}

it('shows every step of a login, the groups and their roles, and where it fails what to change', async (context) => {
  const server = started.servers.get('openldap');
  if (server === undefined) return context.skip(started.missing.get('openldap') ?? '');
  const [good, wrong, service, nobody] = await Promise.all([
    run(yamlOf(server, server.service.password), ['alice'], PEOPLE.alice.password),
    run(yamlOf(server, server.service.password), ['alice'], 'not the password'),
    run(yamlOf(server, 'not its password'), ['alice'], ''),
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

it('escapes what a terminal would execute in the values of the directory', async (context) => {
  const server = started.servers.get('openldap');
  if (server === undefined) return context.skip(started.missing.get('openldap') ?? '');
  const client = new Client({ url: server.secureUrl, tlsOptions: await tlsFor(server), timeout: 10_000 });
  const modification = new Attribute({
    type: 'displayName',
    values: ['Bob\u001b]0;owned\u0007\u001b[2K\r\u202eok\nok      roles         admin'],
  });
  try {
    await client.bind(server.manager.dn, server.manager.password);
    await client.modify(uidDn(server, PEOPLE.bob), new Change({ operation: 'replace', modification }));
  } finally {
    await client.unbind();
  }
  const { code, out } = await run(yamlOf(server, server.service.password), ['bob'], PEOPLE.bob.password);
  expect(code).toBe(0);
  expect(out).toContain('Bob\\u{1b}]0;owned\\u{7}');
  expect(out.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}]/u);
  expect(out).not.toMatch(/^ok +roles +admin$/m);
}, 120_000);
