import type { Page } from 'playwright-core';
import { describe, expect } from 'vitest';
import { call, done, login, makeKey, makeUser } from '../server/support/client.ts';
import { send } from '../support/http.ts';
import { applyLook, chooseOption, faultsInEveryLook, PHONE, visit } from './support/browser.ts';
import { type ConsoleStand, it } from './support/stand.ts';

let stand: ConsoleStand;
it.beforeAll(async ({ stand: shared }) => {
  stand = shared;
});

const api = (method: string, path: string, body?: object) =>
  done(stand.server.http, method, path, { token: stand.token, body });
const tenantOf = async (id: string) => (await api('GET', `/v1/iam/tenants/${id}`)).body;

async function makeTenant(id: string, more: object = {}): Promise<void> {
  await api('POST', '/v1/iam/tenants', { id, name: `Name of ${id}`, ...more });
}

/** Opens the menu of one row and chooses from it. */
async function choose(page: Page, tenant: string, choice: string): Promise<void> {
  await page.getByRole('button', { name: `More for Name of ${tenant}` }).click();
  await page.getByRole('menuitem', { name: choice }).click();
}

/** The bodies of the changes that the page sends to one path, in order. */
function changesSent(
  page: Page,
  path: string,
): readonly { readonly body: unknown; readonly ifMatch: string | undefined }[] {
  const sent: { body: unknown; ifMatch: string | undefined }[] = [];
  page.on('request', (request) => {
    if (request.method() !== 'PUT' || new URL(request.url()).pathname !== path) return;
    sent.push({ body: request.postDataJSON(), ifMatch: request.headers()['if-match'] });
  });
  return sent;
}

