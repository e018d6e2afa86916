import type { Page } from 'playwright-core';
import { describe, expect } from 'vitest';
import { ADMIN, done, makeKey, makeUser } from '../server/support/client.ts';
import { applyLook, chooseOption, faultsInEveryLook, PHONE, visit } from './support/browser.ts';
import { type ConsoleStand, enter, it } from './support/stand.ts';

const MANY = 24;

let stand: ConsoleStand;
it.beforeAll(async ({ startConsole }) => {
  stand = await startConsole();
  for (let n = 0; n < MANY; n++) await api('POST', '/v1/iam/tenants', { id: `a-${n}-north`, name: `Branch ${n}` });
  await api('POST', '/v1/iam/tenants', { id: 'north', name: 'Head office' });
  await api('POST', '/v1/iam/tenants', { id: 'asleep', name: 'Sleeping' });
  await api('POST', '/v1/iam/tenants/asleep/suspend');
});

const api = (method: string, path: string, body?: object) =>
  done(stand.server.http, method, path, { token: stand.token, body });
const addressOf = (page: Page): string => {
  const { pathname, search } = new URL(page.url());
  return pathname + search;
};
const open = (page: Page) => page.getByRole('button', { name: /^Change the tenant:/ }).click();
const field = (page: Page) => page.getByRole('combobox', { name: 'Find a tenant by id or name' });

describe('a link without a tenant', () => {
  it('opens a user and a key in the tenant that they belong to, and keeps the rest of the address', async () => {
    const tenant = 'a-1-north';
    const user = await makeUser(stand.server.http, stand.token, { tenant, roles: ['developer'] });
    const { id } = await makeKey(stand.server.http, stand.token, { tenant });
    const { page, problems } = await stand.signIn({ path: `/console/users/${user.id}?tab=keys` });
    await expect.poll(() => new URL(page.url()).searchParams.get('tenant')).toBe(tenant);
    await page.getByRole('button', { name: /^Change the tenant: Branch 1/ }).waitFor();
    await page.getByRole('tab', { name: 'Keys', selected: true }).waitFor();
    await visit(page, `/console/keys?open=${id}`);
    await page.getByRole('dialog', { name: 'made by a test' }).waitFor();
    await expect.poll(() => new URL(page.url()).searchParams.get('tenant')).toBe(tenant);
    await page.getByRole('button', { name: 'Close' }).click();
    await page.getByRole('row', { name: 'made by a test' }).waitFor();
    expect(problems).toEqual([]);
  });
});

describe('the address of a screen, and each link on it', () => {
  it('name the tenant, also the own one, so that an administrator of another tenant opens the same', async () => {
    const person = await makeUser(stand.server.http, stand.token, { tenant: 'a-2-north', roles: ['tenant-admin'] });
    const { page, problems } = await stand.signIn({ person, path: '/console/roles?q=dev#content' });
    await page.getByRole('row', { name: 'developer' }).waitFor();
    await expect.poll(() => addressOf(page)).toBe('/console/roles?q=dev&tenant=a-2-north');
    expect(new URL(page.url()).hash).toBe('#content');
    const links: readonly string[] = await page.evaluate(
      "[...document.querySelectorAll('a[href]')].map(({ pathname, search, hash }) => pathname + search + hash)",
    );
    expect(links.length).toBeGreaterThan(10);
    expect(links.filter((link) => !link.includes('tenant=a-2-north'))).toEqual([]);
    const { page: other } = await stand.asAdmin({ path: addressOf(page) });
    await other.getByRole('button', { name: /^Change the tenant: Branch 2/ }).waitFor();
    expect(problems).toEqual([]);
  });
});

