import { afterAll, describe, expect } from 'vitest';
import { summaryOf } from '../../console/src/screens/roles/summary.ts';
import { call, type Decider, decider, done, makeKey, makeUser } from '../server/support/client.ts';
import {
  accessibilityFaults,
  applyLook,
  chooseOption,
  cutTexts,
  DESKTOP,
  faultsInEveryLook,
  visit,
} from './support/browser.ts';
import { type ConsoleStand, it } from './support/stand.ts';

let stand: ConsoleStand;
let http: string;
let gate: Decider;
it.beforeAll(async ({ stand: shared }) => {
  stand = shared;
  http = stand.server.http;
  gate = decider(stand.server.grpc);
});
afterAll(() => gate?.close());

const manage = (method: string, path: string, body?: object) => done(http, method, path, { token: stand.token, body });

describe('the list of roles', () => {
  it('distinguishes built-in roles from custom ones, and finds a role by its name', async () => {
    await manage('POST', '/v1/iam/roles', { name: 'list-own', description: 'Made here', permissions: ['chat:read'] });
    const { page, problems } = await stand.asAdmin({ path: '/console/roles?kind=own' });
    await page.getByRole('row', { name: 'list-own' }).waitFor();
    expect(await page.getByRole('row', { name: 'developer' }).count()).toBe(0);
    await page.getByRole('radio', { name: 'All' }).click();
    await page.getByRole('row', { name: 'developer' }).waitFor();
    await page.getByRole('searchbox', { name: 'Search roles' }).fill('list-own');
    await expect.poll(() => page.getByRole('row').count()).toBe(2);
    await page.getByRole('searchbox', { name: 'Search roles' }).fill('no-such-role');
    await page.getByText('No role matches').waitFor();
    await page.getByRole('button', { name: 'Show all' }).click();
    await expect.poll(() => page.getByRole('searchbox', { name: 'Search roles' }).inputValue()).toBe('');
    await page.getByRole('row', { name: 'list-own' }).click();
    await expect.poll(() => new URL(page.url()).pathname).toBe('/console/roles/list-own');
    expect(problems).toEqual([]);
  });
});

describe('the permission picker', () => {
  it('begins without an error, and shows every meaning whole', async () => {
    const { page, problems } = await stand.asAdmin({ path: '/console/new-role' });
    await page.getByText('Choose what the holders of this role may do.').waitFor();
    await page.getByRole('option', { name: 'chat:write' }).waitFor();
    expect(await page.locator('[class*=error]').count()).toBe(0);
    expect(await cutTexts(page)).toEqual([]);
    // In a window that is too narrow, the same check finds the placeholder.
    await applyLook(page, { width: 160 });
    await expect.poll(() => cutTexts(page)).toContain('Search by name or meaning, or write a pattern');
    await applyLook(page, DESKTOP);
    await page.getByRole('button', { name: 'Create role' }).click();
    await page.getByText('This field is needed.').waitFor();
    expect(problems).toEqual([]);
  });

  it("offers the permissions of the operator's own routes with what they call, and counts them in a wildcard", async () => {
    const { page, problems } = await stand.asAdmin({ path: '/console/new-role' });
    await page.getByRole('searchbox', { name: /Permissions/ }).fill('reports');
    const option = page.getByRole('option', { name: 'reports:write' });
    await expect.poll(() => option.textContent()).toContain('call POST /v1/reports');
    await option.click();
    await page.getByText('Covers 1 action:').waitFor();
    expect(problems).toEqual([]);
  });
});

describe('the role editor', () => {
  it('says at once which pattern nothing needs, and counts only what something needs', async () => {
    const { page, problems } = await stand.asAdmin({ path: '/console/new-role' });
    await page.getByRole('searchbox', { name: /Permissions/ }).fill('rag:querry');
    await chooseOption(page.getByRole('option', { name: 'rag:querry' }));
    await page.getByText('Covers no action that anything needs.').waitFor();
    await page.getByText('No route and no endpoint needs what rag:querry names.').waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
    await page.getByRole('searchbox', { name: /Permissions/ }).fill('admin:*');
    await chooseOption(page.getByRole('option', { name: 'admin:*' }));
    const { body } = await manage('GET', '/v1/iam/permissions?pattern=admin:*&limit=1&count=true');
    await page.getByText(`Covers ${String(body['total'])} actions:`).waitFor();
    expect(problems).toEqual([]);
  });

  it('says why nothing is counted if the server does not list its permissions, and takes a pattern all the same', async () => {
    const { page, problems } = await stand.asAdmin({ path: '/console/roles' });
    await page.route('**/v1/iam/permissions*', (route) =>
      route.fulfill({ status: 404, body: '{}', contentType: 'application/json' }),
    );
    await page.getByRole('button', { name: 'Create a role' }).click();
    await page.getByRole('button', { name: 'Try again' }).waitFor();
    await page.getByRole('searchbox', { name: /Permissions/ }).fill('reports:read');
    await chooseOption(page.getByRole('option', { name: 'reports:read' }));
    await page.unroute('**/v1/iam/permissions*');
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByText('No route and no endpoint needs what reports:read names.').waitFor();
    expect(problems).toEqual([]);
  });

  it('says how many users have the role, and shows the first of them', async () => {
    await manage('POST', '/v1/iam/roles', { name: 'popular', permissions: ['chat:read'] });
    for (let i = 0; i < 12; i++) await makeUser(http, stand.token, { roles: ['popular'] });
    const { page, problems } = await stand.asAdmin({ path: '/console/roles/popular' });
    await page.getByText('12 users have it.').waitFor();
    const people = page.getByRole('link', { name: 'A person' });
    await expect.poll(() => people.count()).toBe(10);
    await page.getByRole('button', { name: 'Show more' }).click();
    await expect.poll(() => people.count()).toBe(12);
    expect(problems).toEqual([]);
  });
});

