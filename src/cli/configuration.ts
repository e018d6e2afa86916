/** The configuration as a command gets it: loaded whole, or refused with every problem at once. */

import { formatConfigError } from '../config/config-error.ts';
import { type LoadResult, loadConfig } from '../config/load.ts';
import type { Arguments } from './arguments.ts';

/** Everything that is wrong with the configuration, a line each. */
export class InvalidConfigError extends Error {
  override readonly name = 'InvalidConfigError';
}

export type Loaded = Extract<LoadResult, { kind: 'config' }>;

/** @throws InvalidConfigError */
export function loadOrRefuse(args: Arguments, env: NodeJS.ProcessEnv = process.env): Loaded {
  const file = args.value('config') ?? env['POSTERN_CONFIG'];
  const result = loadConfig({ file: file === '' ? undefined : file, env });
  if (result.kind === 'invalid') throw new InvalidConfigError(result.errors.map(formatConfigError).join('\n'));
  return result;
}
