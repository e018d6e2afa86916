import type { Locator, Page } from 'playwright-core';
import { describe, expect } from 'vitest';
import { done } from '../server/support/client.ts';
import { chooseOption, PHONE, untilSettled } from './support/browser.ts';
import { expectFocus, tabTo } from './support/keyboard.ts';
import { ask, chooseAction, developerKey } from './support/policies.ts';
import { type ConsoleStand, it } from './support/stand.ts';

let stand: ConsoleStand;
let http: string;
it.beforeAll(async ({ stand: shared }) => {
  stand = shared;
  http = stand.server.http;
});

const manage = (method: string, path: string, body?: object) => done(http, method, path, { token: stand.token, body });
const policy = async (name: string) => (await manage('GET', `/v1/iam/policies/${name}`)).body;

const DAYS = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'];
const clock = (hour: number) => `${String(hour).padStart(2, '0')}:00`;

/** @param hour of the week, 0 = Monday 00:00; any whole number */
function cell(page: Page, hour: number): Locator {
  const ofWeek = ((hour % 168) + 168) % 168;
  const start = ofWeek % 24;
  return page.getByRole('gridcell', {
    name: `${DAYS[Math.floor(ofWeek / 24)]} ${clock(start)} to ${clock(start + 1)}`,
  });
}

/** The hour of the week by UTC, which is the tenant's clock. */
function hourNow(): number {
  const now = new Date();
  return ((now.getUTCDay() + 6) % 7) * 24 + now.getUTCHours();
}

/** Says which hours of the week are lit. */
function lit(page: Page): Promise<number> {
  return page.getByRole('gridcell', { selected: true }).count();
}

