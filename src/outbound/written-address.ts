/** The form of an address that a tenant writes for the server to send requests to. */

import { isIP } from 'node:net';
import { isPublicAddress } from './addresses.ts';

/** Hosts that may have any address, as in a URL (`host`, or `host:port` for one port), and the setting that has them. */
interface AllowedHosts {
  readonly hosts: readonly string[];
  /** The name of the setting, for messages. */
  readonly setting: string;
  /** Refuses a literal address that is not public. Default: only a request to it is refused. */
  readonly refusesPrivate?: boolean;
}

/** Visible ASCII: other characters would be encoded, and the text would differ from the one that is used. */
const VISIBLE = /^[\x21-\x7e]+$/;
const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

/** Returns the reason why the server would send nothing to an address; undefined if it may. */
export function writtenAddressProblem(
  text: string,
  { hosts, setting, refusesPrivate = false }: AllowedHosts,
): string | undefined {
  const url = VISIBLE.test(text) && URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) return 'This is not an address such as https://login.example.com.';
  if (text.includes('#')) return 'An address must not have a fragment.';
  if (/^[a-z]+:\/\/[^/?#]*@/i.test(text)) return 'An address must not have a user name or a password.';
  const isAllowed = [url.hostname, url.host].some((host) => hosts.includes(host));
  switch (url.protocol) {
    case 'https:':
      if (!text.startsWith('https://')) return 'An address begins with https://.';
      return isAllowed || !refusesPrivate || !isPrivate(url.hostname)
        ? undefined
        : `The host is private or reserved. The operator can permit it by the setting ${setting}.`;
    case 'http:':
      if (LOOPBACK.test(url.hostname) && isAllowed) return undefined;
      return `An address begins with https://. Plain HTTP works for a loopback host that ${setting} names.`;
    default:
      return 'An address begins with https://.';
  }
}

/** Reports whether a host is an address that is not public. The addresses of a name are checked when it is used. */
function isPrivate(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, '');
  return host === 'localhost' || host.endsWith('.localhost') || (isIP(host) !== 0 && !isPublicAddress(host));
}