describe('the tenant switcher', () => {
  it('is used by the keyboard alone, and stays on the screen without what belongs to the tenant before', async () => {
    const { page, problems } = await stand.asAdmin({ path: '/console/users?q=nobody&status=active' });
    await page.getByRole('button', { name: /^Change the tenant: Default/ }).focus();
    await page.keyboard.press('Enter');
    await expect.poll(() => page.evaluate('document.activeElement.type')).toBe('search');
    await page.keyboard.type('head');
    await page.getByRole('option', { name: /^Head office/ }).waitFor();
    await expect.poll(() => page.getByRole('option').count()).toBe(1);
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await expect.poll(() => addressOf(page)).toBe('/console/users?tenant=north');
    await page.getByRole('button', { name: /^Change the tenant: Head office/ }).waitFor();
    expect(problems).toEqual([]);
  });

  it('shows one page, says that there are more, and finds by exactly the id what is not on it', async () => {
    const { page, problems } = await stand.asAdmin();
    await open(page);
    await page.getByText('These are the first 20. Type to narrow.').waitFor();
    expect(await page.getByRole('option').count()).toBe(20);
    await field(page).fill('north');
    await expect.poll(() => page.getByRole('option').first().textContent()).toContain('Head office');
    await page.getByText('Type to narrow.').waitFor();
    await field(page).fill('no-such');
    await page.getByText('No tenant has this in its name or id.').waitFor();
    expect(problems).toEqual([]);
  });

  it('leads from a detail to the list, because the other tenant has no such detail', async () => {
    const { page, problems } = await stand.asAdmin({ path: '/console/roles/developer' });
    await page.getByRole('heading', { level: 1 }).waitFor();
    await open(page);
    await field(page).fill('head');
    await chooseOption(page.getByRole('option', { name: /^Head office/ }));
    await expect.poll(() => addressOf(page)).toBe('/console/roles?tenant=north');
    expect(problems).toEqual([]);
  });

  it('leaves no row and no selection of the tenant before on the screen, also while the server answers late', async () => {
    const { id } = await makeKey(stand.server.http, stand.token, { tenant: 'north' });
    const { page, problems } = await stand.asAdmin({ path: '/console/keys?tenant=north' });
    const row = page.getByRole('row', { name: 'made by a test' });
    await row.locator('label').click();
    await page.getByText('1 key selected').waitFor();
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    await page.route('**/v1/iam/api-keys?*', async (route) => {
      await released;
      await route.fallback();
    });
    await open(page);
    await field(page).fill('default');
    await chooseOption(page.getByRole('option', { name: /^Default/ }));
    await page.getByRole('button', { name: /^Change the tenant: Default/ }).waitFor();
    expect([await row.count(), await page.getByText('1 key selected').count()]).toEqual([0, 0]);
    release();
    await page.getByText('There is no API key yet').waitFor();
    expect(await page.getByRole('button', { name: /^Revoke/ }).count()).toBe(0);
    expect((await api('GET', `/v1/iam/api-keys/${id}`)).body).toMatchObject({ status: 'active' });
    expect(problems).toEqual([]);
  });

  it('opens below its button and runs from left to right, also in a browser whose language runs the other way', async () => {
    const { context } = await stand.asAdmin();
    const page = await context.newPage();
    await page.addInitScript("Object.defineProperty(navigator, 'language', { get: () => 'ar-EG' })");
    await page.goto('/console/account');
    await open(page);
    await page.getByRole('option').first().waitFor();
    const [button, dialog] = await Promise.all([
      page.getByRole('button', { name: /^Change the tenant:/, includeHidden: true }).boundingBox(),
      page.getByRole('dialog').boundingBox(),
    ]);
    expect(Math.abs((button?.x ?? 0) - (dialog?.x ?? 0))).toBeLessThan(12);
    expect(await page.locator('[dir=rtl]').count()).toBe(0);
    await page.close();
  });

  it('marks a suspended tenant, and its screens say what that means', async () => {
    const { page, problems } = await stand.asAdmin();
    await open(page);
    await field(page).fill('asleep');
    const option = page.getByRole('option', { name: /^Sleeping/ });
    await expect.poll(() => option.textContent()).toContain('Suspended');
    await option.click();
    await page.getByText('This tenant is suspended: every request of its users and keys is refused.').waitFor();
    expect(problems).toEqual([]);
  });
});

describe('a sign-in', () => {
  const shown = (page: Page) => page.getByRole('button', { name: /^Change the tenant:/ });

  it('leads to the tenant in which the user acted last in this browser, or to its own if that one is gone', async () => {
    await api('POST', '/v1/iam/tenants', { id: 'brief', name: 'Brief' });
    const { page, problems } = await stand.signIn({ path: '/console/keys?tenant=brief' });
    await expect.poll(() => shown(page).textContent()).toContain('Brief');
    const signInAgain = async () => {
      await page.getByRole('button', { name: 'Account and sessions' }).click();
      await page.getByRole('menuitem', { name: 'Sign out', exact: true }).click();
      await page.goto('/console/');
      await enter(page, ADMIN);
      await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
    };
    await signInAgain();
    await expect.poll(() => addressOf(page)).toBe('/console/?tenant=brief');
    await expect.poll(() => shown(page).textContent()).toContain('Brief');
    await api('DELETE', '/v1/iam/tenants/brief');
    await signInAgain();
    await expect.poll(() => addressOf(page)).toBe('/console/?tenant=default');
    await expect.poll(() => shown(page).textContent()).toContain('Default');
    expect(problems).toEqual([]);
  });
});

describe('an address with a tenant', () => {
  it('that does not exist says so, with the way back', async () => {
    const { page, problems } = await stand.asAdmin({ path: '/console/keys?tenant=gone-long-ago' });
    await page.getByText('There is no tenant gone-long-ago').waitFor();
    await page.getByRole('button', { name: 'Go to default' }).click();
    await expect.poll(() => page.getByRole('heading', { level: 1 }).textContent()).toBe('Overview');
    await expect.poll(() => addressOf(page)).toBe('/console/?tenant=default');
    expect(problems).toEqual([]);
  });

  it('in which the caller may not act says so, and shows the own one', async () => {
    const person = await makeUser(stand.server.http, stand.token, { roles: ['tenant-admin'] });
    const { page, problems } = await stand.signIn({ person, path: '/console/keys?tenant=north' });
    await page.getByText('The address names the tenant north. Your account belongs to default').waitFor();
    await page.getByRole('heading', { level: 1, name: 'API keys' }).waitFor();
    expect(problems).toEqual([]);
  });
});

it('the open tenant switcher has no serious accessibility fault and fits the screen in both themes, on desktops and phones', async () => {
  const { page, problems } = await stand.asAdmin({ path: '/console/account?tenant=asleep' });
  await applyLook(page, PHONE);
  await open(page);
  const option = page.getByRole('option').first();
  await option.waitFor();
  expect(await faultsInEveryLook(page)).toEqual([]);
  expect(await option.isVisible()).toBe(true);
  expect(problems).toEqual([]);
});
