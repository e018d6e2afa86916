/** Brings node_modules to what package-lock.json says, when it is missing or older. */

import { spawn } from 'node:child_process';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { CannotRun } from './problem.mjs';
import { MODULES, ROOT } from './root.mjs';

const KEPT_OUTPUT_CHARS = 16_384;
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'];

export async function ensureDependencies() {
  const [lock, installed] = await Promise.all([
    modified(join(ROOT, 'package-lock.json')),
    modified(join(MODULES, '.package-lock.json')),
  ]);
  if (lock === undefined || (installed !== undefined && installed >= lock)) return;
  console.log(installed === undefined ? 'Installing dependencies (npm ci, once)' : 'Updating dependencies (npm ci)');
  // The tools and the Node that the scripts run with, whatever the user's npm leaves out by habit.
  const { code, output } = await npm([
    'ci',
    '--include=dev',
    '--include=optional',
    '--no-fund',
    '--no-audit',
    '--loglevel=error',
  ]);
  if (code === 0) return;
  const why = reasonIn(output);
  throw new CannotRun(
    `The dependencies could not be installed: npm ci failed${why === undefined ? '' : ` (${why})`}; run "npm ci" to see all of it.`,
  );
}

/** The first line in which npm says what is wrong, after the one with its code. */
function reasonIn(output) {
  const lines = output
    .split('\n')
    .map((line) => line.replace(/^npm (error|ERR!)\s*((notarget|network|404) )?/, '').trim());
  return lines
    .find((line) => line !== '' && !/^(code|errno|syscall|path) /.test(line) && !line.startsWith('npm warn'))
    ?.replace(/\.$/, '');
}

/** Milliseconds since the epoch; undefined when there is no such file. */
async function modified(path) {
  return (await stat(path).catch(() => undefined))?.mtimeMs;
}

/** With the npm that started this script, when one did. */
function npm(args) {
  const script = process.env.npm_execpath;
  const [command, all] =
    script !== undefined && /\.c?js$/.test(script) ? [process.execPath, [script, ...args]] : ['npm', args];
  return new Promise((resolve, reject) => {
    let output = '';
    const child = spawn(command, all, { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] });
    const keep = (chunk) => {
      output = (output + chunk).slice(-KEPT_OUTPUT_CHARS);
    };
    child.stdout.on('data', keep);
    child.stderr.on('data', keep);
    // Left behind, it would go on writing into node_modules, and into the way of the next one.
    const passOn = (signal) => child.kill(signal);
    for (const signal of SIGNALS) process.on(signal, passOn);
    const done = () => SIGNALS.forEach((signal) => void process.off(signal, passOn));
    child.once('error', () => {
      done();
      reject(new CannotRun('The dependencies are missing and npm is not on the PATH: install Node.js with npm.'));
    });
    child.once('close', (code, signal) => {
      done();
      if (signal === null) resolve({ code, output });
      else reject(new CannotRun(`The dependencies were not installed: npm ci was stopped (${signal}).`));
    });
  });
}
