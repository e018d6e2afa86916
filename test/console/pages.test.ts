/**
 * No screen and no picker of the console loads a whole list. It requests one page, and another when a user presses its
 * button.
 */

import type { Page } from 'playwright-core';
import { describe, expect } from 'vitest';
import { done } from '../server/support/client.ts';
import { accessibilityFaults, type Tab, untilSettled } from './support/browser.ts';
import { type ConsoleStand, it } from './support/stand.ts';

/** More than any page has. */
const MANY = 230;
const AT_ONCE = 12;
/** Without a call, a screen has all that it asks for by itself. */
const QUIET_MS = 500;
/** Different ones, with those of the shell: a slow page reads an answer again that is 5 s old. */
const MAX_REQUESTS = 6;
/** Names of owners and the like that one screen shows. */
const MAX_SINGLE = 30;

let stand: ConsoleStand;
let users: readonly string[];
let tab: Tab;

const manage = (method: string, path: string, body: object) =>
  done(stand.server.http, method, path, { token: stand.token, body });

/** Does something for each number, a few at a time. */
async function each<T>(make: (i: number) => Promise<T>): Promise<readonly T[]> {
  const made: T[] = [];
  for (let from = 0; from < MANY; from += AT_ONCE) {
    const numbers = Array.from({ length: Math.min(AT_ONCE, MANY - from) }, (_, i) => from + i);
    made.push(...(await Promise.all(numbers.map(make))));
  }
  return made;
}

/**
 * A key of each user, as many again of the first one, for the list of that user; roles, policies and tenants. By SQL,
 * because a thousand requests cost as much as the tests of this file.
 */
const SEED = [
  `insert into api_keys (id, tenant_id, user_id, description, digest, prefix, last_four, scopes, expires_at, created_by)
   select 'key_' || lpad(n::text, 26, '0'), 'default', (cast(:users as text[]))[case when n > :many then 1 else n end], 'Service ' || n,
     sha256(n::text::bytea), 'psk_0000', '0000', '{chat:read}', now() + interval '3 days', 'test'
   from generate_series(1, 2 * cast(:many as int)) n`,
  `insert into roles (tenant_id, name, permissions)
   select 'default', 'role-' || n, '{chat:read}' from generate_series(1, cast(:many as int)) n`,
  `insert into policies (tenant_id, name, effect, actions, resources, applies_to)
   select 'default', 'policy-' || n, 'deny', '{rag:query}', '{collections/secret}', 'roles'
   from generate_series(0, cast(:many as int) - 1) n`,
  `insert into policy_roles (policy_id, role_name) select id, 'developer' from policies where name like 'policy-%'`,
  `insert into tenants (id, name) select 'tenant-' || n, 'Tenant ' || n from generate_series(1, cast(:many as int)) n`,
];

it.beforeAll(async ({ startConsole }) => {
  stand = await startConsole();
  users = await each(async (i) => {
    const body = { email: `person-${i}@example.com`, name: `Person ${i}`, roles: ['developer'] };
    return String((await manage('POST', '/v1/iam/users', body)).body['id']);
  });
  for (const text of SEED) await stand.db.knex.raw(text, { users: `{${users.join()}}`, many: MANY });
  tab = await stand.asAdmin();
}, 180_000);

interface Asked {
  readonly path: string;
  /** With the query. */
  readonly address: string;
  readonly hasCursor: boolean;
  readonly limit: number;
  readonly rows: number;
}

