/** What is said when an address that the configuration names cannot be had. */

import type { TcpAddress } from './config.ts';
import { envName } from './keys.ts';

/** Waits for a listener; a failure names the setting to change, in one sentence. */
export async function listening<T>(setting: string, address: TcpAddress | string, started: Promise<T>): Promise<T> {
  try {
    return await started;
  } catch (cause) {
    const where = typeof address === 'string' ? address : hostAndPort(address);
    const text = cause instanceof Error ? cause.message : String(cause);
    const advice = /EADDRINUSE/.test(text) ? 'Another program listens there: stop it' : `${text}: correct it`;
    throw new Error(
      `${setting}: cannot listen on ${where}. ${advice}, or set ${setting} (${envName(setting)}) to another address.`,
      {
        cause,
      },
    );
  }
}

/** IPv6 in brackets. */
export function hostAndPort({ host, port }: TcpAddress): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}