describe('the platform', () => {
  it('shows the tenants by tokens, requests and denials, and those near a limit with the end at their pace', async () => {
    await makeTenant('pace-small', { quotas: { monthly_tokens: 1000 } });
    await makeTenant('pace-large', { quotas: { monthly_tokens: 1_000_000_000 } });
    await api('PUT', '/v1/iam/tenants/pace-small/usage', { monthly_tokens_used: 900 });
    await api('PUT', '/v1/iam/tenants/pace-large/usage', { monthly_tokens_used: 5000 });
    const { page, problems } = await stand.asAdmin({ path: '/console/tenants?q=pace-' });
    const ids = () => page.getByRole('grid', { name: 'Tenants' }).locator('tbody code').allTextContents();
    const head = page.getByRole('columnheader', { name: 'Tokens used' });
    await expect.poll(ids).toEqual(['pace-large', 'pace-small']);
    await head.click();
    await expect.poll(() => new URL(page.url()).searchParams.get('sort')).toBe('-tokens');
    await expect.poll(ids).toEqual(['pace-large', 'pace-small']);
    await head.click();
    await expect.poll(ids).toEqual(['pace-small', 'pace-large']);
    for (const name of ['Requests this month', 'Denied in 24 h'])
      expect(await page.getByRole('columnheader', { name }).getAttribute('aria-sort')).toBe('none');
    await page.getByRole('radio', { name: 'Near a limit' }).click();
    await expect.poll(ids).toEqual(['pace-small']);
    expect(problems).toEqual([]);
  });

  it('finds a key in all tenants by its name, and by its beginning if a whole key is pasted', async () => {
    await makeTenant('far-away');
    const { id, key } = await makeKey(stand.server.http, stand.token, { tenant: 'far-away' });
    const { page, problems } = await stand.asAdmin({ path: '/console/tenants' });
    const urls: string[] = [];
    page.on('request', (request) => urls.push(request.url()));
    await page.getByRole('button', { name: 'Find a key' }).click();
    const drawer = page.getByRole('dialog', { name: 'Find a key in all tenants' });
    await drawer.getByRole('searchbox').fill(key);
    await expect
      .poll(() =>
        drawer.getByRole('listitem').filter({ hasText: 'far-away' }).getByRole('link').first().getAttribute('href'),
      )
      .toContain(`open=${id}`);
    expect(urls.filter((url) => url.includes(key))).toEqual([]);
    expect(problems).toEqual([]);
  });

  it('leads a new tenant to its first administrator, its first key and its first request, on one page that asks before a secret is lost', async () => {
    await makeTenant('newcomer');
    const { page, problems } = await stand.asAdmin({ path: '/console/onboarding?tenant=newcomer' });
    await page.getByRole('textbox', { name: 'E-mail' }).fill('boss@newcomer.example');
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill('Boss');
    await page.getByRole('button', { name: 'Create administrator' }).click();
    await page.getByText(/set-password#token=/).waitFor();
    const elsewhere = page.getByRole('link', { name: 'Users', exact: true });
    const question = page.getByRole('alertdialog', { name: 'This is shown only once' });
    const stay = async (): Promise<void> => {
      await elsewhere.click();
      await question.getByRole('button', { name: 'Stay' }).click();
      await question.waitFor({ state: 'detached' });
    };
    await stay();
    await page.getByRole('button', { name: /^Copy .*link/i }).click();
    await page.getByRole('textbox', { name: 'Purpose of the key' }).fill('The first program');
    await page.getByRole('button', { name: 'Create key' }).click();
    const secret = page.getByText(/^psk_\w{20,}$/);
    const key = (await secret.textContent()) ?? '';
    await page.getByText('No request was seen').waitFor();
    const { status } = await send(stand.edge.url, {
      method: 'GET',
      path: '/v1/models',
      headers: { authorization: `Bearer ${key}` },
    });
    expect(status).toBe(200);
    await page.getByText('Allowed:').waitFor();
    await expect.poll(() => page.getByText('Done', { exact: true }).count()).toBe(4);
    expect(await faultsInEveryLook(page)).toEqual([]);
    await stay();
    // The command to try has the key in it.
    await page.getByRole('button', { name: /^Copy .*try/i }).click();
    await expect.poll(() => page.evaluate('navigator.clipboard.readText()')).toContain(key);
    await elsewhere.click();
    await page.getByRole('heading', { level: 1, name: 'Users' }).waitFor();
    expect(problems).toEqual([]);
  });
});

describe('the list of tenants', () => {
  it('shows what each tenant uses of its limits, and finds one by its id', async () => {
    await makeTenant('lumen', { quotas: { monthly_tokens: 20_000_000, max_users: 60 } });
    await makeTenant('orbital');
    await api('PUT', '/v1/iam/tenants/lumen/usage', { monthly_tokens_used: 20_000_000 });
    const { page, problems } = await stand.asAdmin({ path: '/console/tenants' });
    const row = page.getByRole('row').filter({ hasText: 'lumen' });
    await expect.poll(() => row.textContent()).toContain('20M of 20M');
    await expect.poll(() => row.textContent()).toContain('Out of tokens');
    await page.getByRole('searchbox', { name: 'Find a tenant' }).fill('orbital');
    await expect.poll(() => page.getByRole('row').filter({ hasText: 'lumen' }).count()).toBe(0);
    expect(await page.getByRole('row').filter({ hasText: 'orbital' }).count()).toBe(1);
    await expect.poll(() => new URL(page.url()).search).toBe('?tenant=default&q=orbital');
    await page.getByRole('searchbox', { name: 'Find a tenant' }).fill('nobody-has-this');
    await page.getByText('There is no such tenant').waitFor();
    expect(problems).toEqual([]);
  });

  it('is filtered by the state on the server, together with the search, and shows when tokens reset', async () => {
    await makeTenant('kept-a', { quotas: { monthly_tokens: 1000 } });
    await makeTenant('kept-b');
    await api('POST', '/v1/iam/tenants/kept-b/suspend');
    const { page, problems } = await stand.asAdmin({ path: '/console/tenants?q=kept-' });
    const grid = page.getByRole('grid', { name: 'Tenants' });
    await expect.poll(() => grid.textContent()).toContain('kept-b');
    await expect
      .poll(() => page.getByRole('row').filter({ hasText: 'kept-a' }).textContent())
      .toMatch(/resets 1 \w{3},? \d\d:00/);
    const asked = page.waitForRequest((request) => request.url().includes('status=suspended'));
    await page
      .getByRole('group', { name: 'State' })
      .or(page.getByRole('radiogroup', { name: 'State' }))
      .getByText('Suspended')
      .click();
    expect(new URL((await asked).url()).searchParams.get('q')).toBe('kept-');
    await expect.poll(() => grid.textContent()).not.toContain('kept-a');
    expect(new URL(page.url()).search).toBe('?q=kept-&tenant=default&status=suspended');
    await page.getByRole('searchbox', { name: 'Find a tenant' }).fill('kept-a');
    await page.getByRole('button', { name: 'Show all tenants' }).click();
    await expect.poll(() => page.getByRole('searchbox', { name: 'Find a tenant' }).inputValue()).toBe('');
    await expect.poll(() => new URL(page.url()).search).toBe('?tenant=default');
    expect(problems).toEqual([]);
  });

  it('leads into a tenant, and every screen stays in it', async () => {
    await makeTenant('marlow');
    const { page, problems } = await stand.asAdmin({ path: '/console/tenants?q=marlow' });
    await choose(page, 'marlow', 'Act in this tenant');
    await page.getByRole('button', { name: 'Change the tenant: Name of marlow' }).waitFor();
    await page.getByRole('navigation', { name: 'Console' }).getByRole('link', { name: 'Usage' }).click();
    await expect.poll(() => new URL(page.url()).searchParams.get('tenant')).toBe('marlow');
    expect(problems).toEqual([]);
  });
});

describe('the drawer of a tenant', () => {
  it('says at each field what is missing, makes a tenant of what is set and nothing else, and leads to its first steps', async () => {
    const { page, problems } = await stand.asAdmin({ path: '/console/tenants' });
    await page.getByRole('button', { name: 'Create tenant' }).click();
    const drawer = page.getByRole('dialog');
    await drawer.getByRole('button', { name: 'Create tenant' }).click();
    await expect.poll(() => drawer.getByText('This field is needed.').count()).toBe(2);
    expect(await page.evaluate('document.activeElement.value')).toBe('');
    await drawer.getByRole('textbox', { name: 'Id' }).fill('Kestrel');
    await drawer.getByRole('textbox', { name: 'Name', exact: true }).fill('Kestrel Health');
    await drawer.getByRole('textbox', { name: 'Tokens a month' }).fill('100000000');
    await drawer.getByRole('combobox', { name: 'Time zone' }).fill('berl');
    await chooseOption(page.getByRole('option', { name: 'Europe/Berlin' }));
    await drawer.getByRole('button', { name: 'Create tenant' }).click();
    await drawer.getByText('An id must be 1 to 63 lowercase letters').waitFor();
    await drawer.getByRole('textbox', { name: 'Id' }).fill('kestrel');
    await drawer.getByRole('button', { name: 'Create tenant' }).click();
    await page.getByRole('heading', { level: 1, name: 'Start Kestrel Health' }).waitFor();
    expect(await tenantOf('kestrel')).toMatchObject({
      name: 'Kestrel Health',
      settings: { timezone: 'Europe/Berlin' },
      quotas: { monthly_tokens: 100_000_000 },
    });
    expect(problems).toEqual([]);
  });

  it('sends only what changed with the ETag, nothing without a change, and null for a limit that is emptied', async () => {
    await makeTenant('verity', { settings: { timezone: 'UTC', rate_limit_rpm: 300 }, quotas: { max_users: 40 } });
    const { page, problems } = await stand.asAdmin({ path: '/console/tenants?open=verity' });
    const sent = changesSent(page, '/v1/iam/tenants/verity');
    const drawer = page.getByRole('dialog', { name: 'Name of verity' });
    const save = drawer.getByRole('button', { name: 'Save' });
    await expect.poll(() => save.getAttribute('aria-disabled')).toBe('true');
    await drawer.getByRole('textbox', { name: 'Name', exact: true }).fill('Verity Legal');
    await drawer.getByRole('textbox', { name: 'Requests a minute' }).fill('');
    await drawer.getByRole('textbox', { name: 'Active users' }).fill('0');
    await save.click();
    await page.getByText('Saved. All replicas apply it').waitFor();
    expect(sent).toEqual([
      {
        body: { name: 'Verity Legal', settings: { rate_limit_rpm: null }, quotas: { max_users: 0 } },
        ifMatch: expect.stringMatching(/^"/),
      },
    ]);
    expect(await tenantOf('verity')).toMatchObject({
      name: 'Verity Legal',
      settings: { timezone: 'UTC' },
      quotas: { max_users: 0 },
    });
    expect(problems).toEqual([]);
  });

  it('recommends the usage of streams to a tenant with a quota, and saves the setting', async () => {
    await makeTenant('heron', { settings: { timezone: 'UTC' } });
    const { page, problems } = await stand.asAdmin({ path: '/console/tenants?open=heron' });
    const drawer = page.getByRole('dialog', { name: 'Name of heron' });
    const advice = drawer.getByText('Recommended for a tenant with a monthly quota.');
    const setting = drawer.getByRole('checkbox', { name: 'Streams of completions must report their usage' });
    await setting.waitFor();
    expect([await advice.count(), await setting.isChecked()]).toEqual([0, false]);
    await drawer.getByRole('textbox', { name: 'Tokens a month' }).fill('5000');
    await advice.waitFor();
    await drawer.getByText('Streams of completions must report their usage').click();
    await expect.poll(() => advice.count()).toBe(0);
    await drawer.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved. All replicas apply it').waitFor();
    expect(await tenantOf('heron')).toMatchObject({
      settings: { timezone: 'UTC', require_stream_usage: true },
      quotas: { monthly_tokens: 5000 },
    });
    expect(problems).toEqual([]);
  });

  it('shows the changes that another administrator saved during the edit, and keeps the typed values', async () => {
    await makeTenant('tallis', { quotas: { max_users: 40 } });
    const { page, problems } = await stand.asAdmin({ path: '/console/tenants?open=tallis' });
    const drawer = page.getByRole('dialog', { name: 'Name of tallis' });
    await drawer.getByRole('textbox', { name: 'Tokens a month' }).fill('5000');
    await api('PUT', '/v1/iam/tenants/tallis', { quotas: { max_users: 50 } });
    await drawer.getByRole('button', { name: 'Save' }).click();
    await drawer.getByText('Somebody else saved a change').waitFor();
    await expect.poll(() => drawer.getByRole('table').textContent()).toMatch(/quotas\.max_users\s*40\s*50/);
    await drawer.getByRole('button', { name: 'Continue with the newest' }).click();
    await drawer.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved. All replicas apply it').waitFor();
    expect((await tenantOf('tallis'))['quotas']).toEqual({ monthly_tokens: 5000, max_users: 50 });
    expect(problems).toEqual([]);
  });

  it('replaces the typed values by the saved ones after a confirmation', async () => {
    await makeTenant('corvid', { quotas: { max_users: 40 } });
    const { page, problems } = await stand.asAdmin({ path: '/console/tenants?open=corvid' });
    const drawer = page.getByRole('dialog', { name: 'Name of corvid' });
    await drawer.getByRole('textbox', { name: 'Active users' }).fill('45');
    await api('PUT', '/v1/iam/tenants/corvid', { quotas: { max_users: 50 } });
    await drawer.getByRole('button', { name: 'Save' }).click();
    await drawer.getByRole('button', { name: 'Discard my input' }).click();
    await expect.poll(() => drawer.getByRole('textbox', { name: 'Active users' }).inputValue()).toBe('50');
    expect(await drawer.getByRole('button', { name: 'Save' }).getAttribute('aria-disabled')).toBe('true');
    expect(problems).toEqual([]);
  });

  it('says that nothing was saved when the newest state cannot be read either', async () => {
    await makeTenant('osprey');
    const { page, problems } = await stand.asAdmin({ path: '/console/tenants?open=osprey' });
    const drawer = page.getByRole('dialog', { name: 'Name of osprey' });
    await drawer.getByRole('textbox', { name: 'Name', exact: true }).fill('Osprey Research');
    await api('PUT', '/v1/iam/tenants/osprey', { name: 'Osprey' });
    await page.route('**/v1/iam/tenants/osprey', (route) =>
      route.request().method() === 'GET' ? route.abort() : route.continue(),
    );
    await drawer.getByRole('button', { name: 'Save' }).click();
    await drawer.getByText('Request req_').waitFor();
    expect(await drawer.getByRole('textbox', { name: 'Name', exact: true }).inputValue()).toBe('Osprey Research');
    expect(problems).toEqual([]);
  });

  it('sends another time zone after the server refused one', async () => {
    await makeTenant('linnet');
    const { page, problems } = await stand.asAdmin({ path: '/console/tenants?open=linnet' });
    const drawer = page.getByRole('dialog', { name: 'Name of linnet' });
    const save = drawer.getByRole('button', { name: 'Save' });
    const zone = drawer.getByRole('combobox', { name: 'Time zone' });
    await zone.fill('Mars/Olympus');
    await zone.press('Tab');
    await save.click();
    await expect.poll(() => zone.getAttribute('aria-invalid')).toBe('true');
    await zone.fill('Europe/Oslo');
    await zone.press('Tab');
    await save.click();
    await page.getByText('Saved. All replicas apply it').waitFor();
    expect((await tenantOf('linnet'))['settings']).toMatchObject({ timezone: 'Europe/Oslo' });
    expect(problems).toEqual([]);
  });
});

describe('suspending and deleting', () => {
  it('suspends after the id is typed: the requests of its users are refused through Envoy until it is activated', async () => {
    await makeTenant('northgate');
    const person = await makeUser(stand.server.http, stand.token, { roles: ['developer'], tenant: 'northgate' });
    const credential = await login(stand.server.http, person);
    const ask = async (): Promise<number> =>
      (await send(stand.edge.url, { path: '/v1/chat/history', headers: { authorization: `Bearer ${credential}` } }))
        .status;
    expect(await ask()).toBe(200);
    const { page, problems } = await stand.asAdmin({ path: '/console/tenants?q=northgate' });
    await choose(page, 'northgate', 'Suspend');
    const dialog = page.getByRole('alertdialog', { name: 'Suspend Name of northgate?' });
    const suspend = dialog.getByRole('button', { name: 'Suspend' });
    expect(await suspend.getAttribute('aria-disabled')).toBe('true');
    await dialog.getByRole('textbox', { name: 'Type northgate to confirm' }).fill('northgate');
    await suspend.click();
    await expect
      .poll(() => page.getByRole('row').filter({ hasText: 'northgate' }).textContent())
      .toContain('Suspended');
    await expect.poll(ask).toBe(403);
    await choose(page, 'northgate', 'Activate');
    await page.getByRole('alertdialog').getByRole('button', { name: 'Activate' }).click();
    await expect.poll(ask).toBe(200);
    expect(problems).toEqual([]);
  });

  it('says why a tenant in use is not deleted, with ways to its users and keys, and deletes one that is empty', async () => {
    await makeTenant('zenith');
    const { id } = await makeKey(stand.server.http, stand.token, { tenant: 'zenith' });
    const { page, problems } = await stand.asAdmin({ path: '/console/tenants?q=zenith' });
    await choose(page, 'zenith', 'Delete');
    const dialog = page.getByRole('alertdialog', { name: 'Delete Name of zenith?' });
    await dialog.getByRole('textbox').fill('zenith');
    await dialog.getByRole('button', { name: 'Delete' }).click();
    await dialog
      .getByText('The tenant still has users or active keys. Delete the users and revoke the keys first.')
      .waitFor();
    expect(await dialog.getByRole('link', { name: 'Its active keys' }).getAttribute('href')).toBe(
      '/console/keys?tenant=zenith&status=active',
    );
    await done(stand.server.http, 'DELETE', `/v1/iam/api-keys/${id}`, { token: stand.token, tenant: 'zenith' });
    await dialog.getByRole('button', { name: 'Delete' }).click();
    await page.getByText('There is no such tenant').waitFor();
    expect((await call(stand.server.http, 'GET', '/v1/iam/tenants/zenith', { token: stand.token })).status).toBe(404);
    expect(problems).toEqual([]);
  });

  it('offers neither for the first tenant, and says why', async () => {
    const { page, problems } = await stand.asAdmin({ path: '/console/tenants?q=default' });
    await page
      .getByRole('row')
      .filter({ hasText: 'default' })
      .getByRole('button', { name: /^More for/ })
      .click();
    const item = page.getByRole('menuitem', { name: /^Delete/ });
    expect(await item.getAttribute('aria-disabled')).toBe('true');
    expect(await item.textContent()).toContain('The first tenant stays');
    expect(problems).toEqual([]);
  });

  it("warns that suspending the administrator's own tenant locks it out, and does it after a confirmation", async () => {
    await makeTenant('outpost');
    const person = await makeUser(stand.server.http, stand.token, { roles: ['admin'], tenant: 'outpost' });
    const { page, problems } = await stand.signIn({ person, path: '/console/tenants?q=outpost' });
    await choose(page, 'outpost', 'Suspend');
    const dialog = page.getByRole('alertdialog');
    await dialog.getByRole('textbox').fill('outpost');
    await dialog.getByRole('button', { name: 'Suspend', exact: true }).click();
    await dialog.getByText('This is your own tenant.').waitFor();
    await dialog.getByRole('button', { name: 'Suspend it all the same' }).click();
    await expect.poll(async () => (await tenantOf('outpost'))['status']).toBe('suspended');
    expect(problems).toEqual([]);
  });
});

it('tenants have no serious accessibility fault in the list, the drawers and the dialog, in both themes, on desktops and phones', async () => {
  await makeTenant('looked-at');
  const { page, problems } = await stand.asAdmin({ path: '/console/tenants?q=default' });
  await page
    .getByRole('row')
    .filter({ hasText: 'default' })
    .getByRole('button', { name: /^More for/ })
    .waitFor();
  expect(await faultsInEveryLook(page)).toEqual([]);
  await visit(page, '/console/tenants?q=default&open=default');
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).waitFor();
  expect(await faultsInEveryLook(page)).toEqual([]);
  await visit(page, '/console/tenants?q=default&open=_new');
  await page.getByRole('dialog').getByRole('button', { name: 'Create tenant' }).waitFor();
  expect(await faultsInEveryLook(page)).toEqual([]);
  await visit(page, '/console/tenants?q=looked-at');
  await applyLook(page, PHONE);
  await choose(page, 'looked-at', 'Suspend');
  const confirmation = page.getByRole('alertdialog').getByRole('textbox');
  await confirmation.waitFor();
  expect(await faultsInEveryLook(page)).toEqual([]);
  expect(await confirmation.isVisible()).toBe(true);
  expect(problems).toEqual([]);
});
