/** A real Chromium, and pages of it that remember everything that went wrong on them. */

import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { expect, onTestFinished } from 'vitest';
import { findParts } from '../../directory/servers/packages.ts';

const CHROMIUM = '/usr/bin/chromium';
const PATIENCE_MS = 30_000;

export async function openBrowser(): Promise<Browser> {
  const missing = (await findParts(['chromium'])).get('chromium');
  if (missing !== undefined) throw new Error(missing);
  // Root has no sandbox of Chromium's to run in, and a container's /dev/shm is small.
  return chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'] });
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
  /** Errors of scripts, messages of the console and violations of the Content-Security-Policy, up to now. Refused calls are not among them. */
  readonly problems: readonly string[];
}

export const DESKTOP: Look = { width: 1440, height: 900 };
export const PHONE: Look = { width: 390, height: 844 };

/** A tab with cookies and storage of its own. One that a test opens is closed with the test. */
export async function openTab(
  browser: Browser,
  origin: string,
  { theme = 'light', width = 1440, height = 900, hasTouch = false }: Look = {},
): Promise<Tab> {
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
  // A page goes on asking and drawing: those of tests that are over would slow the others down.
  if (expect.getState().currentTestName !== undefined) onTestFinished(() => context.close());
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  const problems: string[] = [];
  page.on('pageerror', (error) => problems.push(`error: ${error.message}`));
  page.on('console', (message) => {
    const { url } = message.location();
    // A refusal that the screen shows is no fault of the page; a file of its own that is missing is.
    const isRefusal = message.text().startsWith('Failed to load resource') && new URL(url, origin).pathname.startsWith('/v1/');
    if (['error', 'warning'].includes(message.type()) && !isRefusal) problems.push(`${message.type()}: ${message.text()}`);
  });
  return { page, context, problems };
}

const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

interface AxeViolation {
  readonly id: string;
  readonly impact: string;
  readonly help: string;
  readonly nodes: readonly { readonly target: readonly string[]; readonly failureSummary: string }[];
}

/** The serious and critical violations of WCAG that axe-core finds on the page as it stands: one sentence for each element. */
export async function accessibilityFaults(page: Page): Promise<readonly string[]> {
  await page.evaluate(await readFile(AXE, 'utf8'));
  const violations: readonly AxeViolation[] = await page.evaluate('axe.run(document).then(({ violations }) => violations)');
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, help, nodes }) =>
      nodes.map(({ target, failureSummary }) => `${id}: ${help}: ${target.join(' ')}: ${failureSummary}`),
    );
}
