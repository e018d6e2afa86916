/** `postern demo`: the whole program with its own PostgreSQL and Envoy, on free ports, and the lines that it prints. */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { envoyBinary } from './envoy.ts';
import { freeAddress } from './ports.ts';

export const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url));

export interface Demo {
  readonly child: ChildProcess;
  /** The text on standard output until the demo was ready. */
  readonly text: string;
  /** The printed curl commands. */
  readonly curls: readonly string[];
  /** Returns the first word after this label, for example of the line `Envoy  http://…`. */
  value(label: string): string | undefined;
  /** Stops the demo as Ctrl-C does, and returns its exit code. */
  stop(): Promise<number | null>;
}

/**
 * Returns the environment of a demo whose data is in `folder` and whose ports are free. Another user must be able to
 * pass through `folder`.
 */
export async function demoEnvironment(folder: string, more: NodeJS.ProcessEnv = {}): Promise<NodeJS.ProcessEnv> {
  const listen = '127.0.0.1:0';
  return {
    PATH: process.env['PATH'],
    POSTERN_ENVOY: await envoyBinary(),
    POSTERN_DATA_DIR: join(folder, 'data'),
    // A fixed port: only then the demo knows its own origin before Envoy starts.
    POSTERN_DEMO_LISTEN: await freeAddress(),
    POSTERN_DEMO_ISSUER_LISTEN: await freeAddress(),
    POSTERN_HTTP_LISTEN: listen,
    POSTERN_GRPC_LISTEN: listen,
    POSTERN_ADMIN_LISTEN: listen,
    ...more,
  };
}

/**
 * Starts a demo and waits until it is ready. Rejects with its errors if it ends before that.
 * @param words the program that runs the demo, and its arguments
 */
export async function startDemo(
  env: NodeJS.ProcessEnv,
  words = [process.execPath, MAIN, 'demo'] as readonly string[],
): Promise<Demo> {
  const [program = '', ...args] = words;
  const child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let text = '';
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => {
    errors += chunk.toString();
  });
  await new Promise<void>((resolve, reject) => {
    child.stdout.on('data', (chunk: Buffer) => {
      text += chunk.toString();
      if (text.includes('Ctrl-C')) resolve();
    });
    child.once('exit', (code) => reject(new Error(`the demo ended with ${code}: ${errors}`)));
  });
  return {
    child,
    text,
    curls: [...text.matchAll(/^ +(curl .+)$/gm)].map((match) => match[1] ?? ''),
    value: (label) => new RegExp(`^ +${label} +(\\S+)`, 'm').exec(text)?.[1],
    async stop() {
      const exited = once(child, 'exit');
      child.kill('SIGINT');
      const [code] = await exited;
      return code;
    },
  };
}
