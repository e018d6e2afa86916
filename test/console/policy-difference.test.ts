import type { Page } from 'playwright-core';
import { describe, expect } from 'vitest';
import { done, makeKey, makeUser } from '../server/support/client.ts';
import { chooseOption } from './support/browser.ts';
import { chooseAction } from './support/policies.ts';
import { type ConsoleStand, it } from './support/stand.ts';

let stand: ConsoleStand;
let http: string;
it.beforeAll(async ({ stand: shared }) => {
  stand = shared;
  http = stand.server.http;
});

const manage = (method: string, path: string, body?: object, tenant?: string) =>
  done(http, method, path, { token: stand.token, body, tenant });

/** The part of an editor or dialog that lists the requests of a change. */
const newlyDenied = (page: Page) => page.getByRole('list', { name: 'Newly denied' });
const newlyAllowed = (page: Page) => page.getByRole('list', { name: 'Newly allowed' });

/** A tenant with two developers, of whom one has a key, and an auditor. None of them has sent a request. */
async function silentTenant(id: string): Promise<void> {
  await manage('POST', '/v1/iam/tenants', { id, name: id });
  const user = await makeUser(http, stand.token, { roles: ['developer'], tenant: id });
  await makeUser(http, stand.token, { roles: ['developer'], tenant: id });
  await makeUser(http, stand.token, { roles: ['auditor'], tenant: id });
  await makeKey(http, stand.token, { tenant: id, owner: user.id, scopes: ['chat:*'] });
}

