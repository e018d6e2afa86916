/** What identity asks of the store. `store` implements these; `src/server` wires them. */

/** The public half of an ES256 key as RFC 7517 writes it. */
export interface PublicJwk {
  readonly kty: 'EC';
  readonly crv: 'P-256';
  readonly x: string;
  readonly y: string;
}

/** One signing key. It is published from the moment it exists, signs from `signsFromMs` until `retiredAtMs`, and stays published after. */
export interface StoredSigningKey {
  /** RFC 7638 thumbprint of the public key. */
  readonly kid: string;
  readonly publicJwk: PublicJwk;
  /** PKCS#8, sealed under `secret-key` with the kid as its context. */
  readonly privateSealed: Uint8Array;
  /** Milliseconds since the epoch, as all times here. */
  readonly signsFromMs: number;
  /** May lie ahead: the moment when its successor takes over. Undefined while it has none. */
  readonly retiredAtMs: number | undefined;
}

/** What to do with the key ring, decided while nobody else can change it. */
export interface SigningKeyChange {
  readonly insert: readonly StoredSigningKey[];
  readonly retire: readonly { readonly kid: string; readonly retiredAtMs: number }[];
  readonly remove: readonly string[];
}

/** Both reject with a Fault when the store cannot answer. */
export interface SigningKeyStore {
  load(): Promise<readonly StoredSigningKey[]>;
  /**
   * Loads the keys, lets `plan` decide and applies what it says, in one transaction that no other server's can overlap: two that
   * start together make one key.
   * @returns the keys afterwards
   */
  change(plan: (keys: readonly StoredSigningKey[]) => SigningKeyChange): Promise<readonly StoredSigningKey[]>;
}