describe('a role with a pattern that nothing needs', () => {
  it('is marked in the list and says in the editor which pattern was probably meant, until it is mended', async () => {
    await manage('POST', '/v1/iam/roles', { name: 'misspelled', permissions: ['rag:querry'] });
    const { page, problems } = await stand.asAdmin({ path: '/console/roles?q=misspelled' });
    await page.getByRole('row', { name: /misspelled.*Needs care:.*rag:querry/ }).click();
    await page
      .getByText(/rag:query\b/)
      .first()
      .waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
    await page.getByRole('button', { name: 'Remove rag:querry' }).click();
    await page.getByRole('searchbox', { name: /Permissions/ }).fill('rag:query');
    await chooseOption(page.getByRole('option', { name: 'rag:query' }));
    await page.getByRole('button', { name: 'Save role' }).click();
    await page.getByText('Saved. It holds').waitFor();
    await expect.poll(() => page.getByText('rag:querry').count()).toBe(0);
    expect(problems).toEqual([]);
  });
});

describe('the sentence of a role', () => {
  it('names the resources that are given whole together, after the other rights', () => {
    expect(summaryOf(['chat:*', 'models:read', 'embeddings:*', 'rag:*', 'chat:read'], {})).toBe(
      'Users with this role may see models and do everything with chat, embeddings, and collections.',
    );
    expect(summaryOf(['chat:*'], { models: ['phi-*'] })).toBe(
      'Users with this role may do everything with chat, only models phi-*.',
    );
    expect(summaryOf(['*', 'chat:*'], {})).toBe('Users with this role may do everything.');
    expect(summaryOf([], {})).toBe('Users with this role may do nothing yet.');
  });
});

