import { describe, expect } from 'vitest';
import { call, done, type MadeUser, makeKey, makeUser, tryLogin } from '../server/support/client.ts';
import { becomes } from '../server/support/eventually.ts';
import { send } from '../support/http.ts';
import { accessibilityFaults, applyLook, faultsInEveryLook, PHONE, type Tab } from './support/browser.ts';
import { type ConsoleStand, enter, it } from './support/stand.ts';

const TENANT = 'halden';

let stand: ConsoleStand;
let http: string;
let key: string;
const manage = (method: string, path: string, body?: object) =>
  done(http, method, path, { token: stand.token, tenant: TENANT, body });

it.beforeAll(async ({ startConsole }) => {
  stand = await startConsole();
  http = stand.server.http;
  const body = {
    id: TENANT,
    name: 'Halden Bank',
    quotas: { monthly_tokens: 50_000 },
    settings: { timezone: 'Europe/Berlin' },
  };
  await done(http, 'POST', '/v1/iam/tenants', { token: stand.token, body });
  await manage('POST', '/v1/iam/policies', {
    name: 'no-secret-models',
    effect: 'deny',
    actions: ['*'],
    resources: ['models/*secret*'],
    applies_to: 'everyone',
  });
  await manage('POST', '/v1/iam/policies', {
    name: 'allow-batch',
    effect: 'allow',
    actions: ['embeddings:*'],
    resources: ['*'],
    applies_to: 'roles',
    attached_roles: [],
  });
  await manage('POST', '/v1/iam/roles', { name: 'analyst-eu', permissions: ['rag:querry'] });
  const made = await manage('POST', '/v1/iam/api-keys', {
    name: 'checkout',
    description: 'The shop',
    scopes: ['chat:write'],
    expires_in_days: 6,
  });
  key = String(made.body['key']);
  const chat = (model: string) =>
    ask('POST', '/v1/chat/completions', { model, messages: [{ role: 'user', content: 'Hello' }] });
  for (let i = 0; i < 5; i++) expect(await chat('llama-3')).toBe(200);
  for (let i = 0; i < 3; i++) expect(await chat('gpt-secret')).toBe(403);
  expect(await ask('GET', '/v1/models')).toBe(403);
  await becomes(
    'the denials counted',
    4,
    async () => Object((await manage('GET', '/v1/iam/decisions')).body['total']).deny,
  );
  await becomes('the denials recorded', 4, async () => {
    const { data } = (await manage('GET', '/v1/iam/decisions/recent?outcome=deny')).body;
    return Array.isArray(data) ? data.length : 0;
  });
});

/** Through Envoy. @returns the status */
async function ask(method: string, path: string, body?: object): Promise<number> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  return (
    await send(stand.edge.url, { method, path, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) })
  ).status;
}

const opened = () => stand.asAdmin({ path: `/console/?tenant=${TENANT}` });

function rowsOf({ page }: Tab, name: string) {
  return page.getByRole('table').filter({ hasText: name }).locator('tbody tr');
}

