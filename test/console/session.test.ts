import type { Page } from 'playwright-core';
import { describe, expect } from 'vitest';
import { done, login, makeUser } from '../server/support/client.ts';
import { type ConsoleStand, enter, it } from './support/stand.ts';

/** Long enough to sign in, short enough to be renewed several times in a test. */
const ACCESS_SECONDS = 4;
const RENEWALS = 3;

let stand: ConsoleStand;
it.beforeAll(async ({ startConsole }) => {
  stand = await startConsole({ POSTERN_TOKEN_ACCESS_TTL: `${ACCESS_SECONDS}s` });
});

const admin = (token: string) => makeUser(stand.server.http, token, { roles: ['tenant-admin'] });

describe('a session that ends elsewhere', () => {
  it('leads from an open form to the sign-in page, and after the sign-in back to the form with what was typed', async () => {
    const http = stand.server.http;
    const person = await admin(await login(http));
    const other = await admin(await login(http));
    const address = '/console/users?q=person&status=active&open=new';
    const { page, problems } = await stand.signIn({ person, path: address });
    const drawer = page.getByRole('dialog');
    const name = drawer.getByRole('textbox', { name: 'Name', exact: true });
    const stored = (): Promise<string | null> => page.evaluate("sessionStorage.getItem('postern.drafts')");
    const endAndSend = async (): Promise<void> => {
      await done(http, 'DELETE', `/v1/iam/users/${person.id}/sessions`, { token: await login(http) });
      await drawer.getByRole('button', { name: 'Create user' }).click();
      await page.getByText('Your session has ended. Sign in to go on where you were.').waitFor();
    };
    await drawer.getByRole('radio', { name: 'Set it here' }).click();
    await name.fill('Half a name');
    await drawer.getByRole('textbox', { name: 'E-mail address' }).fill('half@example.com');
    await drawer.getByLabel('Password', { exact: true }).fill('a sentence that is secret');
    await endAndSend();
    expect(await page.getByRole('navigation', { name: 'Console' }).count()).toBe(0);
    expect(await stored()).toContain('Half a name');
    expect(await stored()).not.toContain('secret');
    await enter(page, person);
    await expect
      .poll(() => new URL(page.url()).pathname + new URL(page.url()).search)
      .toBe(`${address}&tenant=default`);
    await expect.poll(() => name.inputValue()).toBe('Half a name');
    await drawer.getByText('This is your unsaved input from before the sign-in.').waitFor();

    await drawer.getByLabel('Password', { exact: true }).fill('a sentence that is secret');
    await endAndSend();
    await enter(page, other);
    await expect.poll(() => name.inputValue()).toBe('');
    expect([await stored(), problems]).toEqual([null, []]);
  });
});

describe('two tabs of one session', () => {
  it('renew it silently, each with the other, however often their tokens end', async () => {
    const person = await makeUser(stand.server.http, await login(stand.server.http), { roles: ['tenant-admin'] });
    const tab = await stand.signIn({ person, path: '/console/roles' });
    const first = tab.page;
    const second = await tab.context.newPage();
    const errors: string[] = [];
    second.on('pageerror', (error) => errors.push(error.message));
    await second.goto('/console/policies');
    const renewals: { readonly status: number; readonly page: string }[] = [];
    for (const [name, page] of [
      ['first', first],
      ['second', second],
    ] as const) {
      page.on('response', (response) => {
        if (new URL(response.url()).pathname === '/v1/auth/refresh')
          renewals.push({ status: response.status(), page: name });
      });
    }
    const search = { first: first.getByRole('searchbox').first(), second: second.getByRole('searchbox').first() };
    let round = 0;
    // Both ask at the same time, again and again, until each has outlived several tokens.
    const isOver = (): boolean =>
      ['first', 'second'].every((name) => renewals.filter(({ page }) => page === name).length >= RENEWALS);
    await expect
      .poll(
        async () => {
          round++;
          await Promise.all([search.first.fill(`text ${round}`), search.second.fill(`text ${round}`)]);
          return isOver();
        },
        { timeout: 90_000, interval: 500 },
      )
      .toBe(true);
    expect(renewals.filter(({ status }) => status !== 200)).toEqual([]);
    expect([new URL(first.url()).pathname, new URL(second.url()).pathname]).toEqual([
      '/console/roles',
      '/console/policies',
    ]);
    expect([...tab.problems, ...errors]).toEqual([]);
  }, 120_000);

  it('both show the sign-in page as soon as the session has ended in one of them', async () => {
    const person = await makeUser(stand.server.http, await login(stand.server.http), { roles: ['tenant-admin'] });
    const tab = await stand.signIn({ person, path: '/console/roles' });
    const second = await tab.context.newPage();
    await second.goto('/console/policies?q=hours');
    await second.getByRole('searchbox').first().waitFor();
    await tab.page.getByRole('button', { name: 'Account and sessions' }).click();
    await tab.page.getByRole('menuitem', { name: 'Sign out', exact: true }).click();
    await tab.page.getByRole('button', { name: 'Enter' }).waitFor();
    await second.getByRole('button', { name: 'Enter' }).waitFor();
    expect(new URL(second.url()).searchParams.get('next')).toContain('/policies?q=hour');
    expect(tab.problems).toEqual([]);
  });
});

describe('a server that answers late', () => {
  const HELD = '**/v1/**';

  /** Holds every call of the API until it is released. */
  async function holdCalls(
    page: Page,
  ): Promise<{ readonly held: Promise<void>; readonly release: () => Promise<void> }> {
    const { promise: held, resolve: isHeld } = Promise.withResolvers<void>();
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    await page.route(HELD, async (route) => {
      isHeld();
      await released;
      await route.fallback();
    });
    return {
      held,
      release: async () => {
        release();
        await page.unroute(HELD);
      },
    };
  }

  it('is waited for with the rail on the screen, also by the renewal of the session, and then the page loads', async () => {
    const person = await admin(await login(stand.server.http));
    const { page, problems } = await stand.signIn({ person, path: '/console/roles' });
    await page.clock.install();
    const { held, release } = await holdCalls(page);
    await page.reload({ waitUntil: 'commit' });
    await held;
    await page.getByRole('navigation', { name: 'Console' }).waitFor();
    // Longer than each of the calls that the page makes one after the other may wait for.
    await page.clock.fastForward(8_000);
    expect(await page.getByText('Postern does not answer.').count()).toBe(0);
    await release();
    await page.getByRole('row', { name: 'developer' }).waitFor();
    expect(problems).toEqual([]);
  });

  it('that does not answer is read again by the page itself, which keeps its rail', async () => {
    const person = await admin(await login(stand.server.http));
    const { page } = await stand.signIn({ person, path: '/console/roles' });
    await page.clock.install();
    await page.route(HELD, (route) => route.abort());
    await page.reload({ waitUntil: 'commit' });
    const says = page.getByText('Postern does not answer.');
    await expect
      .poll(async () => {
        await page.clock.runFor(1_000);
        return says.count();
      })
      .toBe(1);
    await page.getByRole('navigation', { name: 'Console' }).waitFor();
    await page.unroute(HELD);
    let reads = false;
    page.once('request', () => {
      reads = true;
    });
    // Only until it reads: while an answer is under way, the clock must not reach the end of its time.
    await expect
      .poll(async () => {
        if (!reads) await page.clock.runFor(1_000);
        return reads;
      })
      .toBe(true);
    await page.getByRole('row', { name: 'developer' }).waitFor();
  });
});
