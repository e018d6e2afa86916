import { type Given, oneOf, text } from '../../shell/search.ts';

export interface SignInSearch {
  /** Where to go on afterwards: an address of the console. */
  readonly next?: string;
  /** Why the last session ended. */
  readonly over?: 'refused' | 'replaced';
  /** Why the sign-in at a provider failed. */
  readonly sso_error?: SsoError;
  /** Only the issuers of this tenant are shown. */
  readonly tenant?: string;
  /** Shows the form for passwords also if the server hides it. */
  readonly by?: 'password';
}

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
    ...oneOf(given, 'over', ['refused', 'replaced'] as const),
    ...oneOf(given, 'sso_error', SSO_ERRORS),
    ...text(given, 'tenant'),
    ...oneOf(given, 'by', ['password'] as const),
  };
}
