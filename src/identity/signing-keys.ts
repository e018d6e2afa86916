/**
 * The key ring: every signing key that is published now, opened. It is read at the start, when the change feed says that keys changed,
 * and, at most once a second, when a token names a key that it does not know. A reading that fails leaves the ring as it was.
 */

import { Fault } from '../domain/errors.ts';
import type { PublicJwk, SigningKeyStore, StoredSigningKey } from './ports.ts';
import { deriveKey } from './seal.ts';
import { makeSigningKey, openSigningKey, type SigningKey } from './signing-key.ts';
import { currentKey, planRotation, planUpkeep, type RotationTimes } from './signing-key-plan.ts';

export interface SigningKeysParts {
  readonly store: SigningKeyStore;
  readonly secretKey: string;
  /** Accepted too: keys may be sealed under either while the installation changes its `secret-key`. */
  readonly otherSecretKey?: string | undefined;
  readonly times: RotationTimes;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  /** `performance.now()` */
  readonly monotonicMs: () => number;
  /** Told of what failed in the background; the ring goes on with what it has and tries again. */
  readonly onFault: (error: unknown) => void;
}

/** A public key as the key set shows it. */
export interface PublishedKey extends PublicJwk {
  readonly kid: string;
  readonly use: 'sig';
  readonly alg: 'ES256';
}

const UPKEEP_EVERY_MS = 3_600_000;
const RELOAD_AT_MOST_EVERY_MS = 1000;

export class SigningKeys {
  readonly #parts: SigningKeysParts;
  readonly #sealKey: Uint8Array;
  readonly #otherSealKey: Uint8Array | undefined;
  #ring: ReadonlyMap<string, SigningKey> = new Map();
  #reading: Promise<void> | undefined;
  #readAgain: boolean = false;
  /** Told of a change that has not been read yet: a key in the ring may have been taken away. */
  #outdated = false;
  #lastReadFailed: boolean = false;
  #readForUnknownAtMs = Number.NEGATIVE_INFINITY;
  #upkeep: NodeJS.Timeout | undefined;
  #retry: NodeJS.Timeout | undefined;

  constructor(parts: SigningKeysParts) {
    this.#parts = parts;
    this.#sealKey = deriveKey(parts.secretKey, 'signing-keys');
    this.#otherSealKey =
      parts.otherSecretKey === undefined ? undefined : deriveKey(parts.otherSecretKey, 'signing-keys');
  }

  /** Loads the keys, makes the first where there is none, and looks after them every hour. Rejects with a Fault when it cannot. */
  async start(): Promise<void> {
    await this.maintain();
    this.#upkeep = setInterval(() => this.maintain().catch(this.#parts.onFault), UPKEEP_EVERY_MS);
    this.#upkeep.unref();
  }

  close(): void {
    clearInterval(this.#upkeep);
    clearTimeout(this.#retry);
  }

  /** Does what is due: a next key ahead of need, and away with those whose tokens are gone. */
  async maintain(): Promise<void> {
    const { store, clock, times } = this.#parts;
    this.#take(await store.change((keys) => planUpkeep(keys, clock(), times, keyMaker(this.#sealKey))));
  }

  /** True when tokens can be signed and verified. */
  isReady(): boolean {
    return this.#ring.size > 0;
  }

  /** The key that signs now. Throws a Fault before the first successful reading. */
  current(): SigningKey {
    const key = currentKey([...this.#ring.values()], this.#parts.clock());
    if (key === undefined) {
      throw new Fault('no signing key exists yet');
    }
    return key;
  }

  /** How long the current key has signed, in milliseconds; undefined before the first successful reading. */
  ageMs(): number | undefined {
    const now = this.#parts.clock();
    const key = currentKey([...this.#ring.values()], now);
    return key === undefined ? undefined : Math.max(0, now - key.signsFromMs);
  }

  /**
   * The key of that id; undefined when there is none. After a change it waits for the ring to be read, so that a key that was taken away
   * verifies nothing more. Rejects with a Fault when the store has to be asked and cannot be.
   */
  async find(kid: string): Promise<SigningKey | undefined> {
    if (this.#outdated) {
      await (this.#reading ?? this.#read());
    }
    return this.#ring.get(kid) ?? (await this.#findUnknown(kid));
  }

  /** Next, current and retired. */
  published(): readonly PublishedKey[] {
    return [...this.#ring.values()].map(({ kid, publicJwk }) => ({ ...publicJwk, kid, use: 'sig', alg: 'ES256' }));
  }

  /** A batch of the change feed. */
  apply(batch: readonly { readonly kind: string }[]): void {
    if (batch.some((change) => change.kind === 'signing_keys')) {
      this.#readInBackground();
    }
  }

  /** The change feed lost its place. */
  flush(): void {
    this.#readInBackground();
  }

  async #findUnknown(kid: string): Promise<SigningKey | undefined> {
    const nowMs = this.#parts.monotonicMs();
    if (this.#reading !== undefined) {
      await this.#reading;
    } else if (nowMs - this.#readForUnknownAtMs >= RELOAD_AT_MOST_EVERY_MS) {
      this.#readForUnknownAtMs = nowMs;
      await this.#read();
    } else if (this.#lastReadFailed) {
      throw new Fault('the signing keys cannot be read');
    }
    return this.#ring.get(kid);
  }

  #readInBackground(): void {
    this.#outdated = true;
    this.#read().catch((error: unknown) => {
      this.#parts.onFault(error);
      clearTimeout(this.#retry);
      this.#retry = setTimeout(() => this.#readInBackground(), RELOAD_AT_MOST_EVERY_MS);
      this.#retry.unref();
    });
  }

  /** One reading at a time. Asked for during one, another follows it: the first may have begun before the change. */
  #read(): Promise<void> {
    if (this.#reading !== undefined) {
      this.#readAgain = true;
      return this.#reading;
    }
    this.#reading = this.#readUntilFresh().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #readUntilFresh(): Promise<void> {
    this.#lastReadFailed = true;
    do {
      this.#readAgain = false;
      this.#take(await this.#parts.store.load());
    } while (this.#readAgain);
    this.#outdated = false;
    this.#lastReadFailed = false;
  }

  #take(stored: readonly StoredSigningKey[]): void {
    const opened = stored.map(
      (key) => this.#ring.get(key.kid) ?? openSigningKey(this.#sealKey, key, this.#otherSealKey),
    );
    this.#ring = new Map(opened.map((key) => [key.kid, key]));
  }
}

/**
 * A rotation by hand: publishes a next key now, which takes over a day later. Does nothing while one is already waiting. Servers learn
 * of it by the change feed.
 * @returns all keys afterwards, and whether one was made
 */
export async function rotateSigningKeys(
  store: Pick<SigningKeyStore, 'change'>,
  by: { readonly secretKey: string; readonly times: RotationTimes; readonly nowMs: number },
): Promise<{ readonly keys: readonly StoredSigningKey[]; readonly made: boolean }> {
  const makeKey = keyMaker(deriveKey(by.secretKey, 'signing-keys'));
  let made = false;
  const keys = await store.change((present) => {
    const change = planRotation(present, by.nowMs, by.times, makeKey);
    made = change.insert.length > 0;
    return change;
  });
  return { keys, made };
}

function keyMaker(sealKey: Uint8Array): (signsFromMs: number) => StoredSigningKey {
  return (signsFromMs) => makeSigningKey(sealKey, signsFromMs);
}