describe('a role', () => {
  it('made in the console lets its holder do what it gives, at the models that it names', async () => {
    const { page, problems } = await stand.asAdmin({ path: '/console/new-role' });
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill('Phi Users');
    await page.getByText('A name must be 1 to 63').waitFor();
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill('phi-users');
    await page.getByRole('searchbox', { name: 'Search: Permissions' }).fill('see models');
    await chooseOption(page.getByRole('option', { name: 'models:read' }));
    await page.getByRole('searchbox', { name: 'Search: Permissions' }).fill('Chat Read');
    await page.getByText('Write *, or resource:action').waitFor();
    await page.getByRole('searchbox', { name: 'Search: Permissions' }).fill('chat:*');
    await chooseOption(page.getByRole('option', { name: 'chat:*' }));
    await page.getByText('Covers 3 actions').waitFor();
    await page.getByRole('radiogroup', { name: 'Which models' }).getByRole('radio', { name: 'Only these' }).click();
    const names = page.getByRole('textbox', { name: 'Names of models' });
    await names.fill('*'.repeat(9));
    await page.getByText('A pattern has at most 8 stars.').waitFor();
    await names.fill('phi-*');
    await names.press('Enter');
    await page.getByText('may see models and do everything with chat, only models phi-*.').waitFor();
    await page.getByRole('button', { name: 'Create role' }).click();
    await page.getByRole('heading', { level: 1, name: 'phi-users' }).waitFor();

    const user = await makeUser(http, stand.token, { roles: ['phi-users'] });
    const { key } = await makeKey(http, stand.token, { owner: user.id, scopes: ['models:read'] });
    const model = (name: string) => gate.decide(key, { path: `/v1/models/${name}` });
    await expect.poll(() => model('phi-4')).toBe('allow');
    expect(await model('llama-3')).toBe('resource_not_permitted');

    await page.reload();
    await page.getByRole('link', { name: 'A person' }).waitFor();
    await page.getByRole('button', { name: 'Remove models:read' }).click();
    await page.getByRole('button', { name: 'Save role' }).click();
    await page.getByText('Saved. It holds').waitFor();
    await expect.poll(() => model('phi-4')).toBe('insufficient_permission');
    expect(problems).toEqual([]);
  });

  it('that is built in cannot be changed, and a new one begins as it is', async () => {
    const { page, problems } = await stand.asAdmin({ path: '/console/roles/analyst' });
    await page.getByText('This role is built in.').waitFor();
    expect(await page.getByRole('button', { name: 'Save role' }).count()).toBe(0);
    expect(await page.getByRole('button', { name: 'Delete role' }).getAttribute('aria-disabled')).toBe('true');
    await page.getByRole('button', { name: 'Create one from it' }).click();
    await page.getByRole('button', { name: 'Remove *:read' }).waitFor();
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill('developer');
    await page.getByRole('button', { name: 'Create role' }).click();
    await page.getByText('A role with this name already exists. Choose another name.').waitFor();
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill('analyst-copy');
    await page.getByRole('button', { name: 'Create role' }).click();
    await page.getByRole('heading', { level: 1, name: 'analyst-copy' }).waitFor();
    expect((await manage('GET', '/v1/iam/roles/analyst-copy')).body['permissions']).toEqual(['*:read', 'rag:query']);
    expect(problems).toEqual([]);
  });

  it('keeps the typed values if another administrator saved first, and sends only changed members', async () => {
    await manage('POST', '/v1/iam/roles', { name: 'contested', permissions: ['chat:read'] });
    const { page, problems } = await stand.asAdmin({ path: '/console/roles/contested' });
    const sent: unknown[] = [];
    page.on('request', (request) => {
      if (request.method() === 'PUT') sent.push(request.postDataJSON());
    });
    await page.getByRole('textbox', { name: 'Description' }).fill('Ours');
    await manage('PUT', '/v1/iam/roles/contested', { permissions: ['rag:read'] });
    await page.getByRole('button', { name: 'Save role' }).click();
    await page.getByText('Somebody else saved a change').waitFor();
    await page.getByRole('button', { name: 'Continue with the newest' }).click();
    await page.getByRole('button', { name: 'Remove rag:read' }).waitFor();
    expect(await page.getByRole('textbox', { name: 'Description' }).inputValue()).toBe('Ours');
    await page.getByRole('button', { name: 'Save role' }).click();
    await page.getByText('Saved. It holds').waitFor();
    expect(sent).toEqual([{ description: 'Ours' }, { description: 'Ours' }]);
    expect((await manage('GET', '/v1/iam/roles/contested')).body).toMatchObject({
      description: 'Ours',
      permissions: ['rag:read'],
    });
    expect(problems).toEqual([]);
  });

  it('in use is deleted only after a second confirmation, which takes it from its users', async () => {
    await manage('POST', '/v1/iam/roles', { name: 'used', permissions: ['chat:read'] });
    const user = await makeUser(http, stand.token, { roles: ['developer', 'used'] });
    const { page, problems } = await stand.asAdmin({ path: '/console/roles/used' });
    await page.getByRole('button', { name: 'Delete role' }).click();
    const dialog = page.getByRole('alertdialog');
    expect(await dialog.getByRole('button', { name: 'Delete role' }).getAttribute('aria-disabled')).toBe('true');
    await dialog.getByRole('textbox').fill('used');
    await dialog.getByRole('button', { name: 'Delete role' }).click();
    await dialog.getByText('1 user has it').waitFor();
    expect((await manage('GET', '/v1/iam/roles/used')).status).toBe(200);
    await dialog.getByRole('button', { name: 'Delete and take it from all' }).click();
    await expect.poll(() => new URL(page.url()).pathname).toBe('/console/roles');
    expect((await call(http, 'GET', '/v1/iam/roles/used', { token: stand.token })).status).toBe(404);
    expect((await manage('GET', `/v1/iam/users/${user.id}`)).body['roles']).toEqual(['developer']);
    expect(problems).toEqual([]);
  });

  it('that would give more than its author has is refused in place', async () => {
    await manage('POST', '/v1/iam/roles', {
      name: 'role-writer',
      permissions: ['admin:roles', 'admin:users', 'chat:read'],
    });
    const author = await makeUser(http, stand.token, { roles: ['role-writer'] });
    const { page, problems } = await stand.signIn({ person: author, path: '/console/new-role' });
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill('too-much');
    await page.getByRole('searchbox', { name: 'Search: Permissions' }).fill('finetuning:*');
    await chooseOption(page.getByRole('option', { name: 'finetuning:*' }));
    await page.getByRole('button', { name: 'Create role' }).click();
    await page.getByRole('status').filter({ hasText: 'some that you do not have' }).waitFor();
    expect(await page.getByRole('textbox', { name: 'Name', exact: true }).inputValue()).toBe('too-much');
    expect(problems).toEqual([]);
  });
});

describe('the screens of roles', () => {
  it('have no serious accessibility fault and fit the screen in both themes, on desktops and phones', async () => {
    await manage('POST', '/v1/iam/roles', {
      name: 'looked-at',
      permissions: ['models:*'],
      resource_constraints: { models: ['phi-*'] },
    });
    const { page, problems } = await stand.asAdmin({ path: '/console/roles' });
    for (const path of ['roles', 'roles/looked-at', 'roles/developer', 'new-role?from=developer']) {
      await visit(page, `/console/${path}`);
      expect(await faultsInEveryLook(page)).toEqual([]);
    }
    expect(problems).toEqual([]);
  });
});
