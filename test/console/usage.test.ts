import { describe, expect } from 'vitest';
import { done } from '../server/support/client.ts';
import { becomes } from '../server/support/eventually.ts';
import { send } from '../support/http.ts';
import { faultsInEveryLook, PHONE, visit } from './support/browser.ts';
import { makeSpender, UNPRICED_MODEL } from './support/spend.ts';
import { type ConsoleStand, it } from './support/stand.ts';

const TENANT = 'halden';
/** It uses more than the other, and its id and name come later. */
const SPENDER = 'spender';

let stand: ConsoleStand;
const manage = async (method: string, path: string, body?: object) =>
  (await done(stand.server.http, method, path, { token: stand.token, tenant: TENANT, body })).body;

it.beforeAll(async ({ stand: shared }) => {
  stand = shared;
  await done(stand.server.http, 'POST', '/v1/iam/tenants', {
    token: stand.token,
    body: {
      id: TENANT,
      name: 'Halden',
      settings: { max_tokens_per_request: 500 },
      quotas: { monthly_tokens: 1_000_000 },
    },
  });
  const { key } = await manage('POST', '/v1/iam/api-keys', {
    description: 'The shop',
    scopes: ['chat:*'],
    expires_in_days: 3,
  });
  const ask = async (maxTokens: number): Promise<number> => {
    const { status } = await send(stand.edge.url, {
      method: 'POST',
      path: '/v1/chat/completions',
      headers: { authorization: `Bearer ${String(key)}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'llama-3', max_tokens: maxTokens, messages: [{ role: 'user', content: 'Hello' }] }),
    });
    return status;
  };
  await makeSpender(stand, SPENDER);
  for (let i = 0; i < 3; i++) expect(await ask(20)).toBe(200);
  for (let i = 0; i < 2; i++) expect(await ask(600)).toBe(400);
  await becomes(
    'the requests are booked',
    3,
    async () => Object((await manage('GET', '/v1/iam/usage'))['total']).requests,
  );
  await becomes(
    'the denials are counted',
    2,
    async () => Object((await manage('GET', '/v1/iam/decisions'))['total']).deny,
  );
});

const path = `/console/usage?tenant=${TENANT}`;

describe('the screen of usage', () => {
  it('shows the numbers of the API by model, key, user and day, and saves what it shows as CSV', async () => {
    const { total } = Object(await manage('GET', '/v1/iam/usage'));
    const { page, problems } = await stand.asAdmin({ path });
    const tokens = Number(total.total_tokens).toLocaleString('en');
    await page.getByText(`3 requests, ${tokens} tokens`).waitFor();
    await page.getByText('Batches, files and fine-tuning do not count.').waitFor();
    await expect.poll(() => page.getByRole('row', { name: /llama-3/ }).textContent()).toContain(tokens);
    await page.getByRole('radio', { name: 'Key' }).click();
    await expect.poll(() => page.getByRole('row', { name: /The shop/ }).textContent()).toContain(tokens);
    await page.getByRole('radio', { name: 'Day' }).click();
    const today = new Date().toISOString().slice(0, 10);
    await expect.poll(() => page.getByRole('row', { name: new RegExp(today) }).textContent()).toContain(tokens);
    const saving = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Export as CSV' }).click();
    expect((await saving).suggestedFilename()).toMatch(/^usage-halden-[\d-]{21}-by-day\.csv$/);
    expect(problems).toEqual([]);
  });

  it('draws tokens and requests of each day, and says the number of each', async () => {
    const { total } = Object(await manage('GET', '/v1/iam/usage'));
    const { page, problems } = await stand.asAdmin({ path });
    const today = new Date().toISOString().slice(0, 10);
    const bar = page.getByRole('img', { name: /of each day/ }).locator('title', { hasText: today });
    await expect.poll(() => bar.textContent()).toBe(`${today}: ${Number(total.total_tokens).toLocaleString('en')}`);
    await page.getByRole('radio', { name: 'Requests', exact: true }).click();
    await expect.poll(() => bar.textContent()).toBe(`${today}: 3`);
    await page.getByRole('button', { name: 'The month before' }).click();
    await page.getByText('Nothing was used in this time').waitFor();
    expect(problems).toEqual([]);
  });

  it("of one key is drawn in the key's drawer, with the numbers of the last 30 days", async () => {
    const { total, data } = Object(await manage('GET', '/v1/iam/usage?group_by=key'));
    const { page, problems } = await stand.asAdmin({ path: `/console/keys?tenant=${TENANT}&open=${data[0].key}` });
    const drawer = page.getByRole('dialog', { name: 'The shop' });
    const tokens = Number(total.total_tokens).toLocaleString('en');
    await drawer.getByText(`Last 30 days: 3 requests, ${tokens} tokens`).waitFor();
    const today = new Date().toISOString().slice(0, 10);
    const bar = drawer.getByRole('img', { name: /of each day/ }).locator('title', { hasText: today });
    expect(await bar.textContent()).toBe(`${today}: ${tokens}`);
    await drawer.getByText('Numbers by the day').click();
    await drawer.getByRole('rowheader', { name: today }).waitFor();
    expect(problems).toEqual([]);
  });

  it('is sorted by a number in its head, and keeps that in the address', async () => {
    const { page, problems } = await stand.asAdmin({ path: `/console/usage?tenant=${SPENDER}&by=model` });
    const models = () => page.getByRole('grid', { name: 'Usage' }).getByRole('rowheader').allTextContents();
    const downwards = ['gpt-4o', UNPRICED_MODEL, 'gpt-4o-mini'];
    const head = page.getByRole('columnheader', { name: 'Requests' });
    await head.click();
    await expect.poll(() => new URL(page.url()).searchParams.get('sort')).toBe('-requests');
    expect(await head.getAttribute('aria-sort')).toBe('descending');
    await expect.poll(models).toEqual(downwards);
    await head.click();
    await expect.poll(() => new URL(page.url()).searchParams.get('sort')).toBe('requests');
    await expect.poll(models).toEqual(downwards.toReversed());
    expect(problems).toEqual([]);
  });

  it('has the usage of any days, and keeps them in the address', async () => {
    const { page, problems } = await stand.asAdmin({ path });
    await page.getByRole('button', { name: 'Days', exact: true }).click();
    await page.getByRole('button', { name: 'Last 7 days' }).click();
    const today = new Date().toISOString().slice(0, 10);
    await expect.poll(() => new URL(page.url()).searchParams.get('to')).toBe(today);
    await page.getByText(/^3 requests, /).waitFor();
    await page.getByText('Numbers by the day').click();
    await page.getByRole('rowheader', { name: today }).waitFor();
    await page.getByRole('button', { name: 'Show a month again' }).click();
    await page.getByRole('button', { name: 'The month before' }).waitFor();
    await visit(page, `${path}&from=2020-01-01&to=2020-01-07`);
    await page.getByText(/^0 requests, /).waitFor();
    expect(problems).toEqual([]);
  });

  it('shows a platform administrator the usage of each tenant, the highest first', async () => {
    const { page, problems } = await stand.asAdmin({ path: '/console/usage' });
    await page.getByRole('radio', { name: 'Tenant' }).click();
    const row = page.getByRole('row', { name: /Halden/ });
    await expect.poll(() => row.textContent()).toContain('halden3');
    const names = await page
      .getByRole('grid', { name: 'Usage' })
      .getByRole('rowheader')
      .getByRole('link')
      .allTextContents();
    expect(names.filter((name) => ['Halden', SPENDER].includes(name))).toEqual([SPENDER, 'Halden']);
    await row.getByRole('link', { name: 'Halden' }).click();
    await expect.poll(() => new URL(page.url()).searchParams.get('tenant')).toBe(TENANT);
    expect(problems).toEqual([]);
  });

  it('has the titles of the numbers beside them on a phone', async () => {
    const { page, problems } = await stand.asAdmin({ path, look: PHONE });
    const cells = page.locator('[data-label]:visible');
    await expect.poll(async () => (await cells.count()) > 0).toBe(true);
    const labels: readonly string[] = await page.evaluate(
      `[...document.querySelectorAll('[data-label]')].filter((cell) => cell.checkVisibility()).map((cell) => getComputedStyle(cell, '::before').content.replaceAll('"', '').trim())`,
    );
    expect(new Set(labels)).toEqual(new Set(['Requests', 'Tokens']));
    expect(problems).toEqual([]);
  });

  it('says which limit rejected how many requests, and leads to them', async () => {
    const { page, problems } = await stand.asAdmin({ path });
    const blocked = page.locator('section').filter({ hasText: 'Rejected by a limit' });
    await expect
      .poll(() => blocked.getByRole('listitem').allTextContents())
      .toEqual(['Tokens of one request2 requests']);
    await blocked.getByRole('link', { name: 'Tokens of one request' }).click();
    await expect.poll(() => new URL(page.url()).searchParams.get('code')).toBe('max_tokens_exceeded');
    await expect.poll(() => page.getByRole('link', { name: /^Explain req_/ }).count()).toBe(2);
    expect(problems).toEqual([]);
  });

  it('has no serious accessibility fault and fits the screen in both themes, on desktops and phones', async () => {
    const { page, problems } = await stand.asAdmin({ path });
    await page.getByRole('img', { name: /of each day/ }).waitFor();
    expect(await faultsInEveryLook(page)).toEqual([]);
    expect(problems).toEqual([]);
  });
});
