import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect } from 'vitest';
import { done, makeUser } from '../server/support/client.ts';
import { applyLook, chooseOption, faultsInEveryLook, PHONE } from './support/browser.ts';
import { type ConsoleStand, it } from './support/stand.ts';

const run = promisify(execFile);
let stand: ConsoleStand;
it.beforeAll(async ({ stand: shared }) => {
  stand = shared;
});

const api = (method: string, path: string, body?: object, tenant?: string) =>
  done(stand.server.http, method, path, { token: stand.token, tenant, body });

async function make(
  name: string,
  scopes: readonly string[],
  { tenant, ...more }: { readonly tenant?: string; readonly [member: string]: unknown } = {},
): Promise<{ id: string; key: string }> {
  const body = { name, description: 'A test', scopes, expires_in_days: 9, ...more };
  const made = (await api('POST', '/v1/iam/api-keys', body, tenant)).body;
  return { id: String(made['id']), key: String(made['key']) };
}

describe('the settings of a client', () => {
  it("have the tenant's address and the key's model for every client, and never the key", async () => {
    const { id } = await make('settings-bot', ['chat:write'], { resource_constraints: { models: ['phi-4'] } });
    const { page, problems } = await stand.asAdmin({ path: `/console/connect?key=${id}` });
    const shown = page.getByRole('tabpanel');
    await expect.poll(() => shown.textContent()).toContain(`curl ${stand.edge.url}/v1/chat/completions`);
    const expected = {
      'OpenAI Python': [`base_url="${stand.edge.url}/v1"`, 'from openai import OpenAI'],
      'OpenAI Node': [`baseURL: "${stand.edge.url}/v1"`, "import OpenAI from 'openai'"],
      'Anthropic Python': [`base_url="${stand.edge.url}"`, 'from anthropic import Anthropic', 'auth_token=os.environ'],
      'Anthropic Node': [`baseURL: "${stand.edge.url}"`, '@anthropic-ai/sdk', 'authToken: process.env'],
      LangChain: [`base_url="${stand.edge.url}/v1"`, 'ChatOpenAI'],
      'Coding agents': [
        `ANTHROPIC_BASE_URL=${stand.edge.url}`,
        `base_url = "${stand.edge.url}/v1"`,
        'ANTHROPIC_AUTH_TOKEN',
      ],
    };
    for (const [name, parts] of Object.entries(expected)) {
      await page.getByRole('tab', { name }).click();
      for (const part of [...parts, 'POSTERN_API_KEY', 'phi-4'])
        await expect.poll(() => shown.textContent()).toContain(part);
    }
    expect(new URL(page.url()).searchParams.get('client')).toBe('agents');
    await page.getByRole('textbox', { name: 'Address' }).fill('https://ai.example.com/');
    await expect.poll(() => shown.textContent()).toContain('https://ai.example.com/v1"');
    await page.getByRole('textbox', { name: 'Address' }).fill('nonsense');
    await page.getByText('Write an address that begins with').waitFor();
    expect(problems).toEqual([]);
  });

  it('for curl work in bash unchanged and pass through Envoy, also with special characters in the name of the model', async () => {
    const { key } = await make('shell-bot', ['chat:write']);
    const { page, problems } = await stand.asAdmin({ path: '/console/connect' });
    const model = 'it\'s; echo $HOME `id` "x"';
    await page.getByRole('textbox', { name: 'Model' }).fill(model);
    await page.getByRole('button', { name: 'Copy Shell' }).click();
    await page.getByText('Copied').waitFor();
    const command = await page.evaluate<string>('navigator.clipboard.readText()');
    const env = { PATH: process.env['PATH'], POSTERN_API_KEY: key };
    const { stdout } = await run('bash', ['-c', command.replace('curl', 'curl -sS')], { env });
    expect(JSON.parse(stdout)).toMatchObject({ object: 'chat.completion', model });
    expect(problems).toEqual([]);
  });

  it('for a key are a request that its scopes allow', async () => {
    const { id, key } = await make('lists-bot', ['models:read']);
    const { page, problems } = await stand.asAdmin({ path: `/console/connect?key=${id}` });
    const shown = page.getByRole('tabpanel').locator('pre');
    await expect.poll(() => shown.textContent()).toContain('/v1/models');
    const command = (await shown.textContent()) ?? '';
    const env = { PATH: process.env['PATH'], POSTERN_API_KEY: key };
    const { stdout } = await run('bash', ['-c', command.replace('curl', 'curl -sS')], { env });
    expect(JSON.parse(stdout)).toMatchObject({ object: 'list' });
    expect(problems).toEqual([]);
  });
});