describe('a policy drawn in the week grid', () => {
  it('denies a request through Envoy in a lit hour, and no longer after its hours are darkened', async () => {
    const { key } = await developerKey(stand);
    await expect.poll(() => ask(stand, key)).toBe('200');
    const { page, problems } = await stand.asAdmin({ path: '/console/new-policy' });
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill('Drawn Hours');
    await page.getByText('A name must be 1 to 63').first().waitFor();
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill('drawn-hours');
    await chooseAction(page, 'chat:*');
    await page.getByRole('radio', { name: 'Holders of roles' }).click();
    await page.getByRole('searchbox', { name: 'Search: Roles' }).fill('developer');
    await chooseOption(page.getByRole('option', { name: 'developer' }));
    await page.getByRole('button', { name: 'Hours of the week' }).click();
    await page.getByText('Denies chat outside Mon-Fri 08:00-18:00 (UTC) to developers.').waitFor();

    await page
      .getByRole('radiogroup', { name: 'Operator of weekly_hours' })
      .getByRole('radio', { name: 'inside' })
      .click();
    await page.getByRole('columnheader', { name: 'All of the week' }).click();
    await expect.poll(() => lit(page)).toBe(168);
    await page.getByText('Denies chat at any time (UTC) to developers.').waitFor();
    // Half a day from now is dark, so the present hour stays lit however long this takes.
    const far = hourNow() + 12;
    await cell(page, far).hover();
    await page.mouse.down();
    await page.mouse.up();
    await expect.poll(() => lit(page)).toBe(167);
    await page.getByRole('button', { name: 'Create policy' }).click();
    await page.getByRole('heading', { level: 1, name: 'drawn-hours' }).waitFor();
    await expect.poll(() => ask(stand, key)).toBe('403 drawn-hours');

    // One dark cell is lit again, then the week is dark, and then one far hour alone is drawn.
    await page.getByRole('columnheader', { name: 'All of the week' }).click();
    await expect.poll(() => lit(page)).toBe(168);
    await page.getByRole('columnheader', { name: 'All of the week' }).click();
    await expect.poll(() => lit(page)).toBe(0);
    await page.getByText('Light at least one hour.').first().waitFor();
    expect(await page.getByRole('button', { name: 'Save policy' }).getAttribute('aria-disabled')).toBe('true');
    await drag(page, cell(page, far), cell(page, far));
    await expect.poll(() => lit(page)).toBe(1);
    await page.getByRole('button', { name: 'Save policy' }).click();
    await page.getByText('Saved. It is in force').waitFor();
    await expect.poll(() => ask(stand, key)).toBe('200');
    expect(problems).toEqual([]);
  });

  it('fills the rectangle of a drag, and takes it back where the drag turns round', async () => {
    await manage('POST', '/v1/iam/policies', {
      name: 'dragged',
      effect: 'deny',
      actions: ['finetuning:write'],
      resources: ['*'],
      conditions: { weekly_hours: { not_in: ['Sun 00:00-01:00'] } },
    });
    const { page, problems } = await stand.asAdmin({ path: '/console/policies/dragged' });
    await drag(page, cell(page, 9), cell(page, 4 * 24 + 20), cell(page, 4 * 24 + 17));
    await page.getByText('Mon-Fri 09:00-18:00, Sun 00:00-01:00', { exact: true }).waitFor();
    await page.getByRole('rowheader', { name: 'All of Saturday' }).click();
    await page.getByRole('columnheader', { name: '00:00 of all days' }).click();
    await page.getByText('Mon-Fri 09:00-18:00, Sat 00:00-24:00, Sun-Fri 00:00-01:00', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Save policy' }).click();
    await page.getByText('Saved. It is in force').waitFor();
    expect((await policy('dragged'))['conditions']).toEqual({
      weekly_hours: { not_in: ['Mon-Fri 09:00-18:00', 'Sat 00:00-24:00', 'Sun-Fri 00:00-01:00'] },
    });
    expect(problems).toEqual([]);
  });

  it('is made, drawn, compared, changed and saved by keyboard alone', async () => {
    const { key } = await developerKey(stand);
    const { page, problems } = await stand.asAdmin({ path: '/console/policies' });
    const { keyboard } = page;
    await page.getByRole('row').nth(1).waitFor();
    await tabTo(page, page.getByRole('button', { name: 'Create a policy' }));
    await keyboard.press('Enter');
    await expectFocus(page.getByRole('textbox', { name: 'Name', exact: true }));
    await keyboard.type('by-keyboard');
    await tabTo(page, page.getByRole('searchbox', { name: 'Search: Actions' }));
    await keyboard.type('chat history');
    await page.getByRole('option', { name: 'chat:read' }).waitFor();
    await tabTo(page, page.getByRole('option', { name: 'chat:read' }));
    await keyboard.press('Space');
    await page.getByRole('button', { name: 'Remove chat:read' }).waitFor();
    await tabTo(page, page.getByRole('button', { name: 'Hours of the week' }));
    await keyboard.press('Enter');
    await expectFocus(page.getByRole('group', { name: 'weekly_hours' }));
    await tabTo(page, page.getByRole('radio', { name: 'outside' }));
    await keyboard.press('ArrowRight');
    await keyboard.press('Space');
    await tabTo(page, cell(page, 8));
    // Up to the names of hours and left to the corner: the whole week, once dark, once lit.
    for (let step = 0; step < 9; step++) await keyboard.press('ArrowLeft');
    await expectFocus(page.getByRole('rowheader', { name: 'All of Monday' }));
    await keyboard.press('ArrowUp');
    await expectFocus(page.getByRole('columnheader', { name: 'All of the week' }));
    await keyboard.press('Space');
    await expect.poll(() => lit(page)).toBe(168);
    // A rectangle of two days and three hours, far from now, is darkened together.
    const far = hourNow() + 84;
    const day = Math.min(Math.floor((far % 168) / 24), 5);
    for (let step = -1; step < day; step++) await keyboard.press('ArrowDown');
    await keyboard.press('Home');
    for (let step = 0; step < 2; step++) await keyboard.press('Shift+ArrowRight');
    await keyboard.press('Shift+ArrowDown');
    await keyboard.press('Space');
    await expect.poll(() => lit(page)).toBe(162);
    await tabTo(page, page.getByRole('button', { name: 'Create policy' }));
    await keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'by-keyboard' }).waitFor();
    await expect.poll(() => ask(stand, key)).toBe('403 by-keyboard');

    // A change of it: its difference is read before it is saved.
    await tabTo(page, page.getByRole('checkbox', { name: 'In force' }));
    await keyboard.press('Space');
    await tabTo(page, page.getByRole('button', { name: 'See what changes' }));
    await keyboard.press('Enter');
    const allowed = page.getByRole('list', { name: 'Newly allowed' });
    await tabTo(page, allowed.getByRole('link', { name: 'Explain one of them' }).first());
    expect(await allowed.textContent()).toContain('may now chat:read');
    await tabTo(page, page.getByRole('button', { name: 'Save policy' }));
    await keyboard.press('Enter');
    await page.getByText('Saved. It is in force').waitFor();
    await expect.poll(() => ask(stand, key)).toBe('200');
    await manage('DELETE', '/v1/iam/policies/by-keyboard');
    expect(problems).toEqual([]);
  });

  it('is turned on a phone, where its arrows follow what is seen', async () => {
    await manage('POST', '/v1/iam/policies', {
      name: 'turned',
      effect: 'deny',
      actions: ['finetuning:write'],
      resources: ['*'],
      conditions: { weekly_hours: { in: ['Mon 08:00-09:00'] } },
    });
    const { page, problems } = await stand.asAdmin({ path: '/console/policies/turned', look: PHONE });
    await cell(page, 8).focus();
    await page.keyboard.press('ArrowDown');
    await expectFocus(cell(page, 9));
    await page.keyboard.press('ArrowRight');
    await expectFocus(cell(page, 24 + 9));
    await page.keyboard.press('Space');
    await page.getByText('Mon 08:00-09:00, Tue 09:00-10:00', { exact: true }).waitFor();
    expect(problems).toEqual([]);
  });

  it('is drawn by a finger that is held, changes one cell by a tap, and lets a finger that moves at once scroll the page', async () => {
    await manage('POST', '/v1/iam/policies', {
      name: 'touched',
      effect: 'deny',
      actions: ['finetuning:write'],
      resources: ['*'],
      conditions: { weekly_hours: { in: ['Mon 08:00-09:00'] } },
    });
    const { page, context, problems } = await stand.signIn({
      path: '/console/policies/touched',
      look: { ...PHONE, hasTouch: true },
    });
    await page.getByText('Tap a cell. Hold it, then drag, to draw.').waitFor();
    await cell(page, 24 + 10).tap();
    await page.getByText('Mon 08:00-09:00, Tue 10:00-11:00', { exact: true }).waitFor();

    const finger = await context.newCDPSession(page);
    await cell(page, 12).scrollIntoViewIfNeeded();
    const scrolled = (): Promise<number> => page.evaluate('scrollY');
    const before = await scrolled();
    await finger.send('Input.dispatchTouchEvent', {
      type: 'touchStart',
      touchPoints: [await middleOf(cell(page, 10))],
    });
    await page.getByText('Mon 08:00-09:00, Mon-Tue 10:00-11:00', { exact: true }).waitFor();
    for (const hour of [11, 24 + 12, 48 + 13]) {
      await finger.send('Input.dispatchTouchEvent', {
        type: 'touchMove',
        touchPoints: [await middleOf(cell(page, hour))],
      });
    }
    await finger.send('Input.dispatchTouchEvent', { type: 'touchEnd', touchPoints: [] });
    await page.getByText('Mon 08:00-09:00, Mon-Wed 10:00-14:00', { exact: true }).waitFor();
    expect(await scrolled()).toBe(before);
    expect(await sums(page)).toEqual([5, 4, 4, 0, 0, 0, 0]);

    const { x, y } = await middleOf(cell(page, 12));
    // Sent together, because a finger that waits for an answer is one that is held.
    const moves = [y, y - 30, y - 60, y - 120, y - 200, y - 300].map((height, step) =>
      finger.send('Input.dispatchTouchEvent', {
        type: step === 0 ? 'touchStart' : 'touchMove',
        touchPoints: [{ x, y: height }],
      }),
    );
    await Promise.all(moves);
    await finger.send('Input.dispatchTouchEvent', { type: 'touchEnd', touchPoints: [] });
    await expect.poll(scrolled).toBeGreaterThan(before + 200);
    expect(await lit(page)).toBe(13);
    expect(problems).toEqual([]);
  });

  it('counts the lit hours of each day and of the week, those over midnight on both days', async () => {
    await manage('POST', '/v1/iam/policies', {
      name: 'counted',
      effect: 'allow',
      actions: ['finetuning:write'],
      resources: ['*'],
      conditions: { weekly_hours: { in: ['Mon-Fri 08:00-18:00', 'Fri 17:00-20:00', 'Sun 22:00-03:00'] } },
    });
    const { page, problems } = await stand.asAdmin({ path: '/console/policies/counted' });
    await page.getByText('57 of 168 h lit').waitFor();
    expect(await sums(page)).toEqual([13, 10, 10, 10, 12, 0, 2]);
    expect(await lit(page)).toBe(57);
    await page.getByText('lit: it allows').waitFor();
    expect(problems).toEqual([]);
  });
});

/** The hours that the grid counts, Monday first. */
async function sums(page: Page): Promise<readonly number[]> {
  const rows = page.getByRole('grid', { name: 'Weekly hours' }).locator('tbody tr');
  const texts = await rows.locator('> :last-child').allTextContents();
  return texts.map((text) => Number(text.replace(' h', '')));
}

async function middleOf(place: Locator): Promise<{ readonly x: number; readonly y: number }> {
  const box = await place.boundingBox();
  if (box === null) throw new Error(`${place} is not on the screen`);
  return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
}

async function drag(page: Page, from: Locator, ...via: readonly Locator[]): Promise<void> {
  // What arrives later above the grid would move the cells away from the pointer.
  await untilSettled(page);
  await from.hover();
  await page.mouse.down();
  for (const place of via) await place.hover();
  await page.mouse.up();
}
