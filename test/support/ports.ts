/**
 * Ports of loopback for servers whose address has to be known before they start.
 *
 * A port is listened on seconds after it was found free, and no other process may get it before. The ports are
 * therefore below those that the kernel gives to `listen(0)` and to outgoing connections (from 32768 on Linux, from
 * 49152 elsewhere), each test process has a range of its own, and a port is reused only after the whole range was used.
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
