/** The configuration as a command gets it: loaded whole, or refused with every problem at once. */

import { type LoadResult, loadConfig } from '../config/load.ts';
import { formatProblem } from '../config/problems.ts';
import type { Arguments } from './arguments.ts';

/** Everything that is wrong with the configuration, a line each. */
export class ConfigProblems extends Error {
  override readonly name = 'ConfigProblems';
}

export type Loaded = Extract<LoadResult, { kind: 'config' }>;

/** @throws ConfigProblems */
export function loadOrRefuse(args: Arguments, env: NodeJS.ProcessEnv = process.env): Loaded {
  const file = args.value('config') ?? env['POSTERN_CONFIG'];
  const result = loadConfig({ file: file === '' ? undefined : file, env });
  if (result.kind === 'invalid') throw new ConfigProblems(result.problems.map(formatProblem).join('\n'));
  return result;
}
