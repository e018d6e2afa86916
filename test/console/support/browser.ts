/** A real Chromium, and pages of it that remember everything that went wrong on them. */

import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { type Browser, type BrowserContext, chromium, type Locator, type Page, type Request } from 'playwright-core';
import { expect, onTestFinished, TestRunner } from 'vitest';
import { findParts } from '../../directory/servers/packages.ts';

/** Chromium without the parts that only a window needs: half the processor time for each page. */
const CHROMIUM = '/usr/bin/chromium-headless-shell';
/** Root has no sandbox of Chromium's to run in, and a container's /dev/shm is small. */
const FOR_ROOT = ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'];
/** Tests run each script a few times: the optimizing compiler would cost more than it saves, the quick one does not. */
const FOR_SHORT_LIVES = ['--js-flags=--no-opt --single-threaded-gc', '--num-raster-threads=1'];
/** Longer than a machine of continuous integration may stand still. */
const PATIENCE_MS = 60_000;

export async function openBrowser(): Promise<Browser> {
  const missing = (await findParts(['chromium'])).get('chromium');
  if (missing !== undefined) throw new Error(missing);
  return chromium.launch({ executablePath: CHROMIUM, args: [...FOR_ROOT, ...FOR_SHORT_LIVES] });
}

export interface Look {
  readonly theme?: 'light' | 'dark';
  /** Pixels. */
  readonly width?: number;
  readonly height?: number;
  /** The pointer is a finger. */
  readonly hasTouch?: boolean;
}

export interface Tab {
  readonly page: Page;
  readonly context: BrowserContext;
  /**
   * Errors of scripts, messages of the console and violations of the Content-Security-Policy, up to now. Refused calls
   * are not among them.
   */
  readonly problems: readonly string[];
}

export const DESKTOP: Look = { width: 1440, height: 900 };
export const PHONE: Look = { width: 390, height: 844 };

/**
 * Pages that serve one test after another. A page of a site that the same page showed before costs half of what it
 * costs in a new page: the browser keeps the compiled scripts with the process of the page.
 */
export class PagePool {
  readonly #make: () => Promise<Page>;
  readonly #clean: (page: Page) => Promise<void>;
  readonly #idle: Page[] = [];

  /** @param clean takes from a page what the next test must not find besides what its `sessionStorage` keeps */
  constructor(make: () => Promise<Page>, clean: (page: Page) => Promise<void>) {
    this.#make = make;
    this.#clean = clean;
  }

  /** In a test: until the test ends. Otherwise until the file ends. */
  async take(origin: string, look: Look = {}): Promise<Tab> {
    const page = this.#idle.pop() ?? (await this.#make());
    if (TestRunner.getCurrentTest() !== undefined) onTestFinished(() => this.#putBack(page));
    await applyLook(page, look);
    return watch(page, origin);
  }

  async #putBack(page: Page): Promise<void> {
    for (const event of LISTENED) page.removeAllListeners(event);
    await page.unrouteAll({ behavior: 'ignoreErrors' });
    try {
      await this.#clean(page);
      await page.evaluate('sessionStorage.clear()');
      await page.mouse.move(0, 0);
    } catch {
      // The page is on its way to another one, or its server has ended.
      await closePage(page);
      return;
    }
    this.#idle.push(page);
  }
}

/**
 * Closes a page that may be on its way to another one. Chromium may keep a page that is closed during a navigation, and
 * the call then never ends.
 */
async function closePage(page: Page): Promise<void> {
  await page.goto('about:blank').catch(() => undefined);
  await page.close();
}

/** A page without a script, of the origin of the console: a page of another origin would end the process of the page. */
const PLAIN = '/console/mark.svg';

/** The events that tests listen to. */
const LISTENED = [
  'console',
  'pageerror',
  'request',
  'requestfailed',
  'requestfinished',
  'response',
  'download',
] as const;

/** Pages with cookies and storage of their own, which are empty when a test gets one. */
export function visitors(makeContext: () => Promise<BrowserContext>): PagePool {
  const make = async (): Promise<Page> => (await makeContext()).newPage();
  return new PagePool(make, async (page) => {
    const context = page.context();
    for (const other of context.pages()) if (other !== page) await closePage(other);
    // Ends the page first: without its session, it would store what is typed in it.
    await page.goto(PLAIN);
    await context.clearCookies();
    await page.evaluate('localStorage.clear()');
  });
}

