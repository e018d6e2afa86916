/** Loads the configuration for a command, or rejects it with all of its errors. */

import { formatConfigError } from '../config/config-error.ts';
import { type LoadResult, loadConfig } from '../config/load.ts';
import { renderConfig } from '../config/render.ts';
import type { Arguments } from './arguments.ts';
import { printed } from './output.ts';

/** The message has one line for each error. */
export class InvalidConfigError extends Error {
  override readonly name = 'InvalidConfigError';
}

export type LoadedConfig = Extract<LoadResult, { kind: 'config' }>;

/** @throws InvalidConfigError */
export async function loadOrRefuse(args: Arguments, env: NodeJS.ProcessEnv = process.env): Promise<LoadedConfig> {
  const name = args.value('config') ?? env['POSTERN_CONFIG'] ?? '';
  const file = name === '' ? undefined : (await import('../config/file.ts')).configFile(name);
  const result = loadConfig({ file, env });
  if (result.kind === 'invalid') throw new InvalidConfigError(result.errors.map(formatConfigError).join('\n'));
  return result;
}

/** Prints the configuration in force, with masked secrets. */
export async function checkConfig(args: Arguments): Promise<number> {
  const { settings } = await loadOrRefuse(args);
  return printed(`${renderConfig(settings)}
`);
}
