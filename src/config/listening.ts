/** Addresses of listeners, and the error when a listener cannot have its address. */

import { reasonOf } from '../domain/errors.ts';
import type { TcpAddress } from './parsers.ts';
import { envName } from './setting.ts';

/** Waits for a listener. A failure rejects with a sentence that names the setting to change. */
export async function listening<T>(setting: string, address: TcpAddress | string, started: Promise<T>): Promise<T> {
  try {
    return await started;
  } catch (cause) {
    const where = typeof address === 'string' ? address : hostAndPort(address);
    const text = reasonOf(cause);
    const advice = /EADDRINUSE/.test(text) ? 'Another program listens there: stop it' : `${text}: correct it`;
    throw new Error(
      `${setting}: cannot listen on ${where}. ${advice}, or set ${setting} (${envName(setting)}) to another address.`,
      { cause },
    );
  }
}

/** Returns the address as text, with IPv6 in brackets. */
export function hostAndPort({ host, port }: TcpAddress): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}
