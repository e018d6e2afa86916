#!/usr/bin/env node
/** The `postern` command: the same as `npm run postern --`, from any folder, without touching the dependencies. */

import { run } from './lib/child.mjs';
import { findNode } from './lib/node.mjs';
import { CannotRun } from './lib/problem.mjs';

try {
  process.exitCode = await run(await findNode(), ['src/main.ts', ...process.argv.slice(2)], { cwd: process.cwd() });
} catch (error) {
  if (!(error instanceof CannotRun)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}
