/** A screen that stays open tells times and states that pass by themselves as they are now, without another read. */

import { describe, expect } from 'vitest';
import { done, makeUser, tryLogin } from '../server/support/client.ts';
import { visit } from './support/browser.ts';
import { type ConsoleStand, it } from './support/stand.ts';

const TENANT = 'left-open';
const FAILURES = 10;
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

let stand: ConsoleStand;
it.beforeAll(async ({ stand: shared }) => {
  stand = shared;
  await done(stand.server.http, 'POST', '/v1/iam/tenants', {
    token: stand.token,
    body: { id: TENANT, name: 'Left open' },
  });
});

const makeKey = (name: string) =>
  done(stand.server.http, 'POST', '/v1/iam/api-keys', {
    token: stand.token,
    tenant: TENANT,
    body: { name, description: 'left open', scopes: ['models:read'], expires_in_days: 3 },
  });

describe('a screen that stays open', () => {
  it('shows a key that expires as expired, and no longer among those that expire soon', async () => {
    await makeKey('passing');
    const { page, problems } = await stand.signIn({ path: `/console/keys?tenant=${TENANT}` });
    await page.clock.install();
    await visit(page, `/console/keys?tenant=${TENANT}`);
    const row = page.getByRole('row', { name: 'passing' });
    await row.getByText('Expiring soon', { exact: true }).waitFor();
    await page.clock.fastForward(3 * DAY_MS + MINUTE_MS);
    await row.getByText('Expired', { exact: true }).waitFor();
    await page.clock.setSystemTime(Date.now());
    await visit(page, `/console/?tenant=${TENANT}`);
    const soon = page.locator('section').filter({ hasText: 'Keys expiring soon' }).getByText('passing');
    await soon.waitFor();
    await page.clock.fastForward(3 * DAY_MS + MINUTE_MS);
    await soon.waitFor({ state: 'detached' });
    await page.clock.setSystemTime(Date.now());
    expect(problems).toEqual([]);
  });

  it('shows a user whose lock ends as active, in the list, on its page and on the overview', async () => {
    const user = await makeUser(stand.server.http, stand.token, { tenant: TENANT, roles: ['developer'] });
    for (let i = 0; i < FAILURES; i++) await tryLogin(stand.server.http, { ...user, password: 'not the password' });
    const { page, problems } = await stand.signIn({ path: `/console/users?tenant=${TENANT}&q=${user.email}` });
    await page.clock.install();
    const screens = [
      [`/console/users?tenant=${TENANT}&q=${user.email}`, page.getByRole('row').getByText('Locked')],
      [`/console/users/${user.id}?tenant=${TENANT}`, page.getByText('Too many logins with a wrong password.')],
      [`/console/?tenant=${TENANT}`, page.getByText('is locked until')],
    ] as const;
    for (const [path, says] of screens) {
      await visit(page, path);
      await says.waitFor();
      await page.clock.fastForward(16 * MINUTE_MS);
      await says.waitFor({ state: 'detached' });
      await page.clock.setSystemTime(Date.now());
    }
    expect(problems).toEqual([]);
  });

  it('shows times as they are at once, also after a screen without times', async () => {
    await makeKey('just made');
    const { page, problems } = await stand.signIn({ path: `/console/connect?tenant=${TENANT}` });
    await page.clock.install();
    await visit(page, `/console/connect?tenant=${TENANT}`);
    await page.getByRole('heading', { name: 'Connect a client' }).waitFor();
    await page.clock.fastForward(2 * 60 * MINUTE_MS);
    await page.getByRole('link', { name: 'API keys' }).click();
    const row = page.getByRole('row', { name: 'just made' });
    await row.waitFor();
    expect(await row.textContent()).toContain('2 hr ago');
    await page.clock.setSystemTime(Date.now());
    expect(problems).toEqual([]);
  });
});

describe('a page whose resource is deleted in another tab', () => {
  it('says so when it is read again, and keeps unsaved input', async () => {
    const call = (method: string, path: string, body?: object) =>
      done(stand.server.http, method, path, { token: stand.token, tenant: TENANT, ...(body && { body }) });
    const { page, problems } = await stand.signIn({ path: `/console/roles?tenant=${TENANT}` });
    await page.clock.install();
    const readAgain = async (): Promise<void> => {
      await page.clock.fastForward(MINUTE_MS);
      const read = page.waitForResponse(
        (response) => response.url().includes('/v1/iam/roles/') && response.status() === 404,
      );
      await page.evaluate("document.dispatchEvent(new Event('visibilitychange', { bubbles: true }))");
      await read;
    };
    const description = page.getByRole('textbox', { name: 'Description' });
    for (const name of ['gone-unchanged', 'gone-while-typed']) {
      await call('POST', '/v1/iam/roles', { name, description: '', permissions: ['chat:read'] });
      await visit(page, `/console/roles/${name}?tenant=${TENANT}`);
      await description.waitFor();
      if (name === 'gone-while-typed') await description.fill('unsaved');
      await call('DELETE', `/v1/iam/roles/${name}`);
      await readAgain();
      if (name === 'gone-while-typed') expect(await description.inputValue()).toBe('unsaved');
      else await description.waitFor({ state: 'detached' });
    }
    await page.getByRole('button', { name: 'Discard', exact: true }).click();
    await page.clock.setSystemTime(Date.now());
    expect(problems).toEqual([]);
  });
});

describe('a browser whose clock is wrong', () => {
  it.each([-2, 2])('by %i hours shows and asks for times by the clock of the server', async (hours) => {
    const name = `by ${hours} hours`;
    await makeKey(name);
    const { page, problems } = await stand.signIn({ path: `/console/keys?tenant=${TENANT}` });
    await page.clock.install();
    await page.clock.setSystemTime(Date.now() + hours * 60 * MINUTE_MS);
    await page.reload();
    const row = page.getByRole('row', { name });
    await row.waitFor();
    expect(await row.textContent()).toContain('just now');
    await visit(page, `/console/audit?tenant=${TENANT}`);
    await page.getByRole('button', { name: 'Time', exact: true }).click();
    const asked = page.waitForRequest((request) => request.url().includes('from='));
    await page.getByRole('button', { name: 'Last hour' }).click();
    const from = Date.parse(new URL((await asked).url()).searchParams.get('from') ?? '');
    expect(Math.abs(from - (Date.now() - 60 * MINUTE_MS))).toBeLessThan(5 * MINUTE_MS);
    await page.clock.setSystemTime(Date.now());
    expect(problems).toEqual([]);
  });
});
