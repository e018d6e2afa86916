/** The ports of identity. `store` implements them, and `src/server` wires them. */

/** The public half of an ES256 key as RFC 7517 writes it. */
export interface PublicJwk {
  readonly kty: 'EC';
  readonly crv: 'P-256';
  readonly x: string;
  readonly y: string;
}

/**
 * One signing key. It is published from its creation on, signs from `signsFromMs` until `retiredAtMs`, and stays
 * published after it.
 */
export interface StoredSigningKey {
  /** RFC 7638 thumbprint of the public key. */
  readonly kid: string;
  readonly publicJwk: PublicJwk;
  /** PKCS#8, sealed under `secret-key` with the kid as its context. */
  readonly privateSealed: Uint8Array;
  /** Milliseconds since the epoch, as all times here. */
  readonly signsFromMs: number;
  /** The time at which its successor takes over, which may be in the future; undefined = it has no successor. */
  readonly retiredAtMs: number | undefined;
}

/** Changes of the key ring, planned under a lock. */
export interface SigningKeyChange {
  readonly insert: readonly StoredSigningKey[];
  readonly retire: readonly { readonly kid: string; readonly retiredAtMs: number }[];
  readonly remove: readonly string[];
}

/** Both methods reject with a Fault if the store cannot answer. */
export interface SigningKeyStore {
  load(): Promise<readonly StoredSigningKey[]>;
  /**
   * Loads the keys, calls `plan` and applies its changes in one transaction. Transactions of other servers cannot
   * overlap it, so two servers that start together create one key.
   * @returns the keys after the changes
   */
  change(plan: (keys: readonly StoredSigningKey[]) => SigningKeyChange): Promise<readonly StoredSigningKey[]>;
}
