import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { done, type MadeUser, makeKey, makeUser } from '../server/support/client.ts';
import { accessibilityFaults, DESKTOP, PHONE } from './support/browser.ts';
import { type ConsoleStand, startConsole } from './support/stand.ts';

let stand: ConsoleStand;
let developer: MadeUser;
beforeAll(async () => {
  stand = await startConsole();
  developer = await makeUser(stand.server.http, stand.token, { roles: ['developer'] });
  await done(stand.server.http, 'POST', '/v1/iam/policies', {
    token: stand.token,
    body: {
      name: 'office-hours',
      effect: 'deny',
      actions: ['embeddings:*'],
      resources: ['*'],
      conditions: {
        time: { not_between: ['08:00', '18:00'] },
        ip_address: { not_in: ['10.0.0.0/8'] },
        timezone: 'Europe/Berlin',
      },
      attached_roles: ['developer'],
    },
  });
});
afterAll(() => stand?.close());

/** The address of a question. */
function addressOf(question: Readonly<Record<string, string>>): string {
  return `/console/explain?${new URLSearchParams(question)}`;
}

const night = (user: string) =>
  addressOf({
    user,
    method: 'POST',
    path: '/v1/embeddings',
    model: 'embed-1',
    address: '203.0.113.9',
    time: '2026-11-19T22:30:00Z',
  });

describe('an explanation', () => {
  it('is asked by a form whose user the server finds, and ends an allow in an open arch at step 18', async () => {
    const { page, problems } = await stand.signIn({ path: '/console/explain' });
    await page.getByRole('combobox', { name: 'User' }).fill(developer.email);
    await page.getByRole('option', { name: /A person/ }).click();
    const path = page.getByRole('combobox', { name: 'Path' });
    await path.fill('/v1/chat/completions');
    await path.press('Tab');
    await page.getByRole('textbox', { name: 'Model' }).fill('gpt-4.1');
    await page.getByRole('button', { name: 'Explain', exact: true }).click();
    const verdict = page.getByRole('status').filter({ hasText: 'decided at step' });
    await expect.poll(() => verdict.textContent()).toContain('Allowed. A person may use chat:write by developer.');
    expect(await verdict.textContent()).toContain('200 allow · decided at step 18 of 18');
    const steps = page.getByRole('list', { name: 'The steps of the decision' }).getByRole('listitem');
    await expect.poll(() => steps.filter({ hasText: 'body' }).textContent()).toContain('models/gpt-4.1');
    expect(await steps.last().textContent()).toContain('decides');
    const asked = new URL(page.url()).searchParams;
    expect([asked.get('user'), asked.get('path'), asked.get('model')]).toEqual([developer.id, '/v1/chat/completions', 'gpt-4.1']);
    expect(problems).toEqual([]);
  });

  it('of a denial by a policy shows each condition with what it was compared with, and leads to the policy', async () => {
    const { page, problems } = await stand.signIn({ path: night(developer.id) });
    const verdict = page.getByRole('status').filter({ hasText: 'decided at step' });
    await expect.poll(() => verdict.textContent()).toContain('Denied by the policy office-hours.');
    expect(await verdict.textContent()).toContain('A person may otherwise use embeddings:write by developer.');
    expect(await verdict.textContent()).toContain('403 denied_by_policy · decided at step 12 of 18');
    const steps = page.getByRole('list', { name: 'The steps of the decision' }).getByRole('listitem');
    const deciding = await steps.filter({ hasText: 'decides' }).textContent();
    expect(deciding).toContain('time23:30 in Europe/Berlin is not between 08:00–18:00');
    expect(deciding).toContain('ip_address203.0.113.9 is not in 10.0.0.0/8');
    expect(await steps.last().textContent()).toContain('13–18not evaluatedpermission, resources');
    await page.getByRole('link', { name: 'Open policy' }).click();
    await expect.poll(() => new URL(page.url()).pathname).toBe('/console/policies/office-hours');
    await page.goBack();
    await page.getByRole('list', { name: 'The steps of the decision' }).getByRole('link', { name: 'A person' }).click();
    await expect.poll(() => new URL(page.url()).pathname).toBe(`/console/users/${developer.id}`);
    expect(problems).toEqual([]);
  });

  it('of a missing permission says which one is missing, what each role gives, and who has to be changed', async () => {
    const { page, problems } = await stand.signIn({
      path: addressOf({ user: developer.id, method: 'POST', path: '/v1/models' }),
    });
    const verdict = page.getByRole('status').filter({ hasText: 'decided at step' });
    await expect.poll(() => verdict.textContent()).toContain('Denied. A person has nothing that gives models:write.');
    const deciding = page.getByRole('listitem').filter({ hasText: 'decides' });
    expect(await deciding.textContent()).toContain('does not give it');
    await deciding.getByRole('link', { name: 'developer' }).waitFor();
    await page.getByText('A role, or an allow policy attached to one, must give models:write.').waitFor();
    await page.getByRole('link', { name: 'Open user' }).click();
    await expect.poll(() => new URL(page.url()).pathname).toBe(`/console/users/${developer.id}`);
    expect(problems).toEqual([]);
  });

  it('of a key names its scopes, and leads to the key', async () => {
    const { id } = await makeKey(stand.server.http, stand.token, { scopes: ['chat:read'] });
    const { page, problems } = await stand.signIn({ path: '/console/explain' });
    await page.getByRole('radio', { name: 'API key' }).click();
    await page.getByRole('combobox', { name: 'API key' }).click();
    await page.getByRole('option', { name: /made by a test/ }).click();
    await page.getByRole('button', { name: 'Explain', exact: true }).click();
    await page.getByText("The key's scopes must cover chat:write.").waitFor();
    expect(new URL(page.url()).searchParams.get('key')).toBe(id);
    expect(await page.getByRole('link', { name: 'Open key' }).getAttribute('href')).toBe(`/console/keys?open=${id}`);
    expect(problems).toEqual([]);
  });

  it('is given to people without admin:policies about themselves', async () => {
    const { page, problems } = await stand.signIn({ person: developer, path: '/console/explain' });
    await page.getByText('You may ask about yourself.').waitFor();
    await page.getByRole('button', { name: 'Explain', exact: true }).click();
    await page.getByText('403').or(page.getByText('200 allow')).first().waitFor();
    expect(new URL(page.url()).searchParams.get('user')).toBe(developer.id);
    expect(problems).toEqual([]);
  });
});

