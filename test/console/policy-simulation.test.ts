import { describe, expect } from 'vitest';
import { chosen } from '../../console/src/screens/policy/samples.ts';
import { call, done } from '../server/support/client.ts';
import { addRequest, ask, chooseAction, developerKey } from './support/policies.ts';
import { type ConsoleStand, it } from './support/stand.ts';

let stand: ConsoleStand;
let http: string;
// A console of its own, because a simulation tries all recent decisions of the tenant.
it.beforeAll(async ({ startConsole }) => {
  stand = await startConsole();
  http = stand.server.http;
});

const manage = (method: string, path: string, body?: object) => done(http, method, path, { token: stand.token, body });
const policy = async (name: string) => (await manage('GET', `/v1/iam/policies/${name}`)).body;

describe('the simulation of a policy', () => {
  it('shows newly denied and newly allowed requests per user and key, and saves nothing', async () => {
    const { id, key, owner } = await developerKey(stand);
    await manage('PUT', `/v1/iam/api-keys/${id}`, { description: 'nightly chat' });
    await manage('PUT', `/v1/iam/users/${owner}`, { name: 'Jonas Brandt' });
    await manage('POST', '/v1/iam/policies', {
      name: 'tried',
      effect: 'deny',
      actions: ['embeddings:*'],
      resources: ['*'],
    });
    const { page, problems } = await stand.asAdmin({ path: '/console/policies/tried' });
    await page.getByRole('button', { name: 'Remove embeddings:*' }).click();
    await page.getByText('Choose at least one action.').first().waitFor();
    await chooseAction(page, 'chat:*');

    await addRequest(page, 'nightly chat', 'Chat completion');
    await addRequest(page, 'nightly chat', 'Chat history');
    await addRequest(page, 'Jonas Brandt', 'Embeddings');
    await addRequest(page, 'Jonas Brandt', 'List of models');
    await page.getByRole('button', { name: 'Simulate' }).click();
    const result = page.getByRole('status').filter({ hasText: 'newly denied' });
    await result.waitFor();
    await expect.poll(() => result.locator('dd').allTextContents()).toEqual(['2', '1', '1']);
    const entries = await result.getByRole('listitem').allTextContents();
    expect(entries).toHaveLength(2);
    expect(entries[0]).toMatch(/^nightly chat2 requests, POST \/v1\/chat\/completions now by triedallowed → denied$/);
    expect(entries[1]).toMatch(/^Jonas BrandtPOST \/v1\/embeddings nowdenied → allowed$/);
    await page.getByRole('textbox', { name: 'Description' }).fill('Changed since');
    await page.getByText('The policy or the requests changed since.').waitFor();
    expect(await ask(stand, key)).toBe('200');
    expect((await policy('tried'))['actions']).toEqual(['embeddings:*']);
    await manage('DELETE', '/v1/iam/policies/tried');
    expect(problems).toEqual([]);
  });
});

describe('the simulation of recent decisions', () => {
  it('decides recent requests again with the policy, or says that the server records no decisions', async () => {
    const { id, key } = await developerKey(stand);
    await manage('PUT', `/v1/iam/api-keys/${id}`, { description: 'recent chat' });
    await manage('POST', '/v1/iam/policies', {
      name: 'replayed',
      effect: 'deny',
      actions: ['rag:write'],
      resources: ['*'],
    });
    await expect.poll(() => ask(stand, key)).toBe('200');
    const read = () => call(http, 'GET', '/v1/iam/decisions/recent', { token: stand.token });
    await expect.poll(async () => JSON.stringify((await read()).body)).toContain(id);
    const { page, problems } = await stand.asAdmin({ path: '/console/policies/replayed' });
    await page.getByRole('button', { name: 'Remove rag:write' }).click();
    await chooseAction(page, 'chat:*');
    await page.getByRole('button', { name: 'Simulate' }).click();
    const result = page.getByRole('status').getByRole('listitem').filter({ hasText: 'recent chat' });
    await result.waitFor();
    expect(await result.textContent()).toContain('from 127.0.0.1');
    await page.getByText(/^\d+ of \d+ recent allows$/).waitFor();
    await page.getByText('At most 12 denials and 12 allows').waitFor();
    expect(problems).toEqual([]);
  });

  it('sends at most 6 requests at once and 12 of each outcome, those that differ first', async () => {
    const { key } = await developerKey(stand);
    const denied = Array.from({ length: 20 }, (_, n) => `/v1/rag/collections/c${n}`);
    for (const path of denied) expect(await ask(stand, key, path)).toMatch(/^403/);
    const recent = () => call(http, 'GET', '/v1/iam/decisions/recent?outcome=deny&limit=200', { token: stand.token });
    await expect.poll(async () => JSON.stringify((await recent()).body)).toContain('/c19');
    await manage('POST', '/v1/iam/policies', {
      name: 'bounded',
      effect: 'deny',
      actions: ['rag:write'],
      resources: ['*'],
    });
    const { page, problems } = await stand.asAdmin({ path: '/console/policies/bounded' });
    await page.getByRole('button', { name: 'Simulate' }).waitFor();
    let open = 0;
    let most = 0;
    const read: string[] = [];
    const begins = (url: string) => {
      if (!/decisions\/recent|explain\/simulate/.test(url)) return;
      open++;
      most = Math.max(most, open);
      if (url.includes('/recent/')) read.push(url);
    };
    page.on('request', (request) => begins(request.url()));
    const ends = (url: string) => {
      if (/decisions\/recent|explain\/simulate/.test(url)) open--;
    };
    page.on('requestfinished', (request) => ends(request.url()));
    page.on('requestfailed', (request) => ends(request.url()));
    await page.getByRole('button', { name: 'Simulate' }).click();
    await page.getByText(/^12 of \d+ recent denials/).waitFor();
    expect(most).toBeLessThanOrEqual(6);
    expect(read.length).toBeLessThanOrEqual(24);
    expect(problems).toEqual([]);
  });
});

describe('the recent decisions that a simulation tries', () => {
  const row = (id: number, path: string, principal = 'usr_a') =>
    ({
      request_id: `req_${id}`,
      principal: { type: 'user', id: principal },
      method: 'GET',
      path,
      resources: [],
      client_ip: '192.0.2.7',
    }) as const;

  it('are the newest of each different request, then others, at most 12', () => {
    const loop = Array.from({ length: 30 }, (_, n) => row(n, '/v1/models'));
    const found = chosen([...loop, row(30, '/v1/chat/history'), row(31, '/v1/models', 'usr_b')]);
    expect(found.map(({ request_id }) => request_id).slice(0, 4)).toEqual(['req_0', 'req_30', 'req_31', 'req_1']);
    expect(found).toHaveLength(12);
  });

  it('leave out decisions without a principal or a method', () => {
    expect(
      chosen([
        { ...row(0, '/v1/models'), principal: null },
        { ...row(1, '/'), method: null, path: null },
      ]),
    ).toEqual([]);
  });
});
