/**
 * Tries an installed server: it starts against a real PostgreSQL, answers its health check, logs a person in, decides,
 * and drains.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { decider, login, makeKey } from '../../../test/server/support/client.ts';
import { freeAddress } from '../../../test/support/ports.ts';
import type { Started } from './jail.ts';

export interface TrialParts {
  /** Starts `postern` with these words, with these variables over an empty environment. */
  readonly start: (words: readonly string[], env: Readonly<Record<string, string>>) => Started;
  /** The settings that name the database and `secret-key`. */
  readonly store: Readonly<Record<string, string>>;
  readonly version: string;
}

const ADMIN = { email: 'admin@localhost', password: 'the administrator of a trial' };
const READY_LIMIT_MS = 120_000;
/** Over `drain.notice` and `drain.timeout` together. */
const DRAIN_LIMIT_MS = 90_000;
const POLL_MS = 300;
const KEPT_CHARS = 4_000;

/** Returns one line for each thing that held. Rejects with what the server wrote when one did not. */
export async function trial({ start, store, version }: TrialParts): Promise<string[]> {
  const [http, grpc, admin] = [await freeAddress(), await freeAddress(), await freeAddress()];
  const env = {
    ...store,
    POSTERN_BOOTSTRAP_PASSWORD: ADMIN.password,
    POSTERN_HTTP_LISTEN: http,
    POSTERN_GRPC_LISTEN: grpc,
    POSTERN_ADMIN_LISTEN: admin,
  };
  const held: string[] = [];
  const hold = (what: string, isSo: boolean): void => {
    if (!isSo) throw new Error(`not so: ${what}`);
    held.push(what);
  };
  const shown = await outcomeOf(start(['--version'], env));
  hold(`postern --version says ${version}`, shown.code === 0 && shown.text.trim() === version);
  const server = start(['serve'], env);
  const ended = outcomeOf(server);
  try {
    await untilReady(admin, ended);
    const health = await outcomeOf(start(['health'], env));
    hold('the health check exits 0', health.code === 0);
    const token = await login(http, ADMIN);
    const { key } = await makeKey(http, token, { scopes: ['chat:read'] });
    const gate = decider(grpc);
    try {
      hold('a check with an API key is allowed', (await gate.decide(key)) === 'allow');
      hold('a check with a wrong key is denied', (await gate.decide(`${key}x`)) === 'invalid_credential');
    } finally {
      gate.close();
    }
    const [page, docs] = await Promise.all([fetch(`http://${http}/console/`), fetch(`http://${http}/docs`)]);
    hold('/console and /docs are served', page.ok && docs.ok);
    await server.terminate();
    const drained = await Promise.race([ended, sleep(DRAIN_LIMIT_MS, undefined, { ref: false })]);
    hold('SIGTERM drains it, and it exits 0', drained?.code === 0);
    const unhealthy = await outcomeOf(start(['health'], env));
    hold('without a server the health check exits 1', unhealthy.code === 1);
    return held;
  } catch (error) {
    server.child.kill('SIGKILL');
    const { text } = await ended;
    throw new Error(`${error instanceof Error ? error.message : String(error)}\n${text}`, { cause: error });
  }
}

interface Outcome {
  readonly code: number | null;
  /** The end of all that it wrote. */
  readonly text: string;
}

function outcomeOf({ child }: Started): Promise<Outcome> {
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      text = (text + chunk).slice(-KEPT_CHARS);
    });
  }
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, text }));
  });
}

async function untilReady(admin: string, ended: Promise<Outcome>): Promise<void> {
  let over: Outcome | undefined;
  void ended.then((outcome) => {
    over = outcome;
  });
  const limit = performance.now() + READY_LIMIT_MS;
  while (performance.now() < limit && over === undefined) {
    const ready = await fetch(`http://${admin}/readyz`).then(
      (response) => response.ok,
      () => false,
    );
    if (ready) return;
    await sleep(POLL_MS);
  }
  throw new Error(over === undefined ? 'the server did not become ready' : `the server ended with ${over.code}`);
}
