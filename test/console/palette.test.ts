import fc from 'fast-check';
import type { Locator, Page } from 'playwright-core';
import { describe, expect } from 'vitest';
import { searchOf } from '../../console/src/api/search-text.ts';
import { done, makeUser } from '../server/support/client.ts';
import { applyLook, chooseOption, cutTexts, faultsInEveryLook, PHONE } from './support/browser.ts';
import { type ConsoleStand, it } from './support/stand.ts';

let stand: ConsoleStand;
const made = { user: '', key: '', keyText: '' };
it.beforeAll(async ({ stand: shared }) => {
  stand = shared;
  const user = await api('POST', '/v1/iam/users', {
    email: 'jonas.brandt@halden.example',
    name: 'Jonas Brandt',
    password: 'a person that is searched',
    roles: ['developer'],
  });
  const key = await api('POST', '/v1/iam/api-keys', {
    name: 'fraud-scoring',
    description: 'Scores',
    scopes: ['chat:read'],
    expires_in_days: 1,
  });
  await api('POST', '/v1/iam/roles', {
    name: 'fraud-analyst',
    description: 'Reads scores',
    permissions: ['chat:read'],
  });
  const policy = { name: 'fraud-hours', effect: 'deny', actions: ['chat:write'], resources: ['*'], enabled: false };
  await api('POST', '/v1/iam/policies', policy);
  await api('POST', '/v1/iam/tenants', { id: 'fraud-lab', name: 'Laboratory' });
  Object.assign(made, { user: user.body['id'], key: key.body['id'], keyText: key.body['key'] });
});

const api = (method: string, path: string, body?: object) =>
  done(stand.server.http, method, path, { token: stand.token, body });
const field = (page: Page) => page.getByRole('combobox', { name: 'Search or jump to' });
const options = (page: Page) => page.getByRole('option');
const addressOf = (page: Page): string => {
  const { pathname, search } = new URL(page.url());
  return pathname + search;
};

async function opened(path = '/console/account') {
  const tab = await stand.asAdmin({ path });
  await tab.page.getByRole('heading', { level: 1 }).waitFor();
  return tab;
}

