import { renderConfig } from '../config/render.ts';
import type { Arguments } from './arguments.ts';
import { loadOrRefuse } from './configuration.ts';

/** Prints the configuration as understood, secrets masked. */
export async function checkConfig(args: Arguments): Promise<number> {
  process.stdout.write(`${renderConfig(loadOrRefuse(args).settings)}\n`);
  return 0;
}
