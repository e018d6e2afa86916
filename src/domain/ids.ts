/** Branded identifiers. A string becomes one only in its parser here, and later code does not check it again. */

import { VISIBLE_TEXT } from './visible-text.ts';

declare const brand: unique symbol;
type Branded<Name extends string> = string & { readonly [brand]: Name };

export type TenantId = Branded<'TenantId'>;
export type UserId = Branded<'UserId'>;
export type KeyId = Branded<'KeyId'>;
export type SessionId = Branded<'SessionId'>;
export type IssuerId = Branded<'IssuerId'>;
export type BudgetId = Branded<'BudgetId'>;
export type WebhookId = Branded<'WebhookId'>;
export type DeliveryId = Branded<'DeliveryId'>;
export type RequestId = Branded<'RequestId'>;
export type RoleName = Branded<'RoleName'>;
export type PolicyName = Branded<'PolicyName'>;
export type IssuerName = Branded<'IssuerName'>;
export type BudgetName = Branded<'BudgetName'>;
/**
 * SHA-256 of an API key's whole text, as 64 lower-case hexadecimal digits: the only form in which a key is stored or
 * looked up.
 */
export type KeyDigest = Branded<'KeyDigest'>;

const TENANT = /^[a-z0-9][a-z0-9-]{0,62}$/;
const NAME = /^[a-z][a-z0-9_-]{0,62}$/;
/** Text that a person types, without control characters and lone surrogates. */
const BUDGET_NAME = new RegExp(`${VISIBLE_TEXT}[^\\p{Cc}\\p{Cs}]{1,64}$`, 'u');
const DIGEST = /^[0-9a-f]{64}$/;

export function parseTenantId(text: string): TenantId | undefined {
  return TENANT.test(text) ? (text as TenantId) : undefined;
}

export function parseRoleName(text: string): RoleName | undefined {
  return NAME.test(text) ? (text as RoleName) : undefined;
}

export function parsePolicyName(text: string): PolicyName | undefined {
  return NAME.test(text) ? (text as PolicyName) : undefined;
}

export function parseIssuerName(text: string): IssuerName | undefined {
  return NAME.test(text) ? (text as IssuerName) : undefined;
}

/** Returns the name without surrounding blanks, in the composed form of Unicode, so that equal names are equal texts. */
export function parseBudgetName(text: string): BudgetName | undefined {
  const name = text.trim().normalize('NFC');
  return BUDGET_NAME.test(name) ? (name as BudgetName) : undefined;
}

export function parseKeyDigest(text: string): KeyDigest | undefined {
  return DIGEST.test(text) ? (text as KeyDigest) : undefined;
}

export type PrefixedId = {
  usr: UserId;
  key: KeyId;
  ses: SessionId;
  req: RequestId;
  iss: IssuerId;
  bud: BudgetId;
  whk: WebhookId;
  dlv: DeliveryId;
};

/** An id's form: prefix, underscore, 26 characters of Crockford's base 32 in lower case. */
const PREFIXED = /^(usr|key|ses|req|iss|bud|whk|dlv)_[0-9a-hjkmnp-tv-z]{26}$/;

/** Parses an id of one kind. Returns undefined for any other text, which names nothing that exists. */
export function parseId<P extends keyof PrefixedId>(prefix: P, text: string): PrefixedId[P] | undefined {
  return PREFIXED.test(text) && text.startsWith(`${prefix}_`) ? (text as PrefixedId[P]) : undefined;
}

const DIGITS = '0123456789abcdefghjkmnpqrstvwxyz';

/**
 * Makes a prefixed, time-ordered id: 48 bits of milliseconds since the epoch, then 80 random bits.
 * @param random at least 10 bytes from a secure source
 */
export function makeId<P extends keyof PrefixedId>(prefix: P, nowMs: number, random: Uint8Array): PrefixedId[P] {
  let time = '';
  for (let rest = nowMs, i = 0; i < 10; i++) {
    time = DIGITS.charAt(rest % 32) + time;
    rest = Math.floor(rest / 32);
  }
  let tail = '';
  for (let i = 0, bits = 0, held = 0; i < 10; i++) {
    held = ((held << 8) | (random[i] ?? 0)) & 0x1fff;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      tail += DIGITS.charAt((held >> bits) & 31);
    }
  }
  return `${prefix}_${time}${tail}` as PrefixedId[P];
}

/** The tenant that the first start creates. It cannot be deleted or suspended. */
export const DEFAULT_TENANT = 'default' as TenantId;