/** The calls of the API while something happens, and until there are no more. */
async function during(page: Page, action: () => Promise<unknown>): Promise<readonly Asked[]> {
  const answers: Promise<Asked>[] = [];
  const underWay = new Set<object>();
  let lastMs = performance.now();
  const isCall = (url: string): boolean => new URL(url).pathname.startsWith('/v1/iam/');
  const began = (request: { url(): string }): void => {
    if (isCall(request.url())) underWay.add(request);
  };
  const ended = (request: { url(): string }): void => {
    if (underWay.delete(request)) lastMs = performance.now();
  };
  const answered = (response: Awaited<ReturnType<Page['waitForResponse']>>): void => {
    if (!isCall(response.url())) return;
    const { pathname, search, searchParams } = new URL(response.url());
    const address = pathname + search;
    answers.push(
      response.json().then(
        ({ data }: { readonly data?: unknown }) => ({
          path: pathname,
          address,
          hasCursor: searchParams.has('cursor'),
          limit: Number(searchParams.get('limit') ?? 0),
          rows: Array.isArray(data) ? data.length : 0,
        }),
        () => ({ path: pathname, address, hasCursor: searchParams.has('cursor'), limit: 0, rows: 0 }),
      ),
    );
  };
  page.on('request', began).on('requestfinished', ended).on('requestfailed', ended).on('response', answered);
  await action();
  await expect.poll(() => underWay.size === 0 && performance.now() - lastMs > QUIET_MS).toBe(true);
  page.off('request', began).off('requestfinished', ended).off('requestfailed', ended).off('response', answered);
  return Promise.all(answers);
}

/** Returns the requests beyond one page of a list and beyond the visible names. */
function excess(asked: readonly Asked[]): readonly string[] {
  const singles = asked.filter(({ path }) => /\/(?:usr|key)_\w+$/.test(path)).length;
  return [
    ...asked.filter(({ hasCursor }) => hasCursor).map(({ path }) => `a second page of ${path}`),
    ...asked
      .filter(({ rows, limit }) => rows > Math.max(100, limit))
      .map(({ path, rows }) => `${rows} rows of ${path}`),
    ...(singles > MAX_SINGLE ? [`${singles} users and keys one by one`] : []),
  ];
}

const list = (page: Page) => page.locator('main [role=grid] tbody [role=row], main li');

describe('a screen', () => {
  it.each([
    ['overview', '/console/', 'main h2'],
    ['API keys', '/console/keys', undefined],
    ['API keys that expire soon', '/console/keys?status=expiring', undefined],
    ['users', '/console/users', undefined],
    ['roles', '/console/roles', undefined],
    ['one role', '/console/roles/developer', undefined],
    ['policies', '/console/policies', undefined],
    ['one policy', '/console/policies/policy-0', 'main form'],
    ['usage', '/console/usage', 'main h1'],
    ['usage by key', '/console/usage?by=key', 'main h1'],
    ['usage by tenant', '/console/usage?by=tenant', 'main h1'],
    ['spend', '/console/spend', 'main h1'],
    ['budgets', '/console/budgets', 'main h1'],
    ['prices', '/console/prices', 'main h1'],
    ['webhooks', '/console/webhooks', 'main h1'],
    ['first steps of a tenant', '/console/onboarding?tenant=default', 'main h1'],
    ['issuers', '/console/issuers', 'main h1'],
    ['access review', '/console/access?name=llama-3', undefined],
    ['audit', '/console/audit', undefined],
    ['tenants', '/console/tenants', undefined],
    ['account', '/console/account', undefined],
    ['connect', '/console/connect', 'main [role=tabpanel] pre'],
    ['directory', '/console/directory', 'main h1'],
  ])(
    '(%s) asks the API at most 6 times and for one page of each list, by itself, also after scrolling to its end',
    async (_name, path, shown) => {
      const { page } = tab;
      const asked = await during(page, async () => {
        await page.goto(path);
        await (shown === undefined ? list(page) : page.locator(shown)).first().waitFor();
      });
      expect(asked.length).toBeGreaterThan(0);
      expect(asked.map(({ address }) => address).slice(MAX_REQUESTS)).toEqual([]);
      expect(excess(asked)).toEqual([]);
      const later = await during(page, () => page.mouse.wheel(0, 50_000));
      expect(excess(later).filter((each) => each.startsWith('a second page'))).toEqual([]);
      expect(tab.problems).toEqual([]);
    },
  );

  it.each(['access', 'keys', 'activity'])('(one user, %s) asks for one page of each list by itself', async (part) => {
    const { page } = tab;
    const asked = await during(page, async () => {
      await page.goto(`/console/users/${users[0]}${part === 'access' ? '' : `?tab=${part}`}`);
      await page.getByRole('heading', { level: 1, name: 'Person 0' }).waitFor();
    });
    expect(excess(asked)).toEqual([]);
    expect(tab.problems).toEqual([]);
  });

  it('(users) has no accessibility fault while it loads', async () => {
    const { page } = tab;
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    await page.route('**/v1/iam/users?*', async (route) => {
      await released;
      await route.fallback();
    });
    await page.goto('/console/users');
    const isLoading = page.getByRole('row', { name: 'Loading' });
    await isLoading.first().waitFor();
    const faults = await accessibilityFaults(page);
    release();
    await isLoading.first().waitFor({ state: 'detached' });
    await page.unroute('**/v1/iam/users?*');
    expect([faults, tab.problems]).toEqual([[], []]);
  });

  it('(API keys) requests the second page when its button is pressed, and no third one', async () => {
    const { page } = tab;
    await during(page, async () => {
      await page.goto('/console/keys');
      await list(page).first().waitFor();
    });
    const before = await list(page).count();
    const asked = await during(page, () => page.getByRole('button', { name: 'Show more' }).click());
    expect(asked.filter(({ hasCursor }) => hasCursor).map(({ path }) => path)).toEqual(['/v1/iam/api-keys']);
    expect(await list(page).count()).toBe(2 * before);
    expect(tab.problems).toEqual([]);
  });
});

