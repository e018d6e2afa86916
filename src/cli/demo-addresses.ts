/** The addresses of the demo: which of them are in use, and how clients reach them. */

import { once } from 'node:events';
import { createServer } from 'node:net';
import { systemCode } from '../domain/errors.ts';

export interface DemoAddress {
  /** The listener, in words for the operator. */
  readonly what: string;
  /** The environment variable that sets the address. */
  readonly setting: string;
  readonly host: string;
  readonly port: number;
}

/** Returns a sentence for each address that is not available. It names the setting to change. */
export async function busyAddresses(addresses: readonly DemoAddress[]): Promise<readonly string[]> {
  const sentences = await Promise.all(
    addresses.map(async ({ what, setting, host, port }) => {
      const code = port === 0 ? undefined : await cannotListen(host, port);
      if (code === undefined) return [];
      const where = `${bracketed(host)}:${port}`;
      if (code === 'EADDRINUSE') {
        return [
          `${where} is in use, but ${what} needs it. Stop the program that listens there, or set ${setting} to another address.`,
        ];
      }
      return [`${what} cannot listen on ${where} (${code}). Set ${setting} to another address.`];
    }),
  );
  return sentences.flat();
}

/** Returns the system's error code; undefined if the address is available. */
async function cannotListen(host: string, port: number): Promise<string | undefined> {
  const server = createServer();
  try {
    server.listen(port, host);
    await once(server, 'listening');
    const closed = once(server, 'close');
    server.close();
    await closed;
    return undefined;
  } catch (error) {
    return systemCode(error) ?? String(error);
  }
}

/** Returns the address for clients on this machine: loopback for a listener on every address. */
export function reachable(address: string): string {
  return address.replace(/^0\.0\.0\.0:/, '127.0.0.1:').replace(/^\[::\]:/, '[::1]:');
}

/** Returns the origins of pages at the address, with all names of loopback. None for port 0, which means any. */
export function demoOrigins({ host, port }: { readonly host: string; readonly port: number }): readonly string[] {
  if (port === 0) return [];
  const names = ['127.0.0.1', '0.0.0.0', '::', '::1', 'localhost'].includes(host)
    ? ['127.0.0.1', 'localhost', '[::1]']
    : [bracketed(host)];
  return names.map((name) => `http://${name}${port === 80 ? '' : `:${port}`}`);
}

function bracketed(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}
