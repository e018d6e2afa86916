/** Questions to the operator at a terminal. */

import { once } from 'node:events';
import { createInterface as createLineReader } from 'node:readline';
import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import type { Arguments } from './arguments.ts';

/** The exit code of a command that changed nothing because the operator declined. */
const DECLINED = 1;
/** The exit code of a command that changed nothing because it could not ask; as for wrong usage. */
const UNASKED = 2;

/** Reports whether a command can ask its operator. With a pipe on either side, it cannot. */
export function hasTerminal(): boolean {
  return process.stdin.isTTY && process.stdout.isTTY;
}

/**
 * Asks the operator before a command changes anything. `--yes` agrees in advance. Returns undefined after a yes;
 * otherwise prints why and returns the exit code.
 * @param effect a sentence that says what the command does
 * @param asks default: there is a terminal
 */
export async function stoppedBefore(
  effect: string,
  args: Arguments,
  asks = hasTerminal(),
): Promise<number | undefined> {
  if (args.flag('yes')) return undefined;
  if (!asks) {
    process.stderr.write(`${effect} Nothing was changed. Run the command at a terminal to confirm it, or add --yes.\n`);
    return UNASKED;
  }
  if (await isAgreed(process.stdin, process.stdout, effect)) return undefined;
  process.stdout.write('\nNothing was changed.\n');
  return DECLINED;
}

/** Asks at a terminal. Every answer except `yes` declines, and so do the end of the input and an interrupt. */
export async function isAgreed(
  input: NodeJS.ReadableStream,
  output: NodeJS.WritableStream,
  effect: string,
): Promise<boolean> {
  const terminal = createInterface({ input, output });
  const gone = once(terminal, 'close').then(() => 'no');
  try {
    const answer = await Promise.race([terminal.question(`${effect} Type yes to continue: `).catch(() => 'no'), gone]);
    return answer.trim() === 'yes';
  } finally {
    terminal.close();
  }
}

interface Terminal extends NodeJS.ReadableStream {
  readonly isTTY?: boolean;
}

/**
 * Asks for a password at a terminal and does not echo it. Without a terminal, it takes the first line of the input.
 * Returns an empty text at the end of the input.
 */
export async function readPassword(input: Terminal, output: NodeJS.WritableStream, question: string): Promise<string> {
  const asks = input.isTTY === true;
  if (asks) output.write(question);
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createLineReader({ input, output: silent, terminal: asks });
  try {
    return await new Promise<string>((resolve) => {
      lines
        .once('line', resolve)
        .once('SIGINT', () => resolve(''))
        .once('close', () => resolve(''));
    });
  } finally {
    lines.close();
    if (asks) output.write('\n');
  }
}
