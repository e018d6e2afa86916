import type { Page } from 'playwright-core';
import { describe, expect } from 'vitest';
import { done, makeKey, makeUser } from '../server/support/client.ts';
import { chooseOption, faultsInEveryLook, visit } from './support/browser.ts';
import { type ConsoleStand, it } from './support/stand.ts';

let stand: ConsoleStand;
it.beforeAll(async ({ stand: shared }) => {
  stand = shared;
});

/** Each screen with its title and the permission that it needs; no permission if every user may open it. */
const SCREENS = [
  { path: '/', title: 'Overview' },
  { path: '/keys', title: 'API keys' },
  { path: '/users', title: 'Users', needs: 'admin:users' },
  { path: '/users/usr_01k0000000000000000000000a', title: 'Users', needs: 'admin:users' },
  { path: '/roles', title: 'Roles', needs: 'admin:roles' },
  { path: '/roles/developer', title: 'Roles', needs: 'admin:roles' },
  { path: '/new-role', title: 'Roles', needs: 'admin:roles' },
  { path: '/policies', title: 'Policies', needs: 'admin:policies' },
  { path: '/policies/none-of-this-name', title: 'Policies', needs: 'admin:policies' },
  { path: '/new-policy', title: 'Policies', needs: 'admin:policies' },
  { path: '/issuers', title: 'Issuers', needs: 'admin:issuers' },
  { path: '/issuers/iss_01k0000000000000000000000a', title: 'Issuers', needs: 'admin:issuers' },
  { path: '/new-issuer', title: 'Issuers', needs: 'admin:issuers' },
  { path: '/explain', title: 'Explain access' },
  { path: '/access', title: 'Access review', needs: 'admin:policies' },
  { path: '/trial', title: 'Trial', needs: 'audit:read' },
  { path: '/usage', title: 'Usage', needs: 'usage:read' },
  { path: '/spend', title: 'Spend', needs: 'usage:read' },
  { path: '/budgets', title: 'Budgets', needs: 'usage:read' },
  { path: '/budgets/bud_01k0000000000000000000000a', title: 'Budgets', needs: 'usage:read' },
  { path: '/new-budget', title: 'Budgets', needs: 'usage:read' },
  { path: '/prices', title: 'Prices', needs: 'usage:read' },
  { path: '/import-prices', title: 'Prices', needs: 'usage:read' },
  { path: '/audit', title: 'Audit', needs: 'audit:read' },
  { path: '/webhooks', title: 'Webhooks', needs: 'admin:webhooks' },
  { path: '/webhooks/whk_01k0000000000000000000000a', title: 'Webhooks', needs: 'admin:webhooks' },
  { path: '/tenants', title: 'Tenants', needs: 'admin:tenants' },
  { path: '/directory', title: 'Directory', needs: 'admin:tenants' },
  { path: '/account', title: 'Account and sessions' },
] as const;

/** One test opens each of them. */
const ALL_SCREENS_MS = 180_000;

const ROLES = [
  { role: 'auditor', has: ['audit:read', 'usage:read'] },
  { role: 'developer', has: [] },
  {
    role: 'tenant-admin',
    has: [
      'admin:users',
      'admin:roles',
      'admin:policies',
      'admin:issuers',
      'admin:webhooks',
      'usage:read',
      'audit:read',
    ],
  },
] as const;

const heading = (page: Page) => page.getByRole('heading', { level: 1 });

/** Returns the faults of one screen for its viewer; empty if there are none. */
async function faultsOf(
  page: Page,
  { path, title, needs }: { path: string; title: string; needs?: string },
  has: readonly string[],
) {
  await visit(page, `/console${path}`);
  const isClosed = needs !== undefined && !has.includes(needs);
  if (!isClosed) {
    await heading(page).waitFor();
    const shown = await heading(page).textContent();
    return shown?.startsWith('You may not')
      ? [`${path}: closed, although ${needs ?? 'nothing'} is all that it needs`]
      : [];
  }
  await expect
    .poll(() => heading(page).textContent(), { message: path })
    .toMatch(new RegExp(`^You may not open ${title} in default\\.$`, 'i'));
  const said = page.locator('main');
  await expect.poll(() => said.textContent(), { message: path }).toContain(`This page needs ${needs}`);
  await expect.poll(() => said.textContent(), { message: path }).toMatch(/Request id ?req_[0-9a-z]{26}/);
  const explain = await page.getByRole('link', { name: 'Explain my access' }).getAttribute('href');
  return explain?.startsWith('/console/explain?user=usr_') ? [] : [`${path}: no way to Explain: ${explain}`];
}

describe.each(ROLES)('the console of a person with the role $role', ({ role, has }) => {
  it(
    'opens each screen, or says what it needs, who gives that and the id of the refusal',
    async () => {
      const person = await makeUser(stand.server.http, stand.token, { roles: [role] });
      const { page, problems } = await stand.signIn({ person });
      const faults: string[] = [];
      for (const screen of SCREENS) faults.push(...(await faultsOf(page, screen, has)));
      expect(faults).toEqual([]);
      expect(problems).toEqual([]);
    },
    ALL_SCREENS_MS,
  );

  it('has every screen in the rail', async () => {
    const person = await makeUser(stand.server.http, stand.token, { roles: [role] });
    const { page, problems } = await stand.signIn({ person });
    const names = await page.getByRole('navigation', { name: 'Console' }).getByRole('link').allTextContents();
    for (const name of [
      'Overview',
      'API keys',
      'Users',
      'Roles',
      'Policies',
      'Explain',
      'Access review',
      'Usage',
      'Spend',
      'Budgets',
      'Prices',
      'Audit',
      'Webhooks',
      'Tenants',
      'Directory',
    ])
      expect(names).toContain(name);
    expect(problems).toEqual([]);
  });
});

