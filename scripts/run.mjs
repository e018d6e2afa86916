#!/usr/bin/env node
/**
 * Every npm script of the project begins here. Plain JavaScript for Node 20 and later with nothing installed: it brings the
 * dependencies up to date, finds the Node 26 among them, and hands over to it.
 */

import { runCheck, runFormat, runTests } from './lib/checks.mjs';
import { run } from './lib/child.mjs';
import { buildConsole } from './lib/console.mjs';
import { ensureDependencies } from './lib/dependencies.mjs';
import { findNode } from './lib/node.mjs';
import { CannotRun } from './lib/problem.mjs';

const [command = '', ...args] = process.argv.slice(2);

/** @type {Record<string, (node: string) => Promise<number>>} */
const COMMANDS = {
  demo: async (node) => {
    const built = await buildConsole(node);
    return built === 0 ? run(node, ['src/main.ts', 'demo', ...args], { endsWithParent: true }) : built;
  },
  postern: (node) => run(node, ['src/main.ts', ...args], { cwd: process.env.INIT_CWD, endsWithParent: true }),
  bench: (node) => run(node, ['bench/run.ts', ...args]),
  test: (node) => runTests(node, args),
  'test:deploy': (node) => run(node, ['scripts/test-deploy.ts', ...args]),
  check: (node) => runCheck(node),
  format: (node) => runFormat(node),
  docs: (node) => run(node, ['scripts/docs.ts']),
  chart: (node) => run(node, ['scripts/chart.ts']),
  schema: (node) => run(node, ['scripts/schema.ts']),
  'console:build': (node) => buildConsole(node),
  'console:size': (node) => run(node, ['scripts/console-size.ts', ...args]),
  screenshots: async (node) => {
    const built = await buildConsole(node);
    return built === 0 ? run(node, ['scripts/screenshots.ts', ...args], { cwd: process.env.INIT_CWD }) : built;
  },
  'client:types': (node) => run(node, ['scripts/client-types.ts']),
  image: (node) => run(node, ['scripts/image-layout.ts', ...args], { cwd: process.env.INIT_CWD }),
  'release-prices': (node) => run(node, ['scripts/release-prices.ts', ...args]),
  release: async (node) => {
    const built = await buildConsole(node);
    return built === 0 ? run(node, ['scripts/release.ts', ...args], { cwd: process.env.INIT_CWD }) : built;
  },
};

try {
  const chosen = Object.hasOwn(COMMANDS, command) ? COMMANDS[command] : undefined;
  if (chosen === undefined) {
    throw new CannotRun(`There is no command "${command}"; there are ${Object.keys(COMMANDS).join(', ')}.`);
  }
  await ensureDependencies();
  process.exitCode = await chosen(await findNode());
} catch (error) {
  if (!(error instanceof CannotRun)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}
