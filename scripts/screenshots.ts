/**
 * `npm run screenshots [NAME…] [--to FOLDER] [--whole]`: pictures of the console's main screens on the demonstration's
 * data, at 1440 and 390 px, light and dark. Fails if they are too large together.
 *
 * --to: another folder than docs/screenshots. --whole: the whole page, not only what fits on a screen.
 */

import { mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { Browser, Page } from 'playwright-core';
import { launchChromium } from './lib/chromium.ts';
import { type DemoStand, startDemoStand } from './lib/demo-stand.ts';

const FOLDER = fileURLToPath(new URL('../docs/screenshots', import.meta.url));
const MAX_BYTES = 2_000_000;
const QUALITY = 72;
const PATIENCE_MS = 20_000;

const SIZES = [
  { name: '1440', width: 1440, height: 960 },
  { name: '390', width: 390, height: 844 },
] as const;
const THEMES = ['light', 'dark'] as const;

interface Screen {
  readonly path: string;
  /** Brings the page to what is to be seen. */
  readonly before?: (page: Page) => Promise<void>;
}

const SCREENS: Readonly<Record<string, Screen>> = {
  overview: { path: '/console/?tenant=acme' },
  keys: { path: '/console/keys?tenant=acme' },
  connect: { path: '/console/connect?tenant=acme' },
  users: { path: '/console/users?tenant=acme' },
  user: {
    path: '/console/users?tenant=acme&q=brandt',
    before: async (page) => {
      await page.getByRole('row', { name: 'Jonas Brandt' }).click();
      await page.getByRole('heading', { level: 1, name: 'Jonas Brandt' }).waitFor();
    },
  },
  policy: { path: '/console/policies/office-hours?tenant=acme' },
  explain: {
    path: '/console/?tenant=acme',
    before: async (page) => {
      await page
        .getByRole('link', { name: /^Explain req_/ })
        .first()
        .click();
      await page.getByText(/decided at step \d+ of/).waitFor();
    },
  },
  usage: { path: '/console/usage?tenant=acme' },
  audit: { path: '/console/audit?tenant=acme' },
};

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { to: { type: 'string', default: FOLDER }, whole: { type: 'boolean', default: false } },
});
const unknown = positionals.filter((name) => !Object.hasOwn(SCREENS, name));
if (unknown.length > 0)
  throw new Error(`There is no screen ${unknown.join(', ')}; there are ${Object.keys(SCREENS).join(', ')}.`);

// First, so that a missing browser is told at once and nothing is removed for it.
const browser = await launchChromium().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
});
try {
  await mkdir(options.to, { recursive: true });
  if (positionals.length === 0) await removePictures(options.to);
  const stand = await startDemoStand();
  try {
    for (const theme of THEMES) for (const size of SIZES) await takeAll(browser, stand, theme, size);
  } finally {
    await stand.close();
  }
} finally {
  await browser.close();
}
const sizes = await Promise.all(
  (await pictures(options.to)).map(async (name) => (await stat(join(options.to, name))).size),
);
const bytes = sizes.reduce((sum, size) => sum + size, 0);
console.log(`${sizes.length} pictures, ${Math.round(bytes / 1000)} kB in ${options.to}`);
if (bytes > MAX_BYTES) {
  console.error(`They may have ${MAX_BYTES / 1000} kB together.`);
  process.exitCode = 1;
}

async function takeAll(
  browser: Browser,
  { url, email, password }: DemoStand,
  theme: (typeof THEMES)[number],
  { name: size, width, height }: (typeof SIZES)[number],
): Promise<void> {
  const context = await browser.newContext({
    baseURL: url,
    viewport: { width, height },
    colorScheme: theme,
    reducedMotion: 'reduce',
    locale: 'en-GB',
    timezoneId: 'Europe/Berlin',
  });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  await page.goto('/console/');
  await page.getByRole('textbox', { name: 'E-mail address' }).fill(email);
  await page.locator('input[name=password]').fill(password);
  await page.getByRole('button', { name: 'Enter' }).click();
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
  for (const [name, { path, before }] of Object.entries(SCREENS)) {
    if (positionals.length > 0 && !positionals.includes(name)) continue;
    await page.goto(path);
    await settled(page);
    await before?.(page);
    await settled(page);
    await writeFile(join(options.to, `${name}.${size}.${theme}.webp`), await picture(page));
  }
  await context.close();
}

/** Nothing is loading any more, and the fonts are there. */
async function settled(page: Page): Promise<void> {
  await page.waitForLoadState('networkidle');
  await page.waitForFunction(
    'document.querySelector("h1") !== null && document.querySelector("[aria-busy=true], [data-loading]") === null && document.fonts.status === "loaded"',
  );
}

/** WebP, which only the browser itself makes. */
async function picture(page: Page): Promise<Buffer> {
  const devtools = await page.context().newCDPSession(page);
  const { data } = await devtools.send('Page.captureScreenshot', {
    format: 'webp',
    quality: QUALITY,
    captureBeyondViewport: options.whole,
    ...(options.whole ? { clip: await wholePage(page) } : {}),
  });
  await devtools.detach();
  return Buffer.from(data, 'base64');
}

async function wholePage(page: Page) {
  const box = await page.locator('html').boundingBox();
  return { x: 0, y: 0, width: box?.width ?? 0, height: box?.height ?? 0, scale: 1 };
}

async function pictures(folder: string): Promise<readonly string[]> {
  return (await readdir(folder)).filter((name) => name.endsWith('.webp'));
}

async function removePictures(folder: string): Promise<void> {
  for (const name of await pictures(folder)) await rm(join(folder, name));
}
