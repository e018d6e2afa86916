/** The meaning of a server's answer to a person's bind. These tables have all texts and codes that servers use. */

import type { DirectoryReason } from './model.ts';
import type { PolicyError } from './password-policy.ts';

export interface BindResult {
  /** RFC 4511, appendix A. */
  readonly code: number;
  readonly text: string;
  readonly policy: PolicyError | undefined;
}

export type BindOutcome =
  | { readonly kind: 'proved' }
  | { readonly kind: 'password_expired'; readonly reason: 'expired' | 'must_change' }
  | { readonly kind: 'refused'; readonly reason: DirectoryReason }
  /**
   * The answer does not concern the password: the server is busy, requires another transport, or reports something
   * else.
   */
  | { readonly kind: 'fault'; readonly detail: string };

const SUCCESS = 0;
const INVALID_CREDENTIALS = 49;

const refused = (reason: DirectoryReason): BindOutcome => ({ kind: 'refused', reason });
const EXPIRED: BindOutcome = { kind: 'password_expired', reason: 'expired' };
const MUST_CHANGE: BindOutcome = { kind: 'password_expired', reason: 'must_change' };

/**
 * Active Directory's `data` of code 49, hexadecimal. It reports expiry (532, 773) and most states only if the password
 * is right.
 */
const AD_DATA: Readonly<Record<string, BindOutcome>> = {
  '525': refused('unknown_user'),
  '52e': refused('wrong_password'),
  '52f': refused('refused'),
  '530': refused('not_at_this_time'),
  '531': refused('not_from_this_station'),
  '532': EXPIRED,
  '533': refused('disabled'),
  '701': refused('expired'),
  '773': MUST_CHANGE,
  '775': refused('locked'),
};

/**
 * Texts of 389 Directory Server and FreeIPA, with their codes: with another code, the same words may have another
 * meaning.
 */
const TEXTS: readonly { readonly code: number; readonly text: RegExp; readonly outcome: BindOutcome }[] = [
  { code: INVALID_CREDENTIALS, text: /^password expired/i, outcome: EXPIRED },
  { code: 53, text: /inactivated|account is (?:disabled|locked by)/i, outcome: refused('disabled') },
  { code: 53, text: /too many failed logins/i, outcome: refused('locked') },
  // The server sends this before it verifies the password, so it proves nothing.
  { code: 53, text: /expired/i, outcome: refused('expired') },
  { code: 19, text: /retry limit|locked/i, outcome: refused('locked') },
  { code: 19, text: /inactivity limit/i, outcome: refused('expired') },
];

/** Codes that are sufficient without a text. */
const CODES: Readonly<Record<number, BindOutcome>> = {
  19: refused('refused'),
  32: refused('unknown_user'),
  34: refused('invalid_username'),
  48: refused('wrong_password'),
  [INVALID_CREDENTIALS]: refused('wrong_password'),
  50: refused('refused'),
  53: refused('refused'),
};

export function bindOutcome({ code, text, policy }: BindResult): BindOutcome {
  if (code === SUCCESS) return policy === 'change_after_reset' ? MUST_CHANGE : { kind: 'proved' };
  const fallback = CODES[code];
  if (fallback === undefined)
    return { kind: 'fault', detail: `the directory answered the bind with code ${code}: ${text}` };
  const data = code === INVALID_CREDENTIALS ? /\bdata ([0-9a-f]{1,8})\b/i.exec(text)?.[1] : undefined;
  if (data !== undefined) return AD_DATA[data.toLowerCase()] ?? refused('refused');
  const worded = TEXTS.find((line) => line.code === code && line.text.test(text));
  if (worded !== undefined) return worded.outcome;
  if (policy === 'account_locked') return refused('locked');
  return policy === 'password_expired' && code === INVALID_CREDENTIALS ? EXPIRED : fallback;
}
