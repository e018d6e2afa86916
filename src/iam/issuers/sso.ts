/** The login to the console by an issuer. */

import type { FieldError } from '../../domain/problem-details.ts';
import type { IssuerChanges, IssuerRow, IssuerSso } from './entity.ts';

const DEFAULT_SCOPES: readonly string[] = ['openid', 'profile', 'email'];

/** Visible ASCII and spaces, as RFC 6749 has it for identifiers and secrets of clients. */
const CLIENT_TEXT = /^[\x20-\x7e]+$/;

/** Returns the settings after a request, which replaces them whole. The stored secret stays if it names none. */
export function ssoAfter(before: IssuerSso | null, request: IssuerChanges['sso']): IssuerSso | null {
  if (request === undefined) return before;
  if (request === null) return null;
  const { client_id, client_secret, scopes = DEFAULT_SCOPES, label, required_acr } = request;
  return {
    client_id,
    scopes: [...new Set(scopes)],
    label,
    ...(required_acr === undefined ? {} : { required_acr }),
    client_secret_set: client_secret !== undefined || before?.client_secret_set === true,
  };
}

export function ssoErrors(
  { kind, users, sso }: Pick<IssuerRow, 'kind' | 'users' | 'sso'>,
  clientSecret: string | undefined,
): readonly FieldError[] {
  if (sso === null) return [];
  const errors: FieldError[] = [];
  const report = (member: string, message: string): void => void errors.push({ path: `/sso${member}`, message });
  if (kind === 'spiffe') report('', 'Only an issuer of the kind oidc has a login to the console.');
  if (users === null) report('', 'A login needs the member users, which says how tokens prove users.');
  if (!sso.scopes.includes('openid')) report('/scopes', 'The scope openid is required.');
  if (!CLIENT_TEXT.test(sso.client_id)) report('/client_id', 'A client id has visible ASCII characters and spaces.');
  if (clientSecret !== undefined && !CLIENT_TEXT.test(clientSecret)) {
    report('/client_secret', 'A client secret has visible ASCII characters and spaces.');
  }
  if (sso.required_acr !== undefined && !/^[\x21-\x7e]+$/.test(sso.required_acr)) {
    report('/required_acr', 'A value of acr has visible ASCII characters, and no space.');
  }
  return errors;
}
