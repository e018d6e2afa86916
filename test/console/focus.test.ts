/** The focus of a user of the keyboard, when the control that has it goes away. */

import type { Locator, Page } from 'playwright-core';
import { describe, expect } from 'vitest';
import { done, makeKey, makeUser } from '../server/support/client.ts';
import { visit } from './support/browser.ts';
import { expectFocus } from './support/keyboard.ts';
import { type ConsoleStand, it } from './support/stand.ts';

const TENANT = 'kept-focus';

let stand: ConsoleStand;
it.beforeAll(async ({ stand: shared }) => {
  stand = shared;
  await done(stand.server.http, 'POST', '/v1/iam/tenants', {
    token: stand.token,
    body: { id: TENANT, name: 'Kept focus' },
  });
});

const opened = (path: string) => stand.asAdmin({ path: `/console/${path}?tenant=${TENANT}` });
const makeRole = (name: string) =>
  done(stand.server.http, 'POST', '/v1/iam/roles', {
    token: stand.token,
    tenant: TENANT,
    body: { name, description: '', permissions: ['chat:read'] },
  });
const pressAt = async (control: Locator): Promise<void> => {
  await control.focus();
  await control.page().keyboard.press('Enter');
};
const content = (page: Page) => page.locator('main');
const answer = (page: Page, name: string | RegExp) =>
  pressAt(page.getByRole('alertdialog').getByRole('button', { name }));

describe('the focus', () => {
  it('moves into the page that a row opens, and into the list after the resource of the page is deleted', async () => {
    await makeRole('opened-by-keys');
    const { page, problems } = await opened('roles');
    await pressAt(page.getByRole('row', { name: 'opened-by-keys' }));
    await page.getByRole('heading', { level: 1, name: 'opened-by-keys' }).waitFor();
    await expectFocus(content(page));
    await page.keyboard.press('Tab');
    await expectFocus(content(page).getByRole('link', { name: 'Roles' }));
    await pressAt(page.getByRole('button', { name: 'Delete role' }));
    await page.getByRole('alertdialog').getByRole('textbox').fill('opened-by-keys');
    await answer(page, 'Delete role');
    await page.getByRole('heading', { level: 1, name: 'Roles' }).waitFor();
    await expectFocus(content(page));
    expect(problems).toEqual([]);
  });

  it('moves to the filter beside the list when the button that shows all rows goes away', async () => {
    const { page, problems } = await opened('roles');
    await visit(page, `/console/roles?tenant=${TENANT}&q=no-role-has-this`);
    await pressAt(page.getByRole('button', { name: 'Show all' }));
    await page.getByRole('row', { name: 'developer' }).waitFor();
    await expectFocus(page.getByRole('checkbox', { name: 'Needs care' }));
    expect(problems).toEqual([]);
  });

  it('stays among the rows after the selected ones are revoked, and on the button that a confirmed question was about', async () => {
    for (let n = 0; n < 2; n++) await makeKey(stand.server.http, stand.token, { tenant: TENANT });
    const user = await makeUser(stand.server.http, stand.token, { tenant: TENANT, roles: ['developer'] });
    const { page, problems } = await opened('keys');
    await page.getByRole('row', { name: 'made by a test' }).first().focus();
    await page.keyboard.press('Space');
    await pressAt(page.getByRole('button', { name: 'Revoke 1 key' }));
    await answer(page, 'Revoke 1 key');
    await page.getByRole('alertdialog').waitFor({ state: 'detached' });
    await expectFocus(page.getByRole('grid').locator('*'));
    await visit(page, `/console/users/${user.id}?tenant=${TENANT}`);
    await pressAt(page.getByRole('button', { name: 'Deactivate' }));
    await answer(page, 'Deactivate');
    await expectFocus(page.getByRole('button', { name: 'Activate', exact: true }));
    expect(problems).toEqual([]);
  });
});
