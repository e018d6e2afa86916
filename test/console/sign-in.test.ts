import { describe, expect } from 'vitest';
import { ADMIN, makeUser } from '../server/support/client.ts';
import { faultsInEveryLook } from './support/browser.ts';
import { type ConsoleStand, enter, it } from './support/stand.ts';

let stand: ConsoleStand;
it.beforeAll(async ({ stand: shared }) => {
  stand = shared;
});

describe('the sign-in page', () => {
  it('signs a user in with the correct password, and the user stays signed in after a reload', async () => {
    const { page, problems } = await stand.signIn();
    await page.reload();
    await expect.poll(() => page.getByRole('heading', { level: 1 }).textContent()).toBe('Overview');
    expect(problems).toEqual([]);
  });

  it('says that name and password do not go together, and forgets the password', async () => {
    const { page, problems } = await stand.open();
    await page.getByRole('textbox', { name: 'E-mail address' }).fill(ADMIN.email);
    await page.locator('input[name=password]').fill('the wrong password of a test');
    await page.getByRole('button', { name: 'Enter' }).click();
    await expect.poll(() => page.getByRole('status').textContent()).toContain('do not go together');
    expect(await page.locator('input[name=password]').inputValue()).toBe('');
    expect(problems).toEqual([]);
  });

  it('leads to the screen that was requested before it', async () => {
    const tab = await stand.open({}, '/console/keys?status=revoked');
    await enter(tab.page, ADMIN);
    await expect
      .poll(() => new URL(tab.page.url()).pathname + new URL(tab.page.url()).search)
      .toBe('/console/keys?status=revoked&tenant=default');
  });

  it.each(['//evil.example', '/\\evil.example', 'https://evil.example', 'javascript:alert(1)'])(
    'leads nobody to %s',
    async (next) => {
      const tab = await stand.open({}, `/console/sign-in?next=${encodeURIComponent(next)}`);
      await enter(tab.page, ADMIN);
      await expect.poll(() => tab.page.url()).toBe(`${stand.edge.url}/console/?tenant=default`);
    },
  );

  it('shows no data after a sign-out, also not by the back button', async () => {
    const { page } = await stand.signIn();
    await page.getByRole('button', { name: 'Account and sessions' }).click();
    await page.getByRole('menuitem', { name: 'Sign out', exact: true }).click();
    await page.getByRole('button', { name: 'Enter' }).waitFor();
    await page.goBack();
    await page.getByRole('button', { name: 'Enter' }).waitFor();
    expect(await page.getByRole('navigation', { name: 'Console' }).count()).toBe(0);
  });

  it('says after a sign-out that the server did not confirm that the session may still be active', async () => {
    const { page, problems } = await stand.signIn();
    await page.route('**/v1/auth/logout', (route) => route.fulfill({ status: 503 }));
    await page.getByRole('button', { name: 'Account and sessions' }).click();
    await page.getByRole('menuitem', { name: 'Sign out', exact: true }).click();
    await page.getByRole('button', { name: 'Enter' }).waitFor();
    await page.getByText('Postern did not confirm the sign-out').waitFor();
    expect(problems).toEqual([]);
  });

  it('is not shown while the server does not end the other sessions, and the user can sign out again', async () => {
    const person = await makeUser(stand.server.http, stand.token);
    const { page, problems } = await stand.signIn({ person });
    await page.route('**/v1/auth/sessions', (route) => route.fulfill({ status: 503 }));
    await page.getByRole('button', { name: 'Account and sessions' }).click();
    await page.getByRole('menuitem', { name: 'Sign out everywhere' }).click();
    const refusal = page.getByRole('alertdialog');
    await refusal.getByText('Sessions elsewhere may still be active.').waitFor();
    await refusal.getByRole('button', { name: 'Close' }).click();
    await page.unroute('**/v1/auth/sessions');
    await page.getByRole('button', { name: 'Account and sessions' }).click();
    await page.getByRole('menuitem', { name: 'Sign out everywhere' }).click();
    await page.getByRole('button', { name: 'Enter' }).waitFor();
    expect(problems).toEqual([]);
  });

  it('keeps no token in storage, in a cookie that scripts can read, or in an address', async () => {
    const { page, context } = await stand.signIn();
    const stored = await page.evaluate('JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])');
    expect(stored).toBe('[{"postern.signed-in":"1"},{},""]');
    expect((await context.cookies()).map(({ httpOnly, sameSite }) => ({ httpOnly, sameSite }))).toEqual([
      { httpOnly: true, sameSite: 'Strict' },
    ]);
  });

  it('has no serious accessibility fault and fits the screen in both themes, on desktops and phones', async () => {
    const { page } = await stand.open();
    await page.getByRole('button', { name: 'Enter' }).waitFor();
    expect(await faultsInEveryLook(page)).toEqual([]);
  });
});

describe('the page of the console', () => {
  it('has a nonce of its own in each answer, and allows nothing inline and nothing from elsewhere', async () => {
    const policies = await Promise.all(
      [1, 2].map(async () => (await fetch(`${stand.edge.url}/console`)).headers.get('content-security-policy')),
    );
    expect(policies[0]).not.toBe(policies[1]);
    expect(policies[0]).toMatch(/^default-src 'none'; script-src 'self' 'nonce-[\w-]{22}';/);
    expect(policies[0]).not.toContain('unsafe');
  });

  it('is the same for every address below /console, and no file of another folder', async () => {
    const page = await fetch(`${stand.edge.url}/console/users/usr_1`);
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    const outside = await fetch(`${stand.edge.url}/console/..%2f..%2fpackage.json`);
    expect(await outside.text()).not.toContain('"name": "postern"');
  });
});
