/** The form of what a request brought to prove itself, before anybody looked it up. */

import type { KeyDigest } from './ids.ts';

export type CredentialForm =
  | { readonly kind: 'missing' }
  /** More than one credential, too long, characters outside RFC 6750's, or no API key in a header for API keys. */
  | { readonly kind: 'malformed' }
  /** Another scheme than Bearer. */
  | { readonly kind: 'other_scheme' }
  /** Looks like an API key, but its checksum is wrong: refused with no look-up. */
  | { readonly kind: 'bad_checksum' }
  /** An API key with the right checksum, or any text that may be an imported key of another system. */
  | { readonly kind: 'api_key'; readonly digest: KeyDigest }
  /** A JWT, or anything else that Bearer may carry; only a token of ours proves anything. `digest` is its SHA-256, the key it is remembered by. */
  | { readonly kind: 'token'; readonly token: string; readonly digest: string };