/** The page reads the rights of its caller again when it is looked at after a minute. */
async function readRights(page: Page): Promise<void> {
  const read = page.waitForResponse('**/v1/auth/me');
  await page.evaluate(`{
    const now = Date.now;
    Date.now = () => now() + 90_000;
    window.dispatchEvent(new Event('visibilitychange'));
  }`);
  await read;
  // The answer is on the screen.
  await page.evaluate('new Promise((resolve) => setTimeout(resolve, 500))');
}

describe('a closed screen', () => {
  it('says whose role gives what, and opens once the caller was given a role and asks again', async () => {
    const person = await makeUser(stand.server.http, stand.token, { roles: ['auditor'] });
    const { page, problems } = await stand.signIn({ person, path: '/console/policies' });
    await expect
      .poll(() => page.locator('main').textContent())
      .toContain('Your role auditor gives audit:read and usage:read.');
    await page
      .getByText('An administrator of the tenant (the role tenant-admin) can give you a role that has it.')
      .waitFor();
    // The screen asks the server too, and would open by itself if that answered after the change.
    await page.getByRole('button', { name: 'Copy request id' }).waitFor();
    await done(stand.server.http, 'PUT', `/v1/iam/users/${person.id}`, {
      token: stand.token,
      body: { roles: ['tenant-admin'] },
    });
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('button', { name: 'Create a policy' }).first().waitFor();
    expect(problems).toEqual([]);
  });

  it('copies the id of the refusal', async () => {
    const person = await makeUser(stand.server.http, stand.token, { roles: ['developer'] });
    const { page, problems } = await stand.signIn({ person, path: '/console/tenants' });
    await page.getByText('of a platform administrator').waitFor();
    await page.getByRole('button', { name: 'Copy request id' }).click();
    await expect.poll(() => page.evaluate('navigator.clipboard.readText()')).toMatch(/^req_[0-9a-z]{26}$/);
    expect(problems).toEqual([]);
  });

  it('is open, with its actions, to a caller whom a policy allows what no role gives', async () => {
    const api = (method: string, path: string, body?: object) =>
      done(stand.server.http, method, path, { token: stand.token, body });
    await api('POST', '/v1/iam/policies', {
      name: 'engineers-read-roles',
      effect: 'allow',
      actions: ['admin:roles'],
      resources: ['*'],
    });
    await api('PUT', '/v1/iam/roles/ml-engineer/policies/engineers-read-roles');
    const person = await makeUser(stand.server.http, stand.token, { roles: ['ml-engineer'] });
    const { page, problems } = await stand.signIn({ person, path: '/console/roles' });
    await page.getByRole('grid', { name: 'Roles' }).waitFor();
    await page.getByRole('button', { name: 'Create a role' }).click();
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill('made-by-policy');
    await page.getByRole('searchbox', { name: /Permissions/ }).fill('chat:read');
    await chooseOption(page.getByRole('option', { name: 'chat:read' }));
    await page.getByRole('button', { name: 'Create role' }).click();
    await page.getByRole('heading', { level: 1, name: 'made-by-policy' }).waitFor();
    expect(problems).toEqual([]);
  });

  it('takes no unsaved input away from a caller who loses the right while it is typed', async () => {
    const { http } = stand.server;
    const { token } = stand;
    const grant = (id: string, roles: readonly string[]) =>
      done(http, 'PUT', `/v1/iam/users/${id}`, { token, body: { roles } });
    await done(http, 'POST', '/v1/iam/roles', { token, body: { name: 'closing-role', permissions: ['chat:read'] } });
    const { id: key } = await makeKey(http, token, { scopes: ['chat:read'] });
    const lost: string[] = [];
    for (const [path, resource] of [
      ['/console/roles/closing-role', '/v1/iam/roles/closing-role'],
      [`/console/keys?open=${key}&act=edit`, `/v1/iam/api-keys/${key}`],
    ] as const) {
      const person = await makeUser(http, token, { roles: ['tenant-admin'] });
      const { page, problems } = await stand.signIn({ person, path });
      const field = page.getByRole('textbox', { name: /^Description/ }).first();
      await field.fill('typed by the test');
      await grant(person.id, ['developer']);
      await readRights(page);
      await grant(person.id, ['tenant-admin']);
      await readRights(page);
      if ((await field.count()) === 0 || (await field.inputValue()) !== 'typed by the test') {
        lost.push(path);
        continue;
      }
      await page.getByRole('button', { name: /^Save/ }).click();
      await page.getByText(/^Saved\./).waitFor();
      expect((await done(http, 'GET', resource, { token })).body).toMatchObject({ description: 'typed by the test' });
      expect(problems).toEqual([]);
    }
    expect(lost).toEqual([]);
  });

  it('has no serious accessibility fault and fits the screen in both themes, on desktops and phones', async () => {
    const person = await makeUser(stand.server.http, stand.token, { roles: ['auditor'] });
    const { page, problems } = await stand.signIn({ person, path: '/console/users' });
    await page.getByRole('button', { name: 'Copy request id' }).waitFor();
    expect(await faultsInEveryLook(page)).toEqual([]);
    expect(problems).toEqual([]);
  });
});
