import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { call, done } from '../server/support/client.ts';
import { addRequest, ask, chooseAction, developerKey } from './support/policies.ts';
import { type ConsoleStand, startConsole } from './support/stand.ts';

let stand: ConsoleStand;
let http: string;
beforeAll(async () => {
  stand = await startConsole();
  http = stand.server.http;
});
afterAll(() => stand?.close());

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
    const { page, problems } = await stand.signIn({ path: '/console/policies/tried' });
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
  it('decides what was asked lately again with the policy, or says that the server records nothing', async () => {
    const { id, key } = await developerKey(stand);
    await manage('PUT', `/v1/iam/api-keys/${id}`, { description: 'recent chat' });
    await manage('POST', '/v1/iam/policies', { name: 'replayed', effect: 'deny', actions: ['rag:write'], resources: ['*'] });
    await expect.poll(() => ask(stand, key)).toBe('200');
    const read = () => call(http, 'GET', '/v1/iam/decisions/recent', { token: stand.token });
    await expect.poll(async () => JSON.stringify((await read()).body)).toContain(id);
    const { page, problems } = await stand.signIn({ path: '/console/policies/replayed' });
    await page.getByRole('button', { name: 'Remove rag:write' }).click();
    await chooseAction(page, 'chat:*');
    await page.getByRole('button', { name: 'Simulate' }).click();
    await page.getByRole('status').getByRole('listitem').filter({ hasText: 'recent chat' }).waitFor();
    expect(problems).toEqual([]);
  });
});
