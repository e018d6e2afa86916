/** The addresses of a host. */

import { lookup, Resolver } from 'node:dns/promises';
import { isIP } from 'node:net';

/**
 * Returns the addresses of a host, at least one. Rejects if it has none.
 * @param trusted true if the operator names the host
 * @param signal aborts the resolution
 */
export type ResolveHost = (host: string, trusted: boolean, signal: AbortSignal) => Promise<readonly string[]>;

const TRY_TIMEOUT_MS = 1_500;
const TRIES = 2;

/**
 * Asks the system for a host that the operator names: it knows /etc/hosts and search domains. The system's resolver
 * takes a thread of the pool that hashes passwords, for as long as a name server does not answer. Any other host is
 * therefore resolved by DNS, on sockets: a tenant that names a dead name server delays no login.
 * @param servers addresses of name servers, with or without a port. Default: those of the system
 */
export function resolver(servers?: readonly string[]): ResolveHost {
  return async (host, trusted, signal) => {
    if (isIP(host) !== 0) return [host];
    if (trusted) return (await lookup(host, { all: true })).map(({ address }) => address);
    const dns = new Resolver({ timeout: TRY_TIMEOUT_MS, tries: TRIES });
    if (servers !== undefined) dns.setServers(servers);
    const cancel = (): void => dns.cancel();
    signal.addEventListener('abort', cancel, { once: true });
    try {
      const answers = await Promise.allSettled([dns.resolve4(host), dns.resolve6(host)]);
      const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
      if (addresses.length === 0) throw new Error(`${host} has no address`);
      return addresses;
    } finally {
      signal.removeEventListener('abort', cancel);
    }
  };
}

export const resolveHost: ResolveHost = resolver();
