/** Wires the configured directories with their lookups of key owners. */

import type { Config, Secrets } from '../config/config.ts';
import { directorySettings } from '../config/directories.ts';
import { openDirectories } from '../directory/directories.ts';
import type { Directories } from '../directory/model.ts';
import { createDirectoryService, type DirectoryService } from '../iam/auth/directory-service.ts';
import type { AuthParts } from '../iam/auth/parts.ts';
import { DirectoryLookups, startLookups } from '../iam/directory/lookups.ts';
import type { Telemetry } from '../telemetry/telemetry.ts';
import { tracedDirectories } from './traced.ts';
import type { WiringContext } from './wiring-context.ts';

/** Returns undefined if none is configured. The server connects to a directory at the first login. */
export function configuredDirectories(
  config: Pick<Config, 'directories'>,
  secrets: Pick<Secrets, 'directoryPasswords'>,
  now: () => number,
): Directories | undefined {
  const settings = directorySettings(config, secrets);
  return settings.length === 0 ? undefined : openDirectories(settings, undefined, now);
}

export function directoryService(
  { config, telemetry }: Pick<WiringContext, 'config' | 'telemetry'>,
  directories: Directories | undefined,
): DirectoryService | undefined {
  if (directories === undefined) return undefined;
  const names = config.directories.map(({ name }) => name);
  const lookedUp = config.directories.filter(({ bindDn }) => bindDn !== undefined).map(({ name }) => name);
  return createDirectoryService({
    directories: tracedDirectories(directories, telemetry.tracing),
    names,
    lookedUp,
    report: telemetry.directory,
  });
}

/**
 * Starts the daily lookups of key owners. @returns the function that stops them; undefined if no directory is
 * configured
 */
export function directoryLookups(parts: AuthParts, { log }: Pick<Telemetry, 'log'>): (() => Promise<void>) | undefined {
  if (parts.directory === undefined) return undefined;
  const lookups = new DirectoryLookups(parts, parts.directory, ({ directory, lookups: failed, error }) => {
    log.warn(
      { part: 'directory', directory, lookups: failed, err: error },
      'key owners could not be looked up in their directory',
    );
  });
  return startLookups(lookups, (err) => log.warn({ part: 'directory', err }, 'the lookups of key owners failed'));
}
