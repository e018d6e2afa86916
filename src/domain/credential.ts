/** The form of a request's credential, before any lookup. */

import type { KeyDigest } from './ids.ts';

export type CredentialForm =
  | { readonly kind: 'missing' }
  /** More than one credential, too long, characters outside RFC 6750's, or no API key in a header for API keys. */
  | { readonly kind: 'malformed' }
  /** A scheme other than Bearer. */
  | { readonly kind: 'other_scheme' }
  /** An API key with a wrong checksum, which is rejected without a lookup. */
  | { readonly kind: 'bad_checksum' }
  /** An API key with the right checksum, or any text that may be an imported key of another system. */
  | { readonly kind: 'api_key'; readonly digest: KeyDigest }
  /**
   * A JWT, or any other text after Bearer. Only a token of Postern proves a principal. `digest` is its SHA-256, the key
   * of the cache.
   */
  | { readonly kind: 'token'; readonly token: string; readonly digest: string };
