/** Loads the configuration for a command, or rejects it with all of its errors. */

import { statSync } from 'node:fs';
import { formatConfigError } from '../config/config-error.ts';
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
export async function loadOrRefuse(args: Arguments, env: NodeJS.ProcessEnv = process.env): Promise<LoadedConfig> {
  const name = fileName(args, env);
  const file = name === '' ? undefined : (await import('../config/file.ts')).configFile(name);
  const result = loadConfig({ file, env });
  if (result.kind === 'invalid') throw new InvalidConfigError(result.errors.map(formatConfigError).join('\n'));
  return result;
}

/** Returns an empty text if there is no file. @throws UsageError for `--config ''`: the name is that of an unset variable */
function fileName(args: Arguments, env: NodeJS.ProcessEnv): string {
  const name = args.value('config');
  if (name === '') throw new UsageError('--config needs the name of a file.');
  return name ?? env['POSTERN_CONFIG'] ?? '';
}

/**
 * For a server of several processes, each of which reads the file. A pipe is empty for the second reader, so that its
 * process would run with the defaults.
 * @throws InvalidConfigError
 */
export function refusePipe(args: Arguments): void {
  const name = fileName(args, process.env);
  if (name !== '' && statSync(name, { throwIfNoEntry: false })?.isFIFO() === true)
    throw new InvalidConfigError(`${name}: expected a file, because every process of the server reads it, got a pipe`);
}

/** Prints the configuration in force, with masked secrets. */
export async function checkConfig(args: Arguments): Promise<number> {
  const { settings } = await loadOrRefuse(args);
  return printed(`${renderConfig(settings)}
`);
}
