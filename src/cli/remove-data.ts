/** Removes the embedded database with its keys from both of its possible directories. */

import { EmbeddedError } from '../store/embedded/error.ts';
import { findEmbeddedData, removeEmbeddedData } from '../store/embedded/removal.ts';
import type { Arguments } from './arguments.ts';
import { loadOrRefuse } from './configuration.ts';
import { stoppedBefore } from './terminal.ts';

const FAILED = 1;

export async function removeDataCommand(args: Arguments): Promise<number> {
  const { config, secrets } = await loadOrRefuse(args);
  if (secrets.databaseUrl !== undefined) {
    process.stderr.write('database.url is set. This command removes only an embedded database. Nothing was removed.\n');
    return FAILED;
  }
  try {
    const data = await findEmbeddedData(config.dataDir);
    if (data === undefined) {
      process.stdout.write(`There is no embedded database in ${config.dataDir}. Nothing was removed.\n`);
      return 0;
    }
    const places = [...new Set([data.dataDir, data.directory])];
    const stopped = await stoppedBefore(
      `This command removes the embedded database, its secret key and its log for good from ${places.join(' and ')}.`,
      args,
    );
    if (stopped !== undefined) return stopped;
    const kept = await removeEmbeddedData(data);
    for (const place of places) {
      process.stdout.write(
        kept.includes(place) ? `${place}: removed; the folder stays, with files of others\n` : `${place}: removed\n`,
      );
    }
    return 0;
  } catch (error) {
    if (!(error instanceof EmbeddedError)) throw error;
    process.stderr.write(`${error.message}\n`);
    return FAILED;
  }
}