describe('a request that is tried', () => {
  it('goes through the gateway with the pasted key, and shows decision, limits left and explanation', async () => {
    const tenant = 'tried';
    const limits = { settings: { rate_limit_rpm: 500 }, quotas: { monthly_tokens: 1_000_000 } };
    await api('POST', '/v1/iam/tenants', { id: tenant, name: 'Tried', ...limits });
    const { id, key } = await make('tried-bot', ['chat:write'], { tenant });
    const { page, problems } = await stand.asAdmin({ path: `/console/connect?key=${id}&tenant=${tenant}` });
    const asked: string[] = [];
    page.on('request', (request) => asked.push(request.url()));
    await page.getByRole('textbox', { name: 'Model' }).fill('llama-3');
    await page.getByLabel('API key').and(page.locator('input')).fill(key);
    await page.getByRole('button', { name: 'Send one request' }).click();
    const answer = page.getByRole('region', { name: 'The answer' });
    await expect.poll(() => answer.textContent()).toContain('Allowed');
    expect(await answer.textContent()).toMatch(/Requests left\s*49\d of 500/);
    await expect.poll(() => answer.textContent()).toMatch(/[\d,]+ of 1,000,000 this month/);
    const verdict = page.getByRole('status').filter({ hasText: 'decided at step' });
    await expect.poll(() => verdict.textContent()).toContain('tried-bot may use chat:write');
    await answer.getByRole('link', { name: 'Explain this request' }).click();
    await page.getByRole('heading', { level: 1, name: /Explain/ }).waitFor();
    expect(Object.fromEntries(new URL(page.url()).searchParams)).toMatchObject({
      key: id,
      method: 'POST',
      model: 'llama-3',
    });
    expect(asked.some((url) => url === `${stand.edge.url}/v1/chat/completions`)).toBe(true);
    expect(asked.filter((url) => url.includes(key.slice(0, 12)))).toEqual([]);
    expect(problems).toEqual([]);
  });

  it('that is denied says the code and the step, and its request id opens the explanation', async () => {
    const { id, key } = await make('narrow-bot', ['models:read']);
    const { page, problems } = await stand.asAdmin({ path: `/console/connect?key=${id}` });
    await page.getByLabel('API key').and(page.locator('input')).fill(key);
    await page.getByRole('button', { name: /Request$/ }).click();
    await chooseOption(page.getByRole('option', { name: 'Embedding' }));
    await page.getByRole('button', { name: 'Send one request' }).click();
    const answer = page.getByRole('region', { name: 'The answer' });
    await expect.poll(() => answer.textContent()).toContain('Denied');
    expect(await answer.textContent()).toContain('insufficient_permission');
    await answer.getByRole('link', { name: 'Explain this request' }).waitFor();
    await expect
      .poll(() => page.getByRole('status').filter({ hasText: 'decided at step' }).textContent())
      .toContain('403 insufficient_permission · decided at step 13 of 18');
    await answer.getByRole('link', { name: 'Explain this request' }).click();
    await page.getByRole('heading', { level: 1, name: /Explain/ }).waitFor();
    expect(new URL(page.url()).searchParams.get('request_id')).toMatch(/^req_/);
    await page.getByText('decided at step 13 of 18').waitFor();
    expect(problems).toEqual([]);
  });

  it('with a mistyped key shows the step that denies it', async () => {
    const { key } = await make('mistyped-bot', ['models:read']);
    const { page, problems } = await stand.asAdmin({ path: '/console/connect' });
    await page
      .getByLabel('API key')
      .and(page.locator('input'))
      .fill(`${key.slice(0, -1)}${key.endsWith('0') ? '1' : '0'}`);
    await page.getByRole('button', { name: 'Send one request' }).click();
    const answer = page.getByRole('region', { name: 'The answer' });
    await expect.poll(() => answer.textContent()).toContain('401');
    await page.getByRole('listitem').filter({ hasText: 'identity' }).filter({ hasText: 'decides' }).waitFor();
    expect(problems).toEqual([]);
  });

  it('of a caller that may not explain it shows the answer, and says which callers see why', async () => {
    const person = await makeUser(stand.server.http, stand.token, { roles: ['developer'] });
    const { key } = await make('their-bot', ['chat:write'], { user_id: person.id });
    const { page, problems } = await stand.signIn({ person, path: '/console/connect' });
    await page.getByLabel('API key').and(page.locator('input')).fill('not a key');
    await page.getByText('A key begins with psk_.').first().waitFor();
    await page.getByLabel('API key').and(page.locator('input')).fill(key);
    await page.getByRole('button', { name: /Request$/ }).click();
    await chooseOption(page.getByRole('option', { name: 'Message (Anthropic)' }));
    await page.getByRole('button', { name: 'Send one request' }).click();
    await expect.poll(() => page.getByRole('region', { name: 'The answer' }).textContent()).toContain('Allowed');
    await page.getByText('Callers that may manage policies see here').waitFor();
    expect(problems).toEqual([]);
  });
});

it('the screen that connects clients has no serious accessibility fault and fits the screen in both themes, on desktops and phones', async () => {
  const { id, key } = await make('looked', ['chat:write']);
  const { page, problems } = await stand.asAdmin({ path: `/console/connect?key=${id}&client=agents` });
  await applyLook(page, PHONE);
  await page.getByLabel('API key').and(page.locator('input')).fill(key);
  await page.getByRole('button', { name: 'Send one request' }).click();
  await page.getByText('decided at step').waitFor();
  await page.getByRole('link', { name: 'Explain this request' }).waitFor();
  // React Aria announces the pressed button for some seconds.
  await expect.poll(() => faultsInEveryLook(page), { timeout: 20_000 }).toEqual([]);
  expect(problems).toEqual([]);
});
