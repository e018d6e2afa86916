/** Loads the configuration for a command, or rejects it with all of its errors. */

import { formatConfigError } from '../config/config-error.ts';
import type { Sources } from '../config/given.ts';
import { type LoadResult, loadConfig } from '../config/load.ts';
import { renderConfig } from '../config/render.ts';
import { type Arguments, UsageError } from './arguments.ts';
import { printed } from './output.ts';

/** The message has one line for each error. */
export class InvalidConfigError extends Error {
  override readonly name = 'InvalidConfigError';
}

export type LoadedConfig = Extract<LoadResult, { kind: 'config' }>;

/** @throws InvalidConfigError */
export async function loadOrRefuse(args: Arguments): Promise<LoadedConfig> {
  return configOrRefuse(await sourcesOf(args));
}

/** Reads the file that the arguments or the environment name. */
export async function sourcesOf(args: Arguments): Promise<Sources> {
  const name = fileName(args, process.env);
  const file = name === '' ? undefined : (await import('../config/file.ts')).configFile(name);
  return { file, env: process.env };
}

/** @throws InvalidConfigError */
export function configOrRefuse(sources: Sources): LoadedConfig {
  const result = loadConfig(sources);
  if (result.kind === 'invalid') throw new InvalidConfigError(result.errors.map(formatConfigError).join('\n'));
  return result;
}

/** Returns an empty text if there is no file. @throws UsageError for `--config ''`: the name is that of an unset variable */
function fileName(args: Arguments, env: NodeJS.ProcessEnv): string {
  const name = args.value('config');
  if (name === '') throw new UsageError('--config needs the name of a file.');
  return name ?? env['POSTERN_CONFIG'] ?? '';
}

/** Prints the configuration in force, with masked secrets. */
export async function checkConfig(args: Arguments): Promise<number> {
  const { settings } = await loadOrRefuse(args);
  return printed(`${renderConfig(settings)}
`);
}