describe('the overview', () => {
  it('says how many requests passed Envoy and why the others were denied, in a sentence, a chart and tables', async () => {
    const tab = await opened();
    const { page, problems } = tab;
    await expect
      .poll(() => page.locator('p').first().textContent())
      .toBe('9 requests in the last 24 hours. 55.5\u00a0% passed; 4 were denied, most often: Denied by policy.');
    const why = rowsOf(tab, 'Why denied');
    expect(await why.allTextContents()).toEqual(['Denied by policy375 %', 'Permission not given125 %']);
    await page.getByRole('img', { name: /Allowed and denied requests/ }).waitFor();
    await page.getByText('Numbers by the hour').click();
    const numbers = rowsOf(tab, 'Allowed');
    expect(await numbers.count()).toBe(24);
    const cells = await numbers.locator('td').allTextContents();
    const sums = [0, 1].map((column) =>
      cells.filter((_, i) => i % 2 === column).reduce((sum, text) => sum + Number(text), 0),
    );
    expect(sums).toEqual([5, 4]);
    expect(problems).toEqual([]);
  });

  it('shows seven days too, and keeps in the address which', async () => {
    const { page, problems } = await opened();
    await page.getByRole('radio', { name: '7 days' }).click();
    await page.getByRole('heading', { name: 'Requests per day' }).waitFor();
    await expect.poll(() => new URL(page.url()).searchParams.get('span')).toBe('7d');
    await expect.poll(() => page.locator('p').first().textContent()).toContain('in the last 7 days');
    await page.getByText('Numbers by the day').click();
    expect(await page.getByRole('table').first().locator('tbody tr').count()).toBe(7);
    expect(problems).toEqual([]);
  });

  it('lists the latest denials, narrows them to a reason, and leads to the explanation of one', async () => {
    const { page, problems } = await opened();
    const links = page.getByRole('link', { name: /^Explain req_/ });
    await expect.poll(() => links.count()).toBe(4);
    await page.getByRole('button', { name: 'Permission not given' }).click();
    await page.getByRole('heading', { name: 'Latest denials: Permission not given' }).waitFor();
    await expect.poll(() => links.count()).toBe(1);
    await links.first().click();
    await page.getByRole('heading', { level: 1, name: 'Explain access' }).waitFor();
    await page.getByText('decided at step 13 of 18').waitFor();
    expect(problems).toEqual([]);
  });

  it('shows the tokens used beside the quota, with the date of the reset', async () => {
    const { page, problems } = await opened();
    const limits = await manage('GET', `/v1/iam/tenants/${TENANT}/limits`);
    expect(limits.body['monthly_tokens']).toMatchObject({ limit: 50_000 });
    const section = page.locator('section').filter({ hasText: 'Tokens in' });
    await expect.poll(() => section.textContent()).toMatch(/of 50K.*left.*It resets on 1 \w+, 00:00, in \d+/);
    expect(problems).toEqual([]);
  });

  it('names the keys that expire soon, the first to expire first, and the last changes without logins', async () => {
    await manage('POST', '/v1/iam/api-keys', {
      name: 'sooner',
      description: 'Another',
      scopes: ['chat:write'],
      expires_in_days: 2,
    });
    const { page, problems } = await opened();
    const expiring = page.locator('section').filter({ hasText: 'Keys expiring soon' }).getByRole('listitem');
    await expect.poll(() => expiring.count()).toBe(2);
    expect(await expiring.first().textContent()).toMatch(/^soonerpsk_.+never usedin \d+ (day|hr)/);
    expect(await expiring.last().textContent()).toMatch(/^checkout.+used .+in \d days$/);
    const changes = page.locator('section').filter({ hasText: 'Last changes' }).getByRole('listitem');
    await expect.poll(() => changes.first().textContent()).toMatch(/Administrator created key sooner$/);
    expect((await changes.allTextContents()).filter((text) => text.includes('login'))).toEqual([]);
    expect(problems).toEqual([]);
  });
});

describe('what needs care', () => {
  const care = ({ page }: Tab) =>
    page.locator('section').filter({ has: page.getByRole('heading', { name: 'Needs care' }) });

  it('lists a policy that applies to no principal and a pattern that matches no permission, each with its link', async () => {
    const tab = await opened();
    const entries = care(tab).getByRole('listitem');
    await expect
      .poll(() => entries.filter({ hasText: 'allow-batch' }).textContent())
      .toContain('applies to no request');
    expect(await entries.filter({ hasText: 'rag:querry' }).textContent()).toContain('Nearest: rag:query');
    await tab.page.getByRole('link', { name: 'Open analyst-eu' }).click();
    await tab.page.getByRole('heading', { level: 1, name: 'analyst-eu' }).waitFor();
    expect(tab.problems).toEqual([]);
  });

  it('is a locked account, which is unlocked there and then logs in', async () => {
    const user: MadeUser = await makeUser(http, stand.token, { tenant: TENANT, roles: ['developer'] });
    for (let i = 0; i < 10; i++) await tryLogin(http, { ...user, password: 'not the password' });
    expect((await tryLogin(http, user)).status).toBe(429);
    const tab = await opened();
    const locked = care(tab).getByRole('listitem').filter({ hasText: 'is locked until' });
    await locked.getByRole('button', { name: /^Unlock/ }).click();
    await expect.poll(() => locked.count()).toBe(0);
    expect((await tryLogin(http, user)).status).toBe(200);
    expect(tab.problems).toEqual([]);
  });
});

