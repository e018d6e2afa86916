/** The requests of a page of the console, and the time at which their data is usable. */

import type { BrowserContext, Page, Request } from 'playwright-core';

export interface Ready {
  /** A selector of the rows. */
  readonly rows: string;
  /** The text that the first of them contains. The comparison ignores case. Absent if it may have another text. */
  readonly text?: string;
  /** There are no rows, and this selector instead. */
  readonly none?: string;
}

export interface Fetched {
  readonly path: string;
  readonly query: URLSearchParams;
  /** The size of the answer's body as it was sent. */
  readonly bytes: number;
  /** The rows of a list; undefined if the answer is no list. */
  readonly rows: number | undefined;
}

export interface Seen {
  /**
   * From the last byte of the answer, or from the action that needs none, to the frame after the one that shows its
   * rows, in which the page takes input again.
   */
  readonly renderMs: number;
  /** From the request of that answer to its last byte. */
  readonly answerMs: number;
  /** From the beginning of the page's load, or of the action, to the same frame. */
  readonly wholeMs: number;
  /** All calls of the API, also later ones. */
  readonly fetched: readonly Fetched[];
}

interface Timed {
  readonly url: string;
  readonly requestStart: number;
  readonly responseEnd: number;
}

const QUIET_MS = 300;
const PATIENCE_MS = 20_000;
const KEPT = 'bench-ready';
/** Another process than the page's reports the end of an answer. The page may have shown it already. */
const TOLD_LATE_MS = 50;

/**
 * In the page: looks at every frame whether the rows are there. Then it waits for one more frame and for the page's own
 * work, and returns that time.
 */
const WATCH = `(() => {
  performance.setResourceTimingBufferSize(5000);
  const isReady = ({ rows, text, none }) => {
    // What is below the screen may wait until somebody looks at it.
    const waits = [...document.querySelectorAll('[aria-busy=true], [class*=skeleton]')];
    if (waits.some((part) => part.getBoundingClientRect().top < innerHeight)) return false;
    if (none !== undefined) return document.querySelector(rows) === null && document.querySelector(none) !== null;
    // The first row decides: keys are also found by the name of their owner, which their rows do not show.
    const first = document.querySelector(rows);
    return first !== null && (text === undefined || first.textContent.toLowerCase().includes(text));
  };
  window.benchWatch = (ready) => new Promise((resolve) => {
    const look = () => {
      if (!isReady(ready)) requestAnimationFrame(look);
      else requestAnimationFrame(() => setTimeout(() => resolve(performance.now())));
    };
    look();
  });
  const kept = sessionStorage.getItem('${KEPT}');
  if (kept !== null) window.benchReady = window.benchWatch(JSON.parse(kept));
})()`;

/**
 * Call it before the window's first page is opened.
 *
 * @param first what the first page of each tab is looked at for
 */
export async function watchAll(context: BrowserContext, first?: Ready): Promise<void> {
  context.setDefaultTimeout(PATIENCE_MS);
  if (first !== undefined) await context.addInitScript(keeping(first, 'if (sessionStorage.length === 0)'));
  await context.addInitScript(WATCH);
}

/** The next page of the tab is looked at for this. */
function keeping(ready: Ready, condition = ''): string {
  return `${condition} sessionStorage.setItem('${KEPT}', ${JSON.stringify(JSON.stringify(ready))})`;
}

/** The calls of the API that a page makes, with their answers. */
class Calls {
  readonly #page: Page;
  readonly #answers: Promise<Fetched>[] = [];
  readonly #open = new Set<Request>();
  #lastMs = performance.now();

  constructor(page: Page) {
    this.#page = page;
    page.on('request', this.#began);
    page.on('requestfinished', this.#ended);
    page.on('requestfailed', this.#failed);
  }

  /** All of them, once there have been no more for a while. */
  async all(): Promise<readonly Fetched[]> {
    while (this.#open.size > 0 || performance.now() - this.#lastMs < QUIET_MS)
      await new Promise((done) => setTimeout(done, 20));
    this.#page.off('request', this.#began);
    this.#page.off('requestfinished', this.#ended);
    this.#page.off('requestfailed', this.#failed);
    return Promise.all(this.#answers);
  }

  readonly #began = (request: Request): void => {
    // The end of other requests, such as the icon, is not always reported.
    if (!isCall(request)) return;
    this.#lastMs = performance.now();
    this.#open.add(request);
  };

  readonly #failed = (request: Request): void => {
    if (!isCall(request)) return;
    this.#lastMs = performance.now();
    this.#open.delete(request);
  };

  readonly #ended = (request: Request): void => {
    if (!isCall(request)) return;
    this.#failed(request);
    this.#answers.push(fetchedBy(request));
  };
}

function isCall(request: Request): boolean {
  return new URL(request.url()).pathname.startsWith('/v1/');
}

async function fetchedBy(request: Request): Promise<Fetched> {
  const { pathname: path, searchParams: query } = new URL(request.url());
  const bytes = (await request.sizes()).responseBodySize;
  const answer = await request.response();
  const body: unknown = await answer?.json().catch(() => undefined);
  const data = typeof body === 'object' && body !== null && 'data' in body ? body.data : undefined;
  return { path, query, bytes, rows: Array.isArray(data) ? data.length : undefined };
}

export interface Watched {
  /** Loads this address, */
  readonly path?: string;
  /** or does this. */
  readonly act?: (page: Page) => Promise<void>;
  readonly ready: Ready;
  /**
   * The API's path whose answer has the rows, or the paths of which the last answer completes them; undefined: none is
   * waited for.
   */
  readonly answer?: string | readonly string[];
}

export async function watch(page: Page, { path, act, ready, answer }: Watched): Promise<Seen> {
  const calls = new Calls(page);
  let beganMs = 0;
  if (path !== undefined) {
    if (page.url() !== 'about:blank') await page.evaluate(keeping(ready));
    await page.goto(path, { waitUntil: 'commit' });
  } else {
    beganMs = await page.evaluate<number>('performance.now()');
    // The call would wait for its value.
    await page.evaluate(`window.benchReady = window.benchWatch(${JSON.stringify(ready)}); undefined`);
    await act?.(page);
  }
  const readyMs =
    await page.evaluate<number>(`Promise.race([window.benchReady, new Promise((_, reject) => setTimeout(() => reject(
    new Error('no ' + ${JSON.stringify(JSON.stringify(ready))} + ' on ' + location + ': ' + document.body.innerText.slice(0, 1000))), ${PATIENCE_MS}))])`);
  const fetched = await calls.all();
  const timed = await page.evaluate<readonly Timed[]>(
    "performance.getEntriesByType('resource').filter(({ name }) => name.includes('/v1/')).map(({ name, requestStart, responseEnd }) => ({ url: name, requestStart, responseEnd }))",
  );
  const awaited = typeof answer === 'string' ? [answer] : (answer ?? []);
  const answers = timed.filter(
    ({ url, requestStart, responseEnd }) =>
      awaited.includes(new URL(url).pathname) &&
      requestStart >= beganMs &&
      responseEnd > 0 &&
      responseEnd <= readyMs + TOLD_LATE_MS,
  );
  const last = answers.toSorted((a, b) => b.responseEnd - a.responseEnd)[0];
  if (answer !== undefined && last === undefined)
    throw new Error(`no answer of ${awaited.join(', ')} came before its rows`);
  return {
    renderMs: Math.max(0, readyMs - (last?.responseEnd ?? beganMs)),
    answerMs: last === undefined ? 0 : last.responseEnd - last.requestStart,
    wholeMs: readyMs - beganMs,
    fetched,
  };
}