/** A page for a finger, with cookies and storage of its own, which is closed with the test. */
export async function openTouchTab(browser: Browser, origin: string, look: Look): Promise<Tab> {
  const context = await openContext(browser, origin, look);
  onTestFinished(() => context.close());
  return watch(await context.newPage(), origin);
}

/** Changes an open page to the theme and the size. */
export async function applyLook(page: Page, { theme = 'light', width = 1440, height = 900 }: Look): Promise<void> {
  await page.emulateMedia({ colorScheme: theme });
  await page.setViewportSize({ width, height });
}

/** Cookies and storage of their own for the tabs in it. */
export async function openContext(
  browser: Browser,
  origin: string,
  { theme = 'light', width = 1440, height = 900, hasTouch = false }: Look = {},
): Promise<BrowserContext> {
  const context = await browser.newContext({
    baseURL: origin,
    colorScheme: theme,
    viewport: { width, height },
    hasTouch,
    isMobile: hasTouch,
    reducedMotion: 'reduce',
    locale: 'en-GB',
    timezoneId: 'Europe/Berlin',
    permissions: ['clipboard-read', 'clipboard-write'],
  });
  context.setDefaultTimeout(PATIENCE_MS);
  return context;
}

function watch(page: Page, origin: string): Tab {
  const problems: string[] = [];
  page.on('pageerror', (error) => problems.push(`error: ${error.message}`));
  page.on('console', (message) => {
    const { url } = message.location();
    // A refusal that the screen shows is no fault of the page; a file of its own that is missing is.
    const isRefusal =
      message.text().startsWith('Failed to load resource') && new URL(url, origin).pathname.startsWith('/v1/');
    if (['error', 'warning'].includes(message.type()) && !isRefusal)
      problems.push(`${message.type()}: ${message.text()}`);
  });
  // The page of the test before ends with the first load.
  page.once('framenavigated', () => problems.splice(0));
  noteRequests(page);
  return { page, context: page.context(), problems };
}

const underWay = new WeakMap<Page, Set<Request>>();

function noteRequests(page: Page): void {
  const open = new Set<Request>();
  underWay.set(page, open);
  page.on('request', (request) => {
    // The requests of the page before end with it.
    if (request.isNavigationRequest()) open.clear();
    open.add(request);
  });
  page.on('requestfinished', (request) => open.delete(request));
  page.on('requestfailed', (request) => open.delete(request));
}

/**
 * Opens a screen of the console as its links do, which costs half of a load. The page for an unknown address is between
 * the two screens, so the heading after it is the new screen's.
 */
export async function visit(page: Page, path: string): Promise<void> {
  const unknown = page.getByRole('heading', { level: 1, name: 'There is no such page' });
  await page.evaluate("history.pushState(null, '', '/console/no-such-page')");
  await unknown.waitFor();
  await page.evaluate(`history.pushState(null, '', ${JSON.stringify(path)})`);
  await unknown.waitFor({ state: 'detached' });
}

/** A page that a test left in a state without a way on costs the next one this and a load. */
const LEAVE_MS = 5_000;

/**
 * Takes from an open page what the test before left in it: the screen, with all that is open in the shell, and the answers
 * that the console keeps. The page for a new password stands outside of the shell, and asks the server for nothing. The
 * scripts, which cost most of a load, stay, and so does the session.
 */
export async function leaveScreens(page: Page): Promise<void> {
  await page.evaluate("history.pushState(null, '', '/console/set-password')");
  await page.getByRole('heading', { level: 1, name: 'Set your password' }).waitFor({ timeout: LEAVE_MS });
  await page.evaluate(`(async () => {
    const addresses = [...document.querySelectorAll('link[rel=modulepreload]')].map(({ href }) => href);
    const exported = (await Promise.all(addresses.map((address) => import(address)))).flatMap((module) => Object.values(module));
    const caches = exported.filter((value) => typeof value?.getQueryCache === 'function');
    if (caches.length === 0) throw new Error('The console has no cache of answers.');
    // The answer to a change may lead to another screen.
    const endMs = performance.now() + ${LEAVE_MS};
    while (caches.some((cache) => cache.isMutating() > 0)) {
      if (performance.now() > endMs) throw new Error('A change has no answer.');
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    for (const cache of caches) cache.clear();
  })()`);
}