describe('a user without every permission', () => {
  it('sees the needed permission in each closed section, and the other sections', async () => {
    const user = await makeUser(http, stand.token, { tenant: TENANT, roles: ['auditor'] });
    expect((await call(http, 'GET', '/v1/iam/users', { token: await tokenOf(user) })).status).toBe(403);
    const tab = await stand.open();
    await enter(tab.page, user);
    await tab.page
      .getByText(
        'Entries that need admin:users, admin:policies, admin:roles, and admin:keys are not shown: none of your roles gives them.',
      )
      .waitFor();
    // The tenant has keys that expire soon, which this user does not see.
    await tab.page.getByText('None of your own keys expires within 14 days.').waitFor();
    await tab.page.getByRole('heading', { name: 'Requests per hour' }).waitFor();
    expect(await accessibilityFaults(tab.page)).toEqual([]);
    expect(tab.problems).toEqual([]);
  });

  it('sees one message in place of all numbers', async () => {
    const user = await makeUser(http, stand.token, { tenant: TENANT, roles: ['developer'] });
    const tab = await stand.open();
    await enter(tab.page, user);
    await tab.page.getByText('Needs usage:read, which none of your roles gives.').first().waitFor();
    await tab.page.getByText('Needs audit:read, which none of your roles gives.').first().waitFor();
    expect(await accessibilityFaults(tab.page)).toEqual([]);
    await tab.page.getByRole('link', { name: 'API keys' }).click();
    await tab.page.getByText('You have no API key yet').waitFor();
    expect(tab.problems).toEqual([]);
  });
});

async function tokenOf(user: MadeUser): Promise<string> {
  return String((await tryLogin(http, user)).body['access_token']);
}

describe('a tenant without requests', () => {
  it('says once that there are none, and the next step: the first key, or a request with one of its keys', async () => {
    await done(http, 'POST', '/v1/iam/tenants', { token: stand.token, body: { id: 'quiet', name: 'Quiet' } });
    const { page, problems } = await stand.asAdmin({ path: '/console/?tenant=quiet' });
    await page.getByText('No request was decided in the last 24 hours').waitFor();
    expect(await page.getByText('0 requests').count()).toBe(0);
    await page.getByText('Nothing needs care.').waitFor();
    await page.getByRole('link', { name: 'Create an API key' }).click();
    await page.getByText('There is no API key yet').waitFor();
    await page.getByRole('dialog', { name: 'Create key' }).waitFor();
    await makeKey(http, stand.token, { tenant: 'quiet', scopes: ['chat:*'] });
    await page.goto('/console/?tenant=quiet');
    await page.getByRole('link', { name: 'Connect a client' }).last().waitFor();
    await page.getByText('A request with one of the active API keys shows here').waitFor();
    expect(await page.getByRole('link', { name: 'Create an API key' }).count()).toBe(0);
    const auditor = await makeUser(http, stand.token, { tenant: 'quiet', roles: ['auditor'] });
    const ofAuditor = await stand.signIn({ person: auditor });
    await ofAuditor.page.getByText('You have no active API key.').waitFor();
    await page.getByRole('link', { name: 'Look at another tenant' }).click();
    await expect.poll(() => new URL(page.url()).pathname).toBe('/console/tenants');
    expect(problems).toEqual([]);
  });

  it('says on each screen what is missing', async () => {
    await done(http, 'POST', '/v1/iam/tenants', { token: stand.token, body: { id: 'bare', name: 'Bare' } });
    const { page, problems } = await stand.asAdmin({ path: '/console/keys?tenant=bare' });
    await page.getByText('There is no API key yet').waitFor();
    for (const [screen, says] of [
      ['Users', 'No users yet'],
      ['Policies', 'There is no policy yet'],
      ['Issuers', 'No issuer is accepted yet'],
      ['Trial', 'No check in shadow mode yet'],
      ['Usage', 'No day has usage.'],
      ['Spend', 'Nothing was used in this time'],
      ['Budgets', 'No budget yet'],
      ['Webhooks', 'No webhook yet'],
    ] as const) {
      await page.getByRole('navigation').getByRole('link', { name: screen, exact: true }).click();
      await page.getByText(says).waitFor();
    }
    expect(problems).toEqual([]);
  });
});

describe('the look of the overview', () => {
  it('has no serious accessibility fault and nothing wider than the screen in both themes, on desktops and phones', async () => {
    const { page, problems } = await opened();
    await page.getByRole('heading', { name: 'Requests per hour' }).waitFor();
    await page.getByText('allow-batch').first().waitFor();
    await applyLook(page, PHONE);
    await page.getByText('Numbers by the hour').click();
    expect(await faultsInEveryLook(page)).toEqual([]);
    expect(problems).toEqual([]);
  });
});
