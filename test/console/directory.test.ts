/** The directory's screen against a real slapd, and a login by it at the console's first page. */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect } from 'vitest';
import {
  type DirectoryWorld,
  describeWithSlapd,
  LDAP_PASSWORD,
  startDirectoryWorld,
  WRONG,
} from '../auth/directory-world.ts';
import { call, makeUser } from '../server/support/client.ts';
import { accessibilityFaults, applyLook, faultsInEveryLook, PHONE, type Tab, visit } from './support/browser.ts';
import { type ConsoleStand, it } from './support/stand.ts';

async function test({ page }: Tab, username: string, password = ''): Promise<void> {
  await page.getByRole('textbox', { name: 'User name' }).fill(username);
  await page.locator('input[type=password]').fill(password);
  await page.getByRole('button', { name: 'Run the test' }).click();
}

await describeWithSlapd('the console with a directory', () => {
  let world: DirectoryWorld;
  let stand: ConsoleStand;
  let folder: string;
  it.beforeAll(async ({ startConsole }) => {
    world = await startDirectoryWorld();
    await world.add('ada', { mail: 'ada@corp.example' });
    await world.join('developers', 'ada');
    await world.add('grace');
    folder = await mkdtemp(join(tmpdir(), 'postern-console-'));
    const { server } = world;
    const configuration = join(folder, 'postern.yaml');
    await writeFile(
      configuration,
      `ldap:
  name: corp
  enabled: true
  type: openldap
  url: ${server.url}
  base-dn: ${server.suffix}
  bind-dn: ${server.service.dn}
  bind-password: ${server.service.password}
  group-search-base: ${server.groups}
  group-role-mapping:
    "cn=developers,${server.groups}": developer
`,
    );
    stand = await startConsole({ POSTERN_CONFIG: configuration });
  });
  afterAll(async () => {
    await world?.stop();
    if (folder !== undefined) await rm(folder, { recursive: true, force: true });
  });

  it('says at once which directories are configured, and after a login whether each answers', async () => {
    const { page, problems } = await stand.asAdmin({ path: '/console/directory' });
    const line = page.getByRole('listitem').filter({ hasText: 'corp' });
    await line.getByText('No login needed it since this server started.').waitFor();
    const { http } = stand.server;
    const body = { auth_type: 'ldap', username: 'ada', password: LDAP_PASSWORD };
    expect((await call(http, 'POST', '/v1/auth/login', { body })).status).toBe(200);
    await page.reload();
    await line.getByText('It answered the last login of this server.').waitFor();
    expect(problems).toEqual([]);
  });

  it('takes a login apart: every step, the groups of the person and what they become, and keeps no password', async () => {
    const tab = await stand.asAdmin({ path: '/console/directory' });
    const { page, problems } = tab;
    await test(tab, 'ada', LDAP_PASSWORD);
    const verdict = page.getByRole('status').filter({ hasText: 'ada' });
    await expect
      .poll(() => verdict.textContent())
      .toContain('ada can sign in with the roles developer in the tenant default.');
    expect(await page.locator('input[type=password]').inputValue()).toBe('');
    const steps = page.getByRole('list', { name: 'The steps of the login' }).getByRole('listitem');
    expect((await steps.allInnerTexts()).map((text) => text.split('\n')[1])).toEqual([
      'connect',
      'service bind',
      'find user',
      'user bind',
      'attributes',
      'groups',
      'roles',
      'tenant',
      'tls',
    ]);
    await page.getByText('The connection is not encrypted').waitFor();
    await page.getByText(`cn=developers,${world.server.groups}`).waitFor();
    await page.getByText('All steps passed').first().waitFor();
    expect(await page.content()).not.toContain(LDAP_PASSWORD);
    expect(problems).toEqual([]);
  });

  it('says where a login fails and what to change, and what was not reached', async () => {
    const tab = await stand.asAdmin({ path: '/console/directory' });
    const { page, problems } = tab;
    await test(tab, 'ada', WRONG);
    await page.getByText('The login fails at the step user bind.').waitFor();
    const failed = page.getByRole('listitem').filter({ hasText: 'fails here' });
    expect(await failed.textContent()).toContain('What to change');
    expect(
      await page.getByRole('list', { name: 'The steps of the login' }).getByRole('listitem').last().textContent(),
    ).toContain('attributes, groups, roles, tenant');
    await page.getByText('Failed at user_bind').first().waitFor();
    await test(tab, 'grace');
    await page
      .getByText('grace is found without any role in the tenant default. The password was not tried.')
      .waitFor();
    await page.getByText('Name one of the groups above in ldap.group-role-mapping').waitFor();
    expect(problems).toEqual([]);
  });

  it('says that no directory has the name that was given', async () => {
    const tab = await stand.asAdmin({ path: '/console/directory' });
    await tab.page.getByRole('textbox', { name: 'Directory' }).fill('elsewhere');
    await test(tab, 'ada');
    await tab.page.getByText('No directory is called elsewhere.').waitFor();
    expect(tab.problems).toEqual([]);
  });

  it('lets people of the directory in by the form, as what their groups make them', async () => {
    const { page, problems } = await stand.open();
    await page.getByRole('radio', { name: 'Directory' }).click();
    await page.getByRole('textbox', { name: 'User name' }).fill('ada');
    await page.locator('input[name=password]').fill(LDAP_PASSWORD);
    await page.getByRole('button', { name: 'Enter' }).click();
    const account = page.getByRole('button', { name: 'Account and sessions' });
    await account.waitFor();
    expect(await account.textContent()).toContain('developer');
    await visit(page, '/console/directory');
    await page.getByText('A platform administrator (the role admin) can give that').waitFor();
    expect(problems).toEqual([]);
  });

  it('has no serious accessibility fault with a passed and a failed test, in both themes, on desktops and phones', async () => {
    const tab = await stand.asAdmin({ path: '/console/directory' });
    await applyLook(tab.page, PHONE);
    await test(tab, 'ada', LDAP_PASSWORD);
    await tab.page.getByText('ada can sign in').waitFor();
    expect(await faultsInEveryLook(tab.page)).toEqual([]);
    await applyLook(tab.page, PHONE);
    await test(tab, 'nobody-at-all');
    await tab.page.getByText('The login fails at the step').waitFor();
    expect(await faultsInEveryLook(tab.page)).toEqual([]);
    expect(tab.problems).toEqual([]);
  });
});

describe('the console without a directory', () => {
  let stand: ConsoleStand;
  it.beforeAll(({ stand: shared }) => {
    stand = shared;
  });

  it('says at once that none is configured, and shows what to write into the configuration', async () => {
    const tab = await stand.asAdmin({ path: '/console/directory' });
    await tab.page.getByText('No directory is configured').waitFor();
    await tab.page.getByRole('radio', { name: 'OpenLDAP' }).click();
    await tab.page.getByText('group-search-base: ou=groups,dc=example,dc=com').waitFor();
    expect(await accessibilityFaults(tab.page)).toEqual([]);
    expect(tab.problems).toEqual([]);
  });

  it('tells users other than platform administrators that the operator configures it', async () => {
    const person = await makeUser(stand.server.http, stand.token, { roles: ['tenant-admin'] });
    const { page, problems } = await stand.signIn({ person, path: '/console/directory' });
    await page.getByText('A platform administrator (the role admin) can give that').waitFor();
    expect(problems).toEqual([]);
  });
});
