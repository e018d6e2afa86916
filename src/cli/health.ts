/** A container's health check without a shell or another program: requests the health of the configured server. */

import { formatConfigError } from '../config/config-error.ts';
import { GivenSettings } from '../config/given.ts';
import { hostAndPort } from '../config/listening.ts';
import { ALL_SETTINGS, CONFIG_SETTINGS } from '../config/settings.ts';
import type { Arguments } from './arguments.ts';
import { InvalidConfigError, sourcesOf } from './configuration.ts';

const TIMEOUT_MS = 2_500;
/** The address at which a listener on every address is reachable. */
const ANY_ADDRESS: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };

/**
 * Resolves with 0 if `/healthz` answers 200, otherwise with 1. The rest of the configuration does not matter: an edit
 * since the start of the server is not its failure.
 */
export async function healthCommand(args: Arguments): Promise<number> {
  const given = new GivenSettings(ALL_SETTINGS, await sourcesOf(args));
  const setting = CONFIG_SETTINGS.admin.listen;
  const listen = given.take(setting);
  const wrong = given.errors.filter(({ path }) => path === '' || path === setting.path);
  if (wrong.length > 0) throw new InvalidConfigError(wrong.map(formatConfigError).join('\n'));
  const host = ANY_ADDRESS[listen.host] ?? listen.host;
  const url = `http://${hostAndPort({ ...listen, host })}/healthz`;
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    process.stdout.write(await response.text());
    return response.ok ? 0 : 1;
  } catch {
    process.stderr.write(`No server answers at ${url}.\n`);
    return 1;
  }
}