describe('a picker', () => {
  const options = (page: Page) => page.getByRole('option');
  it.each([
    [
      'the tenant switcher',
      '/console/roles',
      (page: Page) => page.getByRole('button', { name: /^Change the tenant/ }).click(),
    ],
    [
      'the filter of users by role',
      '/console/users',
      (page: Page) => page.getByRole('button', { name: 'Role', exact: true }).click(),
    ],
    [
      'the roles of a new user',
      '/console/users',
      (page: Page) => page.getByRole('button', { name: 'Create a user' }).click(),
    ],
    [
      'the owner of a new key',
      '/console/keys?open=new',
      (page: Page) => page.getByRole('combobox', { name: 'Owner' }).fill('Person'),
    ],
    [
      'the roles of a new policy',
      '/console/new-policy',
      (page: Page) => page.getByRole('radio', { name: 'Holders of roles' }).click(),
    ],
    [
      'the command palette',
      '/console/roles',
      async (page: Page) => {
        await page.keyboard.press('Control+k');
        await page.getByRole('combobox', { name: 'Search or jump to' }).fill('1');
        await page
          .getByRole('option', { name: /^Person \d*1/ })
          .first()
          .waitFor();
      },
    ],
    [
      'the actor of audit rows',
      '/console/audit',
      (page: Page) => page.getByRole('button', { name: 'Actor', exact: true }).click(),
    ],
    [
      'the user to explain',
      '/console/explain',
      (page: Page) => page.getByRole('combobox', { name: 'User' }).fill('Person'),
    ],
  ])('(%s) asks for one page by itself, also at the end of its list', async (_name, path, open) => {
    const { page } = tab;
    const asked = await during(page, async () => {
      await page.goto(path);
      await untilSettled(page);
      await open(page);
      await options(page).first().waitFor();
    });
    expect(excess(asked)).toEqual([]);
    const later = await during(page, () =>
      page.evaluate("[...document.querySelectorAll('[role=listbox]')].at(-1).scrollTo(0, 1e6)"),
    );
    expect(excess(later)).toEqual([]);
    expect(tab.problems).toEqual([]);
  });
});