describe('the palette', () => {
  it('opens by its keys, walks by the arrows, opens a screen by Enter, and gives the focus back', async () => {
    const { page, problems } = await opened();
    await page.keyboard.press('Control+k');
    await field(page).waitFor();
    expect(await page.evaluate('document.activeElement.getAttribute("aria-label")')).toBe('Search or jump to');
    await page.keyboard.type('aud');
    await page.getByRole('option', { name: 'Audit' }).waitFor();
    expect(await cutTexts(page)).toEqual([]);
    await page.keyboard.press('Enter');
    await expect.poll(() => addressOf(page)).toBe('/console/audit?tenant=default');
    expect(await page.getByRole('dialog').count()).toBe(0);
    await page.keyboard.press('Control+k');
    await field(page).waitFor();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    await expect.poll(() => field(page).getAttribute('aria-activedescendant')).not.toBe(null);
    await page.keyboard.press('Escape');
    await expect.poll(() => page.getByRole('dialog').count()).toBe(0);
    expect(problems).toEqual([]);
  });

  it('has every letter that was typed before its code was loaded', async () => {
    const { page, problems } = await opened();
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    await page.route('**/console/assets/palette-*.js', async (route) => {
      await released;
      await route.continue();
    });
    await page.keyboard.press('Control+k');
    await page.keyboard.type('auk');
    await page.keyboard.press('Backspace');
    release();
    await page.getByRole('option', { name: 'Audit' }).waitFor();
    await page.keyboard.type('dit');
    expect(await field(page).inputValue()).toBe('audit');
    expect(problems).toEqual([]);
  });

  it('opens by its button, and closes by its keys', async () => {
    const { page, problems } = await opened();
    await page.getByRole('button', { name: 'Search or paste a request id' }).click();
    await field(page).waitFor();
    await page.keyboard.press('Control+k');
    await expect.poll(() => page.getByRole('dialog').count()).toBe(0);
    expect(problems).toEqual([]);
  });

  it('finds users, keys, roles, policies, issuers and tenants by what the server finds, a page of each', async () => {
    const { page, problems } = await opened();
    const asked: string[] = [];
    page.on('request', (request) => {
      if (request.url().includes('q=fraud'))
        asked.push(new URL(request.url()).pathname + new URL(request.url()).search);
    });
    await page.keyboard.press('Control+k');
    await field(page).fill('fraud');
    for (const name of [/^fraud-scoring psk_/, /^fraud-analyst/, /^fraud-hours/, /^Laboratory fraud-lab/])
      await page.getByRole('option', { name }).waitFor();
    expect(asked.toSorted((a, b) => a.localeCompare(b))).toEqual(
      ['api-keys', 'issuers', 'policies', 'roles', 'tenants', 'users'].map((kind) =>
        expect.stringMatching(new RegExp(`^/v1/iam/${kind}\\?(?=.*q=fraud)(?=.*limit=5)`)),
      ),
    );
    await chooseOption(page.getByRole('option', { name: /^fraud-scoring/ }));
    await expect.poll(() => addressOf(page)).toBe(`/console/keys?open=${made.key}&tenant=default`);
    expect(problems).toEqual([]);
  });

  it('offers for a user what is wanted next: the explanation, the keys, the changes', async () => {
    const { page, problems } = await opened();
    await page.keyboard.press('Control+k');
    await field(page).fill('jonas');
    await page.getByRole('option', { name: /^Jonas Brandt jonas.brandt@halden.example/ }).waitFor();
    await chooseOption(page.getByRole('option', { name: 'Show the keys of Jonas Brandt' }));
    await expect.poll(() => addressOf(page)).toBe(`/console/keys?user=${made.user}&tenant=default`);
    expect(problems).toEqual([]);
  });

  it('opens the explanation and the changes of a pasted request id', async () => {
    const { page, problems } = await opened();
    const id = 'req_01k0000000000000000000000a';
    await page.keyboard.press('Control+k');
    await field(page).fill(id);
    await page.getByRole('option', { name: `Show what ${id} changed` }).waitFor();
    await page.keyboard.press('Enter');
    await expect.poll(() => addressOf(page)).toBe(`/console/explain?request_id=${id}&tenant=default`);
    expect(problems).toEqual([]);
  });

  it('finds a user and a key by the whole id', async () => {
    const { page, problems } = await opened();
    await page.keyboard.press('Control+k');
    await field(page).fill(made.key);
    await page.getByRole('option', { name: /^fraud-scoring/ }).waitFor();
    await field(page).fill(made.user);
    await chooseOption(page.getByRole('option', { name: /^Jonas Brandt/ }));
    await expect.poll(() => addressOf(page)).toBe(`/console/users/${made.user}?tenant=default`);
    expect(problems).toEqual([]);
  });

  it('sends no more of a pasted API key than lists show of it, and nothing of an access token', async () => {
    const { page, problems } = await opened();
    const urls: string[] = [];
    page.on('request', (request) => urls.push(request.url()));
    await page.keyboard.press('Control+k');
    await field(page).fill(made.keyText);
    await page.getByRole('option', { name: /^fraud-scoring/ }).waitFor();
    await field(page).fill(`Authorization: Bearer ${made.keyText}`);
    await page.getByRole('option', { name: /^fraud-scoring/ }).waitFor();
    await field(page).fill(stand.token);
    await page.getByText(/^Nothing is called eyJ/).waitFor();
    expect(urls.filter((url) => url.includes(made.keyText.slice(0, 9)) || url.includes('eyJ'))).toEqual([]);
    expect(urls.filter((url) => url.includes(`prefix=${made.keyText.slice(0, 8)}`)).length).toBeGreaterThan(0);
    expect(problems).toEqual([]);
  });

  it('says what is found nowhere, and what it did not search for want of a permission', async () => {
    const person = await makeUser(stand.server.http, stand.token, { roles: ['developer'] });
    const { page, problems } = await stand.signIn({ person, path: '/console/account' });
    await page.getByRole('heading', { level: 1 }).waitFor();
    await page.keyboard.press('Control+k');
    await field(page).fill('jonas');
    await page.getByText('Nothing is called jonas.').waitFor();
    await page.getByText(/^Not searched: users, roles, policies,? and issuers/).waitFor();
    await field(page).fill('create a p');
    await expect.poll(() => options(page).allTextContents()).toEqual([expect.stringContaining('needs admin:policies')]);
    expect(problems).toEqual([]);
  });

  it('has no serious accessibility fault, empty and with results, in both themes, on desktops and phones', async () => {
    const { page, problems } = await opened();
    await applyLook(page, PHONE);
    await page.getByRole('button', { name: 'Search or paste a request id' }).click();
    await options(page).first().waitFor();
    expect(await faultsInEveryLook(page)).toEqual([]);
    await applyLook(page, PHONE);
    await field(page).fill('fraud');
    const found = page.getByRole('option', { name: /^fraud-hours/ });
    await found.waitFor();
    expect(await faultsInEveryLook(page)).toEqual([]);
    expect(await found.isVisible()).toBe(true);
    expect(problems).toEqual([]);
  });
});