/**
 * Resolves to the parts of the page that say that they are loading, as soon as there are none or the time is up. Without
 * a heading, the page itself is loading. It polls inside the page, because a poll from the test costs several messages
 * between three processes.
 */
const LOADING = `new Promise((resolve) => {
  const endMs = performance.now() + ${PATIENCE_MS};
  const look = () => {
    const loading = [
      ...(document.querySelector('h1') === null ? ['the page'] : []),
      ...[...document.querySelectorAll('[aria-busy=true], [data-loading]')].map(({ outerHTML }) => outerHTML.slice(0, 200)),
    ];
    if (loading.length === 0 || performance.now() > endMs) resolve(loading);
    else setTimeout(look, 50);
  };
  look();
})`;

/**
 * Waits until the screen has its heading, no part of it is loading, and it waits for no answer. That the network is
 * idle says less: on a busy machine, it is before the scripts of the page ask for anything.
 */
export async function untilSettled(page: Page): Promise<void> {
  const requested = (): readonly string[] => [...(underWay.get(page) ?? [])].map((request) => request.url());
  for (;;) {
    expect(await page.evaluate<readonly string[]>(LOADING)).toEqual([]);
    if (requested().length === 0) return;
    // An answer may bring more to load.
    await expect.poll(requested, { timeout: PATIENCE_MS }).toEqual([]);
  }
}

/**
 * Chooses an option of a list once the pointer could. A list takes its place after it has opened, and again when its
 * options or the form below change. Playwright's click would scroll to an option that moves then, which closes the list.
 */
export async function chooseOption(option: Locator): Promise<void> {
  let before = '';
  await expect
    .poll(async () => {
      const box = await option.boundingBox();
      const isStill = JSON.stringify(box) === before;
      before = JSON.stringify(box);
      const { x = 0, y = 0, width = 0, height = 0 } = box ?? {};
      const shown = `document.elementFromPoint(${x + width / 2}, ${y + height / 2})?.closest('[role=option]')?.textContent`;
      return isStill && (await option.page().evaluate(shown)) === (await option.textContent());
    })
    .toBe(true);
  await option.dispatchEvent('click');
}

const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

interface AxeViolation {
  readonly id: string;
  readonly impact: string;
  readonly help: string;
  readonly tags: readonly string[];
  readonly nodes: readonly { readonly target: readonly string[]; readonly failureSummary: string }[];
}

/**
 * The looks in which every screen must be usable. The page itself is the same in all of them: only styles depend on
 * theme and width.
 */
const LOOKS = [
  { name: 'light at 1440 px', look: { ...DESKTOP, theme: 'light' }, rules: 'all' },
  { name: 'dark at 1440 px', look: { ...DESKTOP, theme: 'dark' }, rules: 'color' },
  { name: 'dark at 390 px', look: { ...PHONE, theme: 'dark' }, rules: 'color' },
  { name: 'light at 390 px', look: { ...PHONE, theme: 'light' }, rules: 'all' },
] as const;

/**
 * The faults of the page as it stands, in both themes and at both widths, as sentences that begin with the look:
 * violations of WCAG 2.2 AA that axe-core finds, and whether the page is wider than the screen. A change
 * of theme changes colors only, so the dark theme is checked by the rules for colors. Leaves the page in the first
 * look, which is the default of a tab.
 *
 * A test takes the steps between two states as on a phone, where controls have the least room: other tests take them on
 * a desktop.
 *
 * @param picture saves a picture of each look by this name in the folder that POSTERN_TEST_PICTURES names
 */
