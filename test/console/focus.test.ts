/** What a keyboard and a screen reader need: the focus stays near the place where it was, also if its element goes. */

import { describe, expect } from 'vitest';
import { done } from '../server/support/client.ts';
import { expectFocus } from './support/keyboard.ts';
import { type ConsoleStand, it } from './support/stand.ts';

const TENANT = 'focus';

let stand: ConsoleStand;
it.beforeAll(async ({ stand: shared }) => {
  stand = shared;
  await done(stand.server.http, 'POST', '/v1/iam/tenants', { token: stand.token, body: { id: TENANT, name: 'Focus' } });
});

describe('the focus', () => {
  it('is in the content after a button that shows all rows has gone', async () => {
    const { page, problems } = await stand.asAdmin({ path: `/console/roles?tenant=${TENANT}&q=no-such-role` });
    await page.getByRole('button', { name: 'Show all', exact: true }).press('Enter');
    await page.getByRole('row', { name: 'developer' }).waitFor();
    await expectFocus(page.getByRole('main'));
    expect(problems).toEqual([]);
  });

  it('is in the content of the list after a role is deleted on its page', async () => {
    const role = { name: 'soon-deleted', description: '', permissions: ['chat:read'] };
    await done(stand.server.http, 'POST', '/v1/iam/roles', { token: stand.token, tenant: TENANT, body: role });
    const { page, problems } = await stand.asAdmin({ path: `/console/roles/${role.name}?tenant=${TENANT}` });
    await page.getByRole('button', { name: 'Delete role' }).press('Enter');
    const question = page.getByRole('alertdialog');
    await question.getByRole('textbox').fill(role.name);
    await question.getByRole('button', { name: 'Delete role' }).press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Roles' }).waitFor();
    await expectFocus(page.getByRole('main'));
    expect(problems).toEqual([]);
  });
});
