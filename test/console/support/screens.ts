/**
 * Screens in a page whose console is open already. A load costs more than twice as much: it compiles every script again.
 *
 * Between two tests, the console goes to a page outside its frame, so that React ends the frame and the screen with all
 * that they hold, watch and request. Between two screens of a test, it goes to the page for an unknown address, and the
 * frame stays, as it does for a link. The router and the cache of answers come from React's own tree.
 */

import type { Page } from 'playwright-core';

/** Requests nothing, and removes the fragment of its address as soon as it is shown. */
const OUTSIDE = '/console/set-password';
const UNKNOWN = '/console/no-such-page';

/** The screen is gone after a few frames. A page that still shows it is loaded again. */
const MAX_WAIT_MS = 10_000;

/** Polls inside the page, and resolves to false if the time is up. */
const UNTIL = `async (isSo) => {
  const endMs = performance.now() + ${MAX_WAIT_MS};
  while (!isSo()) {
    if (performance.now() > endMs) return false;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  return true;
}`;

const SHOWS_UNKNOWN = "document.querySelector('h1')?.textContent === 'There is no such page'";

/**
 * Leaves the screen, and forgets its answers. Resolves to the router; undefined: the page has no console, its clock is the
 * test's, a change is under way, or a part beside the screen is not as after a load.
 *
 * @param isEnd true: the frame ends too
 */
const LEAVE = `async (isEnd) => {
  const root = document.getElementById('root');
  const container = Object.keys(root ?? {}).find((name) => name.startsWith('__reactContainer$'));
  if (container === undefined || '__pwClock' in globalThis) return undefined;
  let queries, router;
  for (let fiber = root[container].stateNode.current; fiber !== null; fiber = fiber.child) {
    queries ??= fiber.memoizedProps?.client;
    router ??= fiber.memoizedProps?.router;
  }
  // The answer to a change may lead to another screen.
  const isQuiet = () => queries?.isMutating() === 0 && router !== undefined;
  if (!isQuiet()) return undefined;
  const isOutside = () => location.pathname === '${OUTSIDE}' && location.hash === '' && document.querySelector('aside') === null;
  const isUnknown = () => location.pathname === '${UNKNOWN}' && ${SHOWS_UNKNOWN};
  const isAway = () => isOutside() || (!isEnd && isUnknown());
  if (!isAway()) {
    router.history.push(isEnd ? '${OUTSIDE}#left' : '${UNKNOWN}', {}, { ignoreBlocker: true });
    if (!(await (${UNTIL})(isAway))) return undefined;
  }
  if (!isQuiet()) return undefined;
  queries.removeQueries(isEnd ? {} : { type: 'inactive' });
  for (const element of document.body.children) {
    if (element.matches('[data-live-announcer]')) for (const log of element.children) log.replaceChildren();
    else if (!element.matches('#root, noscript, script')) return undefined;
  }
  const isStyled = [document.documentElement, document.body, root].some(({ style, inert }) => style.length > 0 || inert);
  return isStyled ? undefined : router;
}`;

/** Resolves to false if the page needs a load to show the screen. */
export function visitIfOpen(page: Page, path: string): Promise<boolean> {
  return page.evaluate(`(${LEAVE})(false).then((router) => {
    if (router === undefined) return false;
    const wasUnknown = ${SHOWS_UNKNOWN};
    router.history.push(${JSON.stringify(path)}, {}, { ignoreBlocker: true });
    return !wasUnknown || (${UNTIL})(() => !(${SHOWS_UNKNOWN}));
  })`);
}

/** Opens another screen of a user that is signed in, with answers of its own. Loads the page only if it needs that. */
export async function visit(page: Page, path: string): Promise<void> {
  if (!(await visitIfOpen(page, path))) await page.goto(path);
  await untilOpen(page);
}

/**
 * Leaves the console at the end of a test. Resolves to false if the page must not stay as it is: it may still change, or
 * the next test would need a load.
 */
export function leaveConsole(page: Page): Promise<boolean> {
  return page.evaluate(`(${LEAVE})(true).then((router) => {
    delete document.documentElement.dataset.theme;
    getSelection().removeAllRanges();
    scrollTo(0, 0);
    return router !== undefined;
  })`);
}

/**
 * Empties the storages of the page's origin: drafts, the theme, the tenants of the last visits.
 *
 * @param isSignedIn true: it stays known that the browser has a session (`console/src/api/client.ts`)
 */
export async function clearStorage(page: Page, isSignedIn: boolean): Promise<void> {
  await page.evaluate(`(() => {
    sessionStorage.clear();
    for (const name of Object.keys(localStorage)) {
      if (!${isSignedIn} || name !== 'postern.signed-in') localStorage.removeItem(name);
    }
  })()`);
}

/** Waits until the console has its frame, and knows its user. */
export async function untilOpen(page: Page): Promise<void> {
  // The rail is there before the server has said whose session it is.
  await page
    .getByRole('button', { name: 'Account and sessions' })
    .or(page.getByRole('button', { name: 'Menu' }))
    .first()
    .waitFor();
}