describe('the difference of a policy', () => {
  it('names everyone that a deny touches in a tenant without a recorded decision, with a request to explain', async () => {
    await silentTenant('silent');
    const { page, context, problems } = await stand.asAdmin({ path: '/console/new-policy?tenant=silent' });
    await page.getByText('Change something: the requests').waitFor();
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill('no-llama');
    await chooseAction(page, 'chat:write');
    await page.getByRole('button', { name: '*, Remove *', exact: true }).click();
    await page.getByText('The draft cannot be compared yet. Name at least one resource').waitFor();
    const resources = page.getByRole('textbox', { name: 'Resources' });
    await resources.fill('models/llama-*');
    await resources.press('Enter');
    await expect
      .poll(() => newlyDenied(page).textContent())
      .toMatch(/developer may no longer chat:write on models llama-\*/);
    await page.getByText('2 users and 1 key are touched.').waitFor();
    await page.getByRole('status').filter({ hasText: 'Changes requests of 2 users and 1 key.' }).waitFor();
    const opened = context.waitForEvent('page');
    await newlyDenied(page).getByRole('link', { name: 'Explain one of them' }).first().click();
    const explained = await opened;
    const verdict = explained.getByRole('status').filter({ hasText: 'decided at step' });
    await expect.poll(() => verdict.textContent()).toContain('Allowed.');
    await explained.close();
    expect(problems).toEqual([]);
  });

  it('shows the hours as a week, and newly allowed requests after a change of an existing policy', async () => {
    await silentTenant('clocked');
    const rule = { effect: 'deny', actions: ['chat:write'], resources: ['*'] };
    const conditions = {
      weekly_hours: { in: ['Mon-Fri 18:00-20:00'] },
      ip_address: { in: ['10.0.0.0/8'] },
      timezone: 'Europe/Berlin',
    };
    await manage('POST', '/v1/iam/policies', { name: 'evenings', ...rule }, 'clocked');
    const { page, problems } = await stand.asAdmin({ path: '/console/policies/evenings?tenant=clocked' });
    await page.getByRole('button', { name: 'Hours of the week' }).click();
    await newlyAllowed(page).getByText('developer').first().waitFor();
    await page.getByRole('button', { name: 'Discard' }).click();
    await page.getByText('Change something: the requests').waitFor();

    await manage('PUT', '/v1/iam/policies/evenings', { conditions, enabled: false }, 'clocked');
    await page.reload();
    await page.getByText('In force', { exact: true }).click();
    await expect
      .poll(() => newlyDenied(page).textContent())
      .toMatch(
        /developer may no longer chat:write.*from 10\.0\.0\.0\/8 or an unknown address, Mon-Fri 18:00-20:00 Europe\/Berlin/,
      );
    await page.getByRole('img', { name: 'Lit hours: Mon-Fri 18:00-20:00' }).waitFor();
    expect(problems).toEqual([]);
  });

  it('is compared once at a time, again after each change, and never shown for another draft', async () => {
    await silentTenant('hasty');
    await manage(
      'POST',
      '/v1/iam/policies',
      { name: 'hasty', effect: 'deny', actions: ['chat:read'], resources: ['*'] },
      'hasty',
    );
    const { page, problems } = await stand.asAdmin({ path: '/console/policies/hasty?tenant=hasty' });
    const underWay = new Set<object>();
    let most = 0;
    page.on('request', (request) => {
      if (!request.url().endsWith('/explain/difference')) return;
      underWay.add(request);
      most = Math.max(most, underWay.size);
    });
    page.on('requestfinished', (request) => underWay.delete(request));
    page.on('requestfailed', (request) => underWay.delete(request));
    await chooseAction(page, 'chat:write');
    await page.getByRole('button', { name: 'Remove chat:write' }).waitFor();
    await newlyDenied(page).getByText('chat:write').first().waitFor();
    await chooseAction(page, 'embeddings:write');
    await expect.poll(() => newlyDenied(page).count()).toBe(0);
    await newlyDenied(page).getByText('embeddings:write').first().waitFor();
    await page.getByRole('button', { name: 'Remove chat:write' }).click();
    await expect.poll(() => newlyDenied(page).getByText('chat:write').count()).toBe(0);
    await newlyDenied(page).getByText('embeddings:write').first().waitFor();
    expect(most).toBe(1);
    expect(problems).toEqual([]);
  });

  it('says that it is not known when the server does not compare, and compares on request', async () => {
    await silentTenant('unknown');
    const { page, problems } = await stand.asAdmin({ path: '/console/new-policy?tenant=unknown' });
    await page.route('**/v1/iam/explain/difference', (route) => route.abort());
    await chooseAction(page, 'chat:write');
    await page.getByText('Nothing is known about its effect.').waitFor();
    await page.getByRole('status').filter({ hasText: 'Its effect is not known.' }).waitFor();
    expect(await page.getByText('No request would be decided differently.').count()).toBe(0);
    await page.unroute('**/v1/iam/explain/difference');
    await page.getByRole('button', { name: 'Try again' }).click();
    await newlyDenied(page).getByText('chat:write').first().waitFor();
    expect(problems.filter((problem) => !problem.includes('ERR_FAILED'))).toEqual([]);
  });

  it('says that it is not complete, and why, when the server passed a bound', async () => {
    await silentTenant('bounded');
    const { page, problems } = await stand.asAdmin({ path: '/console/new-policy?tenant=bounded' });
    // The answer of the server, as if it had passed a bound: a change that passes one takes seconds to compare.
    await page.route('**/v1/iam/explain/difference', async (route) => {
      const response = await route.fetch();
      const known = { ...(await response.json()), complete: false, reason: 'The globs are too many.' };
      await route.fulfill({ response, json: known });
    });
    await chooseAction(page, 'chat:write');
    await page.getByText('This list is not complete, and there may be more. The globs are too many.').waitFor();
    await page.getByRole('status').filter({ hasText: 'Its effect is not known in full.' }).waitFor();
    await newlyDenied(page).getByText('chat:write').first().waitFor();
    expect(problems).toEqual([]);
  });

  it('is shown before the policy is deleted', async () => {
    await silentTenant('deleted');
    await manage(
      'POST',
      '/v1/iam/policies',
      { name: 'no-chat', effect: 'deny', actions: ['chat:write'], resources: ['*'] },
      'deleted',
    );
    const { page, problems } = await stand.asAdmin({ path: '/console/policies/no-chat?tenant=deleted' });
    await page.getByRole('button', { name: 'Delete policy' }).click();
    const dialog = page.getByRole('alertdialog');
    await dialog.getByText('developer may now chat:write').first().waitFor();
    await dialog.getByText('2 users and 1 key are touched.').waitFor();
    expect(problems).toEqual([]);
  });
});

