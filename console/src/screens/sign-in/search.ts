import { type Given, oneOf, text } from '../../shell/search.ts';

export interface SignInSearch {
  /** Where to go on afterwards: an address of the console. */
  readonly next?: string;
  /** Why the last session ended. */
  readonly over?: Over;
  /** Why the sign-in at a provider failed. */
  readonly sso_error?: SsoError;
  /** Only the issuers of this tenant are shown. */
  readonly tenant?: string;
  /** Shows the form for passwords also if the server hides it. */
  readonly by?: 'password';
}

/** `unconfirmed`: the server did not answer the sign-out, so the session may go on. */
const OVERS = ['refused', 'replaced', 'unconfirmed'] as const;
export type Over = (typeof OVERS)[number];

const SSO_ERRORS = [
  'unknown_issuer',
  'expired',
  'denied',
  'invalid',
  'no_account',
  'email_in_use',
  'tenant_suspended',
  'too_many_attempts',
  'unavailable',
] as const;
export type SsoError = (typeof SSO_ERRORS)[number];

export function signInSearch(given: Given): SignInSearch {
  return {
    ...text(given, 'next'),
    ...oneOf(given, 'over', OVERS),
    ...oneOf(given, 'sso_error', SSO_ERRORS),
    ...text(given, 'tenant'),
    ...oneOf(given, 'by', ['password'] as const),
  };
}
