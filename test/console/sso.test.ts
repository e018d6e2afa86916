/** Signing in to the console at a real OpenID provider. */

import type { Page } from 'playwright-core';
import { afterAll, describe, expect } from 'vitest';
import { done, login } from '../server/support/client.ts';
import { type OidcProvider, startOidcProvider } from '../support/oidc-provider.ts';
import { faultsInEveryLook } from './support/browser.ts';
import { type ConsoleStand, it } from './support/stand.ts';

const TENANT = 'globex-sso';

let stand: ConsoleStand;
let provider: OidcProvider;
let issuer: string;

it.beforeAll(async ({ startConsole }) => {
  provider = await startOidcProvider();
  stand = await startConsole({ POSTERN_ISSUERS_ALLOWED_HOSTS: '["localhost"]' });
  const { http } = stand.server;
  const token = await login(http);
  await done(http, 'POST', '/v1/iam/tenants', { token, body: { id: TENANT, name: 'Globex' } });
  const { body } = await done(http, 'POST', '/v1/iam/issuers', {
    token,
    tenant: TENANT,
    body: {
      name: 'globex',
      issuer: provider.issuer,
      audiences: ['postern'],
      users: {
        create: true,
        name_claim: 'name',
        roles: [{ claim: 'groups', in: ['admins'], roles: ['tenant-admin'] }],
      },
      sso: { client_id: provider.clientId, client_secret: provider.clientSecret, label: 'Globex' },
    },
  });
  issuer = String(body['id']);
  // The provider reaches the server without the proxy of browsers.
  provider.register(stand.edge.url, issuer, `http://${http}/v1/auth/sso/${issuer}/backchannel-logout`);
  provider.person('ada', { name: 'Ada Lovelace', groups: ['admins'] });
});
afterAll(async () => {
  await provider?.close();
});

async function signInAtProvider(page: Page, subject: string): Promise<void> {
  await page.getByRole('link', { name: 'Sign in with Globex' }).click();
  await page.getByLabel('Subject').fill(subject);
  await page.getByRole('button', { name: 'Log in at the provider' }).click();
}

const account = (page: Page) => page.getByRole('button', { name: 'Account and sessions' });
const path = (page: Page): string => new URL(page.url()).pathname + new URL(page.url()).search;

describe('signing in at a provider', () => {
  it('opens the requested screen in the tenant of the issuer, and a back-channel logout ends it', async () => {
    const { page, problems } = await stand.open({}, '/console/users?status=active');
    await signInAtProvider(page, 'ada');
    await account(page).waitFor();
    await expect.poll(() => path(page)).toBe(`/console/users?status=active&tenant=${TENANT}`);
    expect(await account(page).textContent()).toContain('Ada Lovelace');
    await page.getByRole('row', { name: /Ada Lovelace/ }).waitFor();
    expect(await page.getByText('admin@localhost').count()).toBe(0);
    const stored = await page.evaluate('JSON.stringify([{ ...localStorage }, document.cookie])');
    expect(stored).toBe('[{"postern.signed-in":"1"},""]');
    const cookies = (await page.context().cookies()).filter(({ name }) => name.startsWith('postern'));
    expect(cookies.map(({ name, httpOnly, sameSite }) => ({ name, httpOnly, sameSite }))).toEqual([
      { name: 'postern_refresh', httpOnly: true, sameSite: 'Strict' },
    ]);
    await page.reload();
    await account(page).waitFor();

    // The user logs out elsewhere, and the provider tells Postern.
    const elsewhere = await page.context().newPage();
    await elsewhere.goto(`${provider.issuer}/session/end`);
    await elsewhere.getByRole('button', { name: 'Log out at the provider' }).click();
    // A page that is closed during its navigation may never report that it is closed.
    await elsewhere.getByText('Logged out.').waitFor();
    await expect
      .poll(async () => (await stand.db.knex('sessions').whereNotNull('sso_subject').whereNull('ended_at')).length)
      .toBe(0);
    expect(provider.rejectedLogouts).toEqual([]);
    await elsewhere.close();
    await page.getByRole('searchbox').first().fill('any');
    await page.getByRole('link', { name: 'Sign in with Globex' }).waitFor();
    await page.getByText('Your session has ended.').waitFor();
    expect(problems).toEqual([]);
  });

  it('ends at the provider as well when the user signs out, and leads back to the sign-in page', async () => {
    const { page, problems } = await stand.open();
    await signInAtProvider(page, 'ada');
    await account(page).click();
    await page.getByRole('menuitem', { name: 'Sign out', exact: true }).click();
    await page.getByRole('button', { name: 'Log out at the provider' }).click();
    await page.getByRole('link', { name: 'Sign in with Globex' }).waitFor();
    expect(path(page)).toBe('/console/sign-in');
    await page.goto('/console');
    await signInAtProvider(page, 'ada');
    await account(page).waitFor();
    expect(problems).toEqual([]);
  });

  it('leads back to the sign-in page with the reason if the provider refuses the user', async () => {
    const { page, problems } = await stand.open();
    await signInAtProvider(page, 'stranger');
    await page.getByText('The provider did not sign you in.').waitFor();
    await page.getByRole('textbox', { name: 'E-mail address' }).waitFor();
    expect(problems).toEqual([]);
  });
});

describe('the sign-in page with an issuer', () => {
  it('is usable by keyboard, in both themes and at both widths, also with a reason', async () => {
    const { page } = await stand.open();
    const link = page.getByRole('link', { name: 'Sign in with Globex' });
    await link.waitFor();
    expect(await faultsInEveryLook(page)).toEqual([]);
    await page.goto('/console/sign-in?sso_error=email_in_use');
    await page.getByText('Another account has your e-mail address.').waitFor();
    expect(await faultsInEveryLook(page)).toEqual([]);
    await link.focus();
    await page.keyboard.press('Enter');
    await page.getByLabel('Subject').waitFor();
  });

  it('shows no form for passwords if the server hides it, except at an address of its own', async () => {
    const { page } = await stand.open();
    await page.route('**/v1/auth/sso', (route) =>
      route.fulfill({ json: { data: [{ id: issuer, label: 'Globex' }], only: true } }),
    );
    await page.goto('/console/sign-in');
    await page.getByRole('link', { name: 'Sign in with Globex' }).waitFor();
    expect(await page.getByRole('textbox').count()).toBe(0);
    expect(await faultsInEveryLook(page)).toEqual([]);
    await page.goto('/console/sign-in?by=password');
    await page.getByRole('textbox', { name: 'E-mail address' }).waitFor();
  });

  it('shows the form for passwords while the list of issuers cannot be read', async () => {
    const { page } = await stand.open();
    await page.route('**/v1/auth/sso', (route) => route.fulfill({ status: 403, json: {} }));
    await page.goto('/console/sign-in');
    await page.getByRole('textbox', { name: 'E-mail address' }).waitFor();
  });
});
