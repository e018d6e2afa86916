/** A container's health check without a shell or another program: requests the health of the configured server. */

import { hostAndPort } from '../config/listening.ts';
import type { Arguments } from './arguments.ts';
import { loadOrRefuse } from './configuration.ts';

const TIMEOUT_MS = 2_500;
/** The address at which a listener on every address is reachable. */
const ANY_ADDRESS: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };

/** Resolves with 0 if `/healthz` answers 200, otherwise with 1. */
export async function healthCommand(args: Arguments): Promise<number> {
  const { listen } = (await loadOrRefuse(args)).config.admin;
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