describe('the keys of the console', () => {
  it('focus the search of the page, create a key and explain', async () => {
    const { page, problems } = await opened('/console/roles');
    await page.keyboard.press('/');
    await expect.poll(() => page.evaluate('document.activeElement.type')).toBe('search');
    await page.evaluate('document.activeElement.blur()');
    await page.keyboard.press('e');
    await expect.poll(() => addressOf(page)).toBe('/console/explain?tenant=default');
    await page.getByRole('heading', { level: 1, name: /Explain/ }).waitFor();
    await page.locator('main').focus();
    await page.keyboard.press('c');
    await page.keyboard.press('k');
    await expect.poll(() => addressOf(page)).toBe('/console/keys?open=new&tenant=default');
    await page.getByRole('dialog').waitFor();
    expect(problems).toEqual([]);
  });

  it('have no effect during typing', async () => {
    const { page, problems } = await opened('/console/roles');
    const search = page.getByRole('searchbox').first();
    await search.click();
    await page.keyboard.type('ck/e');
    expect(await search.inputValue()).toBe('ck/e');
    expect(new URL(page.url()).pathname).toBe('/console/roles');
    expect(problems).toEqual([]);
  });

  it('send the open form, and not one that may not be sent yet', async () => {
    const { page, problems } = await opened('/console/tenants?open=_new');
    const drawer = page.getByRole('dialog');
    await drawer.getByRole('textbox', { name: 'Id' }).fill('by-keys');
    const posts: string[] = [];
    page.on('request', (request) => {
      if (request.method() === 'POST' && request.url().includes('/v1/iam/')) posts.push(request.url());
    });
    await page.keyboard.press('Control+Enter');
    await page.keyboard.press('Control+k');
    await drawer.getByRole('textbox', { name: 'Name', exact: true }).fill('By keys');
    expect(posts).toEqual([]);
    await page.keyboard.press('Control+Enter');
    await expect.poll(() => addressOf(page)).toBe('/console/onboarding?tenant=by-keys');
    expect(posts.length).toBe(1);
    expect(await field(page).count()).toBe(0);
    expect(problems).toEqual([]);
  });

  it('send the open form from a chosen option of a list, which stays chosen', async () => {
    const { page, problems } = await opened('/console/keys?open=new');
    const drawer = page.getByRole('dialog');
    await drawer.getByRole('textbox', { name: 'Description' }).fill('by keys, from a list');
    await drawer.getByRole('searchbox', { name: 'Search: Scopes' }).fill('models:read');
    await chooseOption(drawer.getByRole('option', { name: 'models:read' }));
    await page.keyboard.press('Control+Enter');
    await page.getByRole('button', { name: 'I have saved it' }).click();
    await page.getByRole('row', { name: 'by keys, from a list' }).getByText('models:read').waitFor();
    expect(problems).toEqual([]);
  });
});