export async function faultsInEveryLook(page: Page, picture?: string): Promise<readonly string[]> {
  await untilSettled(page);
  const faults: string[] = [];
  for (const { name, look, rules } of LOOKS) {
    await applyLook(page, look);
    const folder = process.env['POSTERN_TEST_PICTURES'];
    if (folder !== undefined && picture !== undefined) {
      await page.screenshot({ path: `${folder}/${`${picture} ${name}`.replaceAll(/\W+/g, '-')}.png`, fullPage: true });
    }
    const found = [...(await accessibilityFaults(page, rules))];
    if (!(await fitsScreen(page))) found.push('the page is wider than the screen');
    faults.push(...found.map((fault) => `${name}: ${fault}`));
  }
  await applyLook(page, DESKTOP);
  return faults;
}

/** Parts that measure themselves take the new width some frames after the others. */
function fitsScreen(page: Page): Promise<boolean> {
  return page.evaluate<boolean>(`new Promise((resolve) => {
    const endMs = performance.now() + 5000;
    const look = () => {
      const fits = document.documentElement.scrollWidth <= innerWidth;
      if (fits || performance.now() > endMs) resolve(fits);
      else requestAnimationFrame(look);
    };
    look();
  })`);
}

/**
 * The texts of the options, and the placeholders of the fields, that are wider than their places. An input does not say
 * how wide its placeholder is, so that is measured in an element with the same text and font.
 */
export async function cutTexts(page: Page): Promise<readonly string[]> {
  return page.evaluate(`(() => {
    const isCut = ({ scrollWidth, clientWidth }) => scrollWidth > clientWidth;
    const options = [...document.querySelectorAll('[role=listbox], [role=option], [role=option] *')];
    const fields = [...document.querySelectorAll('input[placeholder]')].filter((field) => {
      if (!field.checkVisibility()) return false;
      const style = getComputedStyle(field, '::placeholder');
      const text = document.createElement('span');
      text.textContent = field.placeholder;
      for (const name of style) if (/^(font|letter|word|text)-/.test(name)) text.style.setProperty(name, style.getPropertyValue(name));
      Object.assign(text.style, { position: 'absolute', whiteSpace: 'pre' });
      document.body.append(text);
      const { width } = text.getBoundingClientRect();
      text.remove();
      const { paddingLeft, paddingRight } = getComputedStyle(field);
      return width > field.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
    });
    return [
      ...options.filter((one) => isCut(one) && getComputedStyle(one).overflowX !== 'visible').map((one) => one.textContent),
      ...fields.map(({ placeholder }) => placeholder),
    ];
  })()`);
}

/** Axe-core then leaves out the paths of the elements that are right, and requests no style sheet again. */
const FAULTS_ONLY = "resultTypes: ['violations'], preload: false";

/**
 * A tag turns on its rules of level AAA too, which axe-core leaves off by itself and which the console does not have to
 * meet.
 */
const RULES = {
  // The first is off by default in axe-core. The second is neither of WCAG nor serious, and reads every element.
  all: `{ ${FAULTS_ONLY}, rules: { 'target-size': { enabled: true }, region: { enabled: false } } }`,
  color: `{ ${FAULTS_ONLY}, runOnly: { type: 'tag', values: ['cat.color'] }, rules: { 'color-contrast-enhanced': { enabled: false } } }`,
} as const;

/** Levels A and AA of WCAG 2.0, 2.1 and 2.2. */
const WCAG = /^wcag2\d?aa?$/;
/** Rules beyond WCAG that the console meets: headings in order, and no column without a name. */
const STRUCTURE = new Set(['heading-order', 'empty-table-header']);

/**
 * The violations of WCAG 2.2 AA and of the structure that axe-core finds on the page as it stands: one sentence for each
 * element.
 */
export async function accessibilityFaults(page: Page, rules: keyof typeof RULES = 'all'): Promise<readonly string[]> {
  if (!(await page.evaluate<boolean>("'axe' in globalThis"))) await page.evaluate(await readFile(AXE, 'utf8'));
  const violations: readonly AxeViolation[] = await page.evaluate(
    `axe.run(document, ${RULES[rules]}).then(({ violations }) => violations)`,
  );
  return violations
    .filter(
      ({ id, impact, tags }) =>
        impact === 'serious' || impact === 'critical' || STRUCTURE.has(id) || tags.some((tag) => WCAG.test(tag)),
    )
    .flatMap(({ id, help, nodes }) =>
      nodes.map(({ target, failureSummary }) => `${id}: ${help}: ${target.join(' ')}: ${failureSummary}`),
    );
}
