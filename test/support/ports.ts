/**
 * Ports of loopback for servers whose address has to be known before they start.
 *
 * Between being found free and being listened on, seconds later, nobody else may get one. So they lie below those that the kernel deals
 * out to `listen(0)` and to outgoing connections (from 32768 on Linux, from 49152 elsewhere), each test process has a stretch of its
 * own, and none is dealt again before the whole stretch was.
 */

import { createServer } from 'node:net';

/** Behind 10080, the last that `fetch` refuses to ask ("bad port" of the Fetch standard). */
const FIRST = 10_200;
const STRETCH = 2_500;
const STRETCHES = 9;

const stretch = FIRST + STRETCH * (Number(process.env['VITEST_POOL_ID'] ?? 0) % STRETCHES);
/** Where to begin is left to chance, so that two runs on one machine do not meet. */
let next = Math.floor(Math.random() * STRETCH);

export async function freePort(): Promise<number> {
  for (let tried = 0; tried < STRETCH; tried++) {
    const port = stretch + next;
    next = (next + 1) % STRETCH;
    if (await isFree(port)) return port;
  }
  throw new Error(`none of the ports ${stretch} to ${stretch + STRETCH - 1} is free on 127.0.0.1`);
}

/** `127.0.0.1:PORT` */
export async function freeAddress(): Promise<string> {
  return `127.0.0.1:${await freePort()}`;
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
