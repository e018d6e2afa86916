/** Runs one command to its end, with the project's tools first on its PATH. */

import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { delimiter, isAbsolute, join } from 'node:path';
import { NODE_FLAGS } from './node-flags.mjs';
import { CannotRun } from './problem.mjs';
import { BIN, ROOT } from './root.mjs';

const ECHO_MS = 500;
const WATCH_PARENT_MS = 500;

/**
 * Resolves with the exit code; 128 + n when signal n ended it.
 *
 * The child has a session of its own, so that a Ctrl-C, which the terminal sends to everyone in the foreground and npm once more
 * to its script, reaches the child from here alone and once. A second one, later, is passed on too.
 *
 * A program of src/ gets a channel to this process: when the channel closes, because this process was killed, the program stops by
 * itself. With `endsWithParent` the child is stopped when the parent of this process has ended, which no signal reports.
 *
 * @param {string} command
 * @param {string[]} args a first argument that is a file of the project is resolved against its folder
 * @param {{ cwd?: string, env?: NodeJS.ProcessEnv, endsWithParent?: boolean }} options
 * @returns {Promise<number>}
 */
export function run(command, args, options = {}) {
  const [first = '', ...rest] = args;
  const file = /\.ts$/.test(first) && !isAbsolute(first) ? join(ROOT, first) : first;
  const env = { ...process.env, ...options.env, PATH: `${BIN}${delimiter}${process.env.PATH ?? ''}` };
  return new Promise((resolve, reject) => {
    const isProgram = first.startsWith('src/') && file !== first;
    const child = spawn(command, args.length === 0 ? [] : [...(isProgram ? NODE_FLAGS : []), file, ...rest], {
      cwd: options.cwd ?? ROOT,
      env,
      stdio: isProgram ? ['inherit', 'inherit', 'inherit', 'ipc'] : 'inherit',
      detached: process.platform !== 'win32',
    });
    let lastMs = Number.NEGATIVE_INFINITY;
    const forward = (signal) => {
      const nowMs = performance.now();
      if (nowMs - lastMs < ECHO_MS) return;
      lastMs = nowMs;
      child.kill(signal === 'SIGHUP' ? 'SIGTERM' : signal);
    };
    const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'];
    for (const signal of signals) process.on(signal, forward);
    const watching = options.endsWithParent ? watchParent(() => child.kill('SIGTERM')) : undefined;
    child.once('error', (error) => reject(new CannotRun(`${command} cannot be run: ${error.message}.`)));
    child.once('exit', (code, signal) => {
      for (const name of signals) process.off(name, forward);
      clearInterval(watching);
      resolve(code ?? 128 + (constants.signals[signal ?? 'SIGTERM'] ?? 0));
    });
  });
}

/** Calls `gone` once when another process has become the parent of this one. */
function watchParent(gone) {
  const parent = process.ppid;
  const watching = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(watching);
    gone();
  }, WATCH_PARENT_MS);
  return watching;
}
