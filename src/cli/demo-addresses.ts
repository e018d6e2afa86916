/** The addresses of the demo: which are taken, and by which others they can be reached. */

import { once } from 'node:events';
import { createServer } from 'node:net';

export interface DemoAddress {
  /** What listens there, for people. */
  readonly what: string;
  /** The environment variable that moves it. */
  readonly setting: string;
  readonly host: string;
  readonly port: number;
}

/** One sentence for each address that cannot be had, naming the setting to change. */
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

/** The system's code for why not; undefined when it can. */
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
    return error instanceof Error && 'code' in error ? String(error.code) : String(error);
  }
}

/** From this machine: a listener on every address is reached by loopback. */
export function reachable(address: string): string {
  return address.replace(/^0\.0\.0\.0:/, '127.0.0.1:').replace(/^\[::\]:/, '[::1]:');
}

/** The origins of pages that Envoy serves there: by the address itself, and by the names that this machine has for loopback. None for port 0, which Envoy chooses later. */
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
