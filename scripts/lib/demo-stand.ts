/** The demonstration in a process of its own, on free ports and with new data, for scripts that look at it. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
/** What the demo prints last. */
const READY = 'Ctrl-C';

export interface DemoStand {
  /** `http://127.0.0.1:port` of Envoy. */
  readonly url: string;
  readonly email: string;
  readonly password: string;
  /** The printed API key. */
  readonly key: string;
  close(): Promise<void>;
}

/** Rejects with what the demo wrote if it does not start. */
export async function startDemoStand(): Promise<DemoStand> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-look-'));
  // As root the embedded PostgreSQL runs as another user, who has to get to the data.
  await chmod(folder, 0o711);
  const listen = `127.0.0.1:${await freePort()}`;
  const anyPort = '127.0.0.1:0';
  const child = spawn(process.execPath, [MAIN, 'demo'], {
    env: {
      ...process.env,
      POSTERN_DATA_DIR: join(folder, 'data'),
      POSTERN_DEMO_LISTEN: listen,
      POSTERN_DEMO_ISSUER_LISTEN: `127.0.0.1:${await freePort()}`,
      POSTERN_HTTP_LISTEN: anyPort,
      POSTERN_GRPC_LISTEN: anyPort,
      POSTERN_ADMIN_LISTEN: anyPort,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = once(child, 'exit');
  let said = '';
  const close = async (): Promise<void> => {
    child.kill('SIGINT');
    await ended;
    await rm(folder, { recursive: true, force: true });
  };
  await new Promise<void>((resolve, reject) => {
    const hear = (chunk: Buffer): void => {
      said += chunk.toString();
      if (said.includes(READY)) resolve();
    };
    child.stdout.on('data', hear);
    child.stderr.on('data', hear);
    void ended.then(() => reject(new Error(`the demo ended: ${said}`)));
  });
  const value = (label: string): string => new RegExp(`^ +${label} +(\\S+)`, 'm').exec(said)?.[1] ?? '';
  return {
    url: `http://${listen}`,
    email: value('Administrator'),
    password: value('Password'),
    key: value('API key'),
    close,
  };
}

async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('a TCP server has no port');
  return address.port;
}