it('on phones the question folds to one line after the answer, and opens again', async () => {
  const { page, problems } = await stand.signIn({ look: PHONE, path: night(developer.id) });
  await page.getByRole('button', { name: 'Change the question' }).click();
  await page.getByRole('textbox', { name: 'Model' }).fill('embed-2');
  await page.getByRole('button', { name: 'Explain', exact: true }).click();
  await page.getByRole('button', { name: 'Change the question' }).waitFor();
  expect(await page.getByRole('textbox', { name: 'Model' }).isVisible()).toBe(false);
  expect(problems).toEqual([]);
});

describe.each([
  { look: { ...DESKTOP, theme: 'light' }, name: 'light at 1440 px' },
  { look: { ...DESKTOP, theme: 'dark' }, name: 'dark at 1440 px' },
  { look: { ...PHONE, theme: 'light' }, name: 'light at 390 px' },
  { look: { ...PHONE, theme: 'dark' }, name: 'dark at 390 px' },
] as const)('an explanation in $name', ({ look }) => {
  it('has no serious accessibility fault, allowed or denied', async () => {
    const { page, problems } = await stand.signIn({ look, path: night(developer.id) });
    await page.getByText('403 denied_by_policy').waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
    await page.goto(addressOf({ user: developer.id, method: 'GET', path: '/v1/chat/history' }));
    await page.getByText('200 allow').waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
    expect(problems).toEqual([]);
  });
});
