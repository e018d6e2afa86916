/** The form of the addresses of an issuer: its value of `iss`, and the address of its keys. */

import type { FieldError } from '../../domain/problem-details.ts';
import { writtenAddressProblem } from '../../outbound/written-address.ts';
import type { IssuerRow } from './entity.ts';

const TRUST_DOMAIN = /^spiffe:\/\/[a-z0-9._-]{1,255}$/;

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
  const message = writtenAddressProblem(text, { hosts: allowedHosts, setting: 'issuers.allowed-hosts' });
  return message === undefined ? [] : [{ path, message }];
}