describe('the list of the keys', () => {
  it('opens by the question mark and closes by Escape, also on the page of an unknown address, which has the rail', async () => {
    const { page, problems } = await stand.asAdmin({ path: '/console/no/such/page' });
    await page.getByRole('heading', { level: 1, name: 'There is no such page' }).waitFor();
    await page.keyboard.press('?');
    const help = page.getByRole('alertdialog', { name: 'Keyboard shortcuts' });
    await help.getByText('Create an API key').waitFor();
    await page.keyboard.press('Escape');
    await help.waitFor({ state: 'detached' });
    await page.getByRole('navigation', { name: 'Console' }).getByRole('link', { name: 'Roles' }).click();
    await page.getByRole('heading', { level: 1, name: 'Roles' }).waitFor();
    expect(problems).toEqual([]);
  });
});

describe('a whole API key that is typed into a search', () => {
  const shown = (): string => made.keyText.slice(0, 8);
  /** Each search: where it is, and how its field is found. */
  const searches: readonly (readonly [string, (page: Page) => Promise<Locator>])[] = [
    ...['keys', 'users', 'roles', 'policies', 'tenants', 'audit'].map(
      (screen) => [`/console/${screen}`, async (page: Page) => page.getByRole('searchbox').first()] as const,
    ),
    [
      '/console/audit',
      async (page) => {
        await page.getByRole('button', { name: /^Actor/ }).click();
        return page.getByRole('dialog').getByRole('combobox');
      },
    ],
    ['/console/explain', async (page) => page.getByRole('combobox', { name: 'User' })],
    [
      '/console/explain',
      async (page) => {
        await page.getByRole('radio', { name: 'API key' }).click();
        return page.getByRole('combobox', { name: 'API key' });
      },
    ],
    ['/console/users?open=new', async (page) => page.getByRole('searchbox', { name: 'Search: Roles' })],
    [
      '/console/roles',
      async (page) => {
        await page.getByRole('button', { name: /^Change the tenant/ }).click();
        return page.getByRole('combobox', { name: 'Find a tenant by id or name' });
      },
    ],
    [
      '/console/roles',
      async (page) => {
        await page.getByRole('button', { name: /^Search or paste/ }).click();
        return field(page);
      },
    ],
  ];

  it('searches for its shown beginning, and is in no request and in no address', async () => {
    const { page, problems } = await stand.asAdmin();
    const urls: string[] = [];
    page.on('request', (request) => urls.push(request.url()));
    page.on('framenavigated', (frame) => urls.push(frame.url()));
    for (const [path, open] of searches) {
      await page.goto(path);
      const search = await open(page);
      const asked = page.waitForRequest((request) => new URL(request.url()).search.includes(shown()));
      await search.fill(made.keyText);
      await asked;
      urls.push(page.url(), await page.title());
    }
    expect(
      urls.filter((url) => url.includes(made.keyText.slice(4, 20)) || url.includes(made.keyText.slice(20))),
    ).toEqual([]);
    expect(problems).toEqual([]);
  });

  it('is cut at any place of a text, as a token and a key of another system are', () => {
    const secret = fc
      .tuple(
        fc.constantFrom('psk_', 'eyJhbGciOiJFZERTQSJ9.', 'sk-', 'sk-proj-', 'ghp_', 'Bearer sk-ant-'),
        fc.array(fc.constantFrom(...'abcXYZ019'), { minLength: 32, maxLength: 60 }),
      )
      .map(([prefix, rest]) => ({ text: `${prefix}a1B${rest.join('')}`, secret: rest.join('') }));
    fc.assert(
      fc.property(
        secret,
        fc.string({ maxLength: 20 }),
        fc.string({ maxLength: 20 }),
        ({ text, secret: part }, before, after) => {
          const search = searchOf(`${before} ${text} ${after}`);
          for (let at = 0; at + 9 <= part.length; at++) expect(search).not.toContain(part.slice(at, at + 9));
          expect(searchOf(search)).toBe(search);
        },
      ),
    );
    for (const plain of [
      'jonas.brandt@halden.example',
      'claude-3-5-sonnet-20241022',
      made.user,
      made.key,
      'req_01J8ZK3V9PXM',
    ])
      expect(searchOf(plain)).toBe(plain);
  });
});
