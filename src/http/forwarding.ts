/** Warnings for the operator about proxies in front of the API that the configuration does not name. */

import { isLoopbackAddress } from '../decision/address.ts';

interface ForwardingWatch {
  /** Called for each request with X-Forwarded-For from a peer that is not trusted. Logs the first one. */
  readonly onUntrustedForwarding: (peer: string) => void;
  /** Returns the warnings for `/readyz`. Empty before the first such request. */
  readonly warnings: () => readonly string[];
}

/** @param warn called at most once */
export function watchForwarding(warn: (message: string) => void): ForwardingWatch {
  let warning: string | undefined;
  return {
    onUntrustedForwarding: (peer) => {
      if (warning !== undefined) return;
      warning =
        `http.trusted-proxies: a request with X-Forwarded-For came from ${peer}, which is not named there. ` +
        'The addresses of such requests count as missing: deny policies on ip_address apply to them, allow policies do not. ' +
        'Name your proxies there. If the peer is a client, it wrote the header itself.';
      warn(warning);
    },
    warnings: () => (warning === undefined ? [] : [warning]),
  };
}

/** Returns warnings about the settings, for the start of the server. */
export function proxyWarnings(http: {
  readonly listen: { readonly host: string };
  readonly trustedProxies: readonly string[];
}): readonly string[] {
  const { host } = http.listen;
  if (http.trustedProxies.length > 0 || host === 'localhost' || isLoopbackAddress(host)) return [];
  return [
    'http.trusted-proxies is empty, and http.listen accepts connections from other machines. Behind a proxy, name the addresses of ' +
      'the proxy: until then, the address of each client that comes through it counts as missing.',
  ];
}
