import type { Locator, Page } from 'playwright-core';
import { describe, expect } from 'vitest';
import { done } from '../server/support/client.ts';
import { chooseOption, faultsInEveryLook, visit } from './support/browser.ts';
import { shoot } from './support/policies.ts';
import { type ConsoleStand, it } from './support/stand.ts';

const TENANT = 'console-webhooks';
/** A name that no resolver has (RFC 6761). */
const URL_OF_NONE = 'https://hooks.invalid/postern';

let stand: ConsoleStand;
it.beforeAll(async ({ stand: shared }) => {
  stand = shared;
  await done(stand.server.http, 'POST', '/v1/iam/tenants', {
    token: stand.token,
    body: { id: TENANT, name: 'Webhooks' },
  });
});

const manage = async (method: string, path: string, body?: object) =>
  (await done(stand.server.http, method, path, { token: stand.token, tenant: TENANT, body })).body;
const open = (path: string) =>
  stand.asAdmin({ path: `/console/${path}${path.includes('?') ? '&' : '?'}tenant=${TENANT}` });
const field = (place: Page | Locator, name: string) => place.getByRole('textbox', { name });

describe('a webhook', () => {
  it('is added with a secret that is shown once, tested, replayed, rotated, disabled and deleted', async () => {
    const { page, problems } = await open('webhooks');
    await page.getByText('No webhook yet').waitFor();
    await page.getByRole('button', { name: 'Add a webhook' }).click();
    const drawer = page.getByRole('dialog');
    await field(drawer, 'Address').fill(URL_OF_NONE);
    await drawer.getByText('Choose at least one event.').first().waitFor();
    await chooseOption(drawer.getByRole('option', { name: /^budget\.\*/ }));
    await drawer.getByRole('searchbox', { name: 'Search: Events' }).fill('audit.role.update');
    await chooseOption(drawer.getByRole('option', { name: /^audit\.role\.update/ }));
    await shoot(page, 'new webhook');
    await drawer.getByRole('button', { name: 'Add webhook' }).click();
    const dialog = page.getByRole('alertdialog');
    await dialog.getByText('This is the only time').waitFor();
    const secret = await dialog.getByText(/^whsec_/).textContent();
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/=]{40,}$/);
    await shoot(page, 'webhook secret');
    await page.keyboard.press('Escape');
    await dialog.getByRole('button', { name: 'I have saved it' }).click();
    await page.getByRole('heading', { level: 1, name: URL_OF_NONE }).waitFor();
    expect(await page.content()).not.toContain(secret);
    const id = new URL(page.url()).pathname.split('/').at(-1) ?? '';
    expect(await manage('GET', `/v1/iam/webhooks/${id}`)).toMatchObject({
      ...{ url: URL_OF_NONE, enabled: true, events: ['budget.*', 'audit.role.update'] },
    });

    await page.getByText('Nothing was sent yet').waitFor();
    await page.getByRole('button', { name: 'Send a test event' }).click();
    await dialog.getByText('The test event did not arrive.').waitFor();
    await dialog.getByRole('button', { name: 'Close' }).click();
    const row = page.getByRole('row', { name: /webhook\.test/ });
    await row.filter({ hasText: 'no answer' }).click();
    const replayed = page.waitForResponse((response) => response.url().endsWith('/replay'));
    await drawer.getByRole('button', { name: 'Replay' }).click();
    expect((await replayed).ok()).toBe(true);
    await page.keyboard.press('Escape');

    await page.getByRole('button', { name: 'More actions' }).click();
    await page.getByRole('menuitem', { name: 'rotate' }).click();
    await dialog.getByRole('button', { name: 'Rotate secret' }).click();
    await dialog.getByText('The former secret signs as well for 24 hours.').waitFor();
    expect(await dialog.getByText(/^whsec_/).textContent()).not.toBe(secret);
    await dialog.getByRole('button', { name: 'I have saved it' }).click();

    await page.getByRole('tab', { name: 'Settings' }).click();
    await field(page, 'Description').fill('Of the finance team');
    await page.getByRole('button', { name: 'Save webhook' }).click();
    await page.getByText('Saved. Events from now on go by this.').waitFor();
    await page.getByRole('button', { name: 'Disable' }).click();
    await dialog.getByRole('button', { name: 'Disable' }).click();
    await page.getByRole('button', { name: 'Enable' }).waitFor();
    expect(await manage('GET', `/v1/iam/webhooks/${id}`)).toMatchObject({
      ...{ enabled: false, description: 'Of the finance team' },
    });

    await page.getByRole('button', { name: 'More actions' }).click();
    await page.getByRole('menuitem', { name: 'delete' }).click();
    await field(dialog, 'Type delete to confirm').fill('delete');
    await dialog.getByRole('button', { name: 'Delete webhook' }).click();
    await page.getByText('No webhook yet').waitFor();
    expect(await manage('GET', '/v1/iam/webhooks')).toMatchObject({ data: [] });
    expect(problems).toEqual([]);
  });
});

describe('the screens of webhooks', () => {
  it('have no serious accessibility fault and fit the screen in both themes, on desktops and phones', async () => {
    const { id } = await manage('POST', '/v1/iam/webhooks', { url: URL_OF_NONE, events: ['*'] });
    await manage('POST', `/v1/iam/webhooks/${id}/test`);
    const { data } = Object(await manage('GET', `/v1/iam/webhooks/${id}/deliveries`));
    const { page, problems } = await open('webhooks');
    const detail = `webhooks/${id}`;
    for (const path of [
      'webhooks',
      'webhooks?add=true',
      detail,
      `${detail}?tab=settings`,
      `${detail}?delivery=${data[0].id}`,
    ]) {
      await visit(page, `/console/${path}${path.includes('?') ? '&' : '?'}tenant=${TENANT}`);
      expect(await faultsInEveryLook(page, `look ${path.replaceAll(/(whk|dlv)_\w+/g, '$1')}`)).toEqual([]);
    }
    expect(problems).toEqual([]);
  });
});