describe('the difference of a role', () => {
  it('names its holders, whether it is changed or deleted', async () => {
    await manage('POST', '/v1/iam/tenants', { id: 'narrowed-role', name: 'Narrowed role' });
    await manage(
      'POST',
      '/v1/iam/roles',
      { name: 'readers', permissions: ['chat:read', 'models:read'] },
      'narrowed-role',
    );
    await makeUser(http, stand.token, { roles: ['readers'], tenant: 'narrowed-role' });
    await makeUser(http, stand.token, { roles: ['auditor'], tenant: 'narrowed-role' });
    const { page, problems } = await stand.asAdmin({ path: '/console/roles/readers?tenant=narrowed-role' });
    await page.getByRole('button', { name: 'Remove models:read' }).click();
    await newlyDenied(page).getByText('readers may no longer models:read').first().waitFor();
    await page.getByText('1 user and 0 keys are touched.').waitFor();
    await page.getByRole('textbox', { name: 'Description' }).fill('Changes no decision');
    await newlyDenied(page).getByText('readers may no longer models:read').first().waitFor();
    await page.getByRole('button', { name: 'Delete role' }).click();
    const dialog = page.getByRole('alertdialog');
    await dialog.getByText('readers may no longer chat:read').first().waitFor();
    expect(problems).toEqual([]);
  });
});

describe('a request to try', () => {
  it('is decided as things are and with the draft, and saves nothing', async () => {
    // A policy of another test in the same tenant would decide as well.
    const tenant = 'tried-request';
    await manage('POST', '/v1/iam/tenants', { id: tenant, name: 'Tried request' });
    const { id: owner } = await makeUser(http, stand.token, { roles: ['developer'], tenant });
    await manage('PUT', `/v1/iam/users/${owner}`, { name: 'Jonas Brandt' }, tenant);
    const key = { description: 'nightly chat', scopes: ['chat:*', 'embeddings:*'], user_id: owner, expires_in_days: 9 };
    await manage('POST', '/v1/iam/api-keys', key, tenant);
    const stored = { effect: 'deny', actions: ['embeddings:*'], resources: ['*'] };
    await manage('POST', '/v1/iam/policies', { name: 'tried', ...stored }, tenant);
    const { page, problems } = await stand.asAdmin({ path: `/console/policies/tried?tenant=${tenant}` });
    await page.getByRole('button', { name: 'Remove embeddings:*' }).click();
    await chooseAction(page, 'chat:*');
    await page.getByRole('button', { name: 'Choose a request' }).click();
    await page.getByRole('radio', { name: 'API key' }).click();
    await page.getByRole('combobox', { name: 'API key' }).fill('nightly chat');
    await chooseOption(page.getByRole('option', { name: /^nightly chat/ }));
    await page.getByRole('button', { name: 'Try it' }).click();
    const outcomes = page.getByRole('listitem').filter({ hasText: /As things are|With this draft/ });
    await outcomes.nth(1).waitFor();
    expect(await outcomes.allTextContents()).toEqual([
      'As things areallowallowed',
      'With this draftdenied_by_policy by trieddenied',
    ]);
    await page.getByRole('textbox', { name: 'Model' }).fill('gpt-4.1');
    await page.getByText('The draft or the request changed since.').waitFor();
    const unchanged = await manage('GET', '/v1/iam/policies/tried', undefined, tenant);
    expect(unchanged.body['actions']).toEqual(stored.actions);
    expect(problems).toEqual([]);
  });
});
