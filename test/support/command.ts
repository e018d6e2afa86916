/**
 * Commands of `postern` in the process of the test, for tests of their options, their output and their exit code. Lines of the
 * log do not count as output here: they go to the standard output of the test.
 */

import { Readable } from 'node:stream';
import { main } from '../../src/cli/main.ts';

export interface CommandResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

let last: Promise<unknown> = Promise.resolve();

/**
 * Runs a command after the previous one has ended, because they share the environment and the streams of the process.
 * @param env the only environment variables that the command sees
 * @param input its standard input
 */
export function runCommand(args: readonly string[], env: NodeJS.ProcessEnv, input = ''): Promise<CommandResult> {
  const result = last.then(() => runAlone(args, env, input));
  last = result.catch(() => undefined);
  return result;
}

async function runAlone(args: readonly string[], env: NodeJS.ProcessEnv, input: string): Promise<CommandResult> {
  using changes = new DisposableStack();
  const [stdout, stderr] = [captured('stdout', changes), captured('stderr', changes)];
  replace('env', { ...env }, changes);
  replace('stdin', Readable.from([input]), changes);
  for (const event of ['SIGTERM', 'SIGINT', 'disconnect'] as const) keepListeners(event, changes);
  const code = await main(args);
  return { code, stdout: stdout(), stderr: stderr() };
}

/** Collects the text that is written to the stream until the end of the stack. */
function captured(name: 'stdout' | 'stderr', stack: DisposableStack): () => string {
  const stream = process[name];
  const { write } = stream;
  stack.defer(() => {
    stream.write = write;
  });
  const chunks: Buffer[] = [];
  stream.write = (chunk: string | Uint8Array, ...rest: readonly unknown[]) => {
    chunks.push(Buffer.from(chunk));
    for (const written of rest) if (typeof written === 'function') queueMicrotask(() => written());
    return true;
  };
  return () => Buffer.concat(chunks).toString();
}

/** Removes the listeners that a command adds, which outlive it only because its process does. */
function keepListeners(event: 'SIGTERM' | 'SIGINT' | 'disconnect', stack: DisposableStack): void {
  const former = new Set(process.rawListeners(event));
  stack.defer(() => {
    for (const listener of process.rawListeners(event)) {
      if (!former.has(listener)) process.off(event, listener as () => void);
    }
  });
}

/** Replaces a member of the process until the end of the stack. */
function replace(name: 'env' | 'stdin', value: object, stack: DisposableStack): void {
  const former = Object.getOwnPropertyDescriptor(process, name) ?? {};
  stack.defer(() => void Object.defineProperty(process, name, former));
  Object.defineProperty(process, name, { value, configurable: true, writable: true });
}
