/** Finds the Node that runs TypeScript as it is: the one among the dependencies, or the one that runs this, when it is new enough. */

import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { CannotRun } from './problem.mjs';
import { BIN } from './root.mjs';

const LEAST_MAJOR = 26;

export async function findNode() {
  // It may be there and still not run: built for another C library, say.
  const packaged = join(BIN, 'node');
  if (majorOf(await versionOf(packaged)) >= LEAST_MAJOR) return packaged;
  if (majorOf(process.version) >= LEAST_MAJOR) return process.execPath;
  throw new CannotRun(
    `Postern needs Node ${LEAST_MAJOR} or later; this is ${process.version}, and npm has none prebuilt for ${process.platform}-${process.arch}: install Node ${LEAST_MAJOR} and run this again.`,
  );
}

function versionOf(path) {
  return new Promise((resolve) => {
    execFile(path, ['--version'], { timeout: 20_000 }, (error, stdout) => resolve(error === null ? stdout : ''));
  });
}

function majorOf(version) {
  return Number(/^v(\d+)\./.exec(version)?.[1] ?? 0);
}
