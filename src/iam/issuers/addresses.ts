/** The form of the addresses of an issuer: its value of `iss`, and the address of its keys. */

import type { FieldError } from '../../domain/problem-details.ts';
import type { IssuerRow } from './entity.ts';

const TRUST_DOMAIN = /^spiffe:\/\/[a-z0-9._-]{1,255}$/;
/** Visible ASCII: other characters would be encoded, and the text would differ from the token's. */
const VISIBLE = /^[\x21-\x7e]+$/;
const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

/** Returns an error for a text that cannot be the value of `iss`. */
export function issuerErrors(
  kind: IssuerRow['kind'],
  issuer: string,
  allowedHosts: readonly string[],
): readonly FieldError[] {
  const path = '/issuer';
  if (kind === 'spiffe') {
    if (TRUST_DOMAIN.test(issuer)) return [];
    const message =
      'An issuer of the kind spiffe is spiffe://<trust domain>, without a path. A trust domain has lowercase letters, digits, dots, hyphens and underscores.';
    return [{ path, message }];
  }
  if (issuer.includes('?')) return [{ path, message: 'An issuer must not have a query.' }];
  return addressErrors(issuer, path, allowedHosts);
}

/** Returns an error for a text from which the server would not fetch anything. */
export function addressErrors(text: string, path: string, allowedHosts: readonly string[]): readonly FieldError[] {
  const message = addressProblem(text, allowedHosts);
  return message === undefined ? [] : [{ path, message }];
}

function addressProblem(text: string, allowedHosts: readonly string[]): string | undefined {
  const url = VISIBLE.test(text) && URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) return 'This is not an address such as https://login.example.com.';
  if (text.includes('#')) return 'An address must not have a fragment.';
  if (/^[a-z]+:\/\/[^/?#]*@/i.test(text)) return 'An address must not have a user name or a password.';
  switch (url.protocol) {
    case 'https:':
      return text.startsWith('https://') ? undefined : 'An address begins with https://.';
    case 'http:':
      if (LOOPBACK.test(url.hostname) && [url.hostname, url.host].some((host) => allowedHosts.includes(host))) {
        return undefined;
      }
      return 'An address begins with https://. Plain HTTP works for a loopback host that issuers.allowed-hosts names.';
    default:
      return 'An address begins with https://.';
  }
}
