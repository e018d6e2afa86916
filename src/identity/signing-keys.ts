/**
 * The key ring: every published signing key, opened. It is read at the start, when the change feed reports a change of
 * keys, and, at most once a second, when a token names an unknown key. A failed read leaves the ring as it was.
 */

import { SingleFlight } from '../concurrency/single-flight.ts';
import { Fault } from '../domain/errors.ts';
import type { PublicJwk, SigningKeyStore, StoredSigningKey } from './ports.ts';
import { deriveKey } from './seal.ts';
import { makeSigningKey, openSigningKey, type SigningKey } from './signing-key.ts';
import { currentKey, planRotation, planUpkeep, type RotationTimes } from './signing-key-plan.ts';

interface SigningKeysParts {
  readonly store: SigningKeyStore;
  readonly secretKey: string;
  /** Accepted as well: keys may be sealed under either while the installation changes its `secret-key`. */
  readonly otherSecretKey?: string | undefined;
  readonly times: RotationTimes;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  /** `performance.now()` */
  readonly monotonicMs: () => number;
  /** Receives errors of background work. The ring keeps its keys and tries again. */
  readonly onFault: (error: unknown) => void;
}

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
  /** Loops if `#readAgain` is set during a read, which may have begun before the change. */
  readonly #reads = new SingleFlight(() => this.#readUntilFresh());
  #readAgain: boolean = false;
  /** A change was reported and not read yet: a key in the ring may have been removed. */
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

  /**
   * Loads the keys, creates the first one if there is none, and maintains them every hour. Rejects with a Fault if the
   * store cannot answer.
   */
  async start(): Promise<void> {
    await this.maintain();
    this.#upkeep = setInterval(() => this.maintain().catch(this.#parts.onFault), UPKEEP_EVERY_MS);
    this.#upkeep.unref();
  }

  close(): void {
    clearInterval(this.#upkeep);
    clearTimeout(this.#retry);
  }

  /** Applies the changes that are due: a next key ahead of need, and the removal of keys without tokens. */
  async maintain(): Promise<void> {
    const { store, clock, times } = this.#parts;
    this.#take(await store.change((keys) => planUpkeep(keys, clock(), times, keyMaker(this.#sealKey))));
  }

  /** Returns the key that signs now. Throws a Fault before the first successful read. */
  current(): SigningKey {
    const key = currentKey([...this.#ring.values()], this.#parts.clock());
    if (key === undefined) {
      throw new Fault('no signing key exists yet');
    }
    return key;
  }

  /**
   * Returns the time since the current key began to sign, in milliseconds; undefined before the first successful read.
   */
  ageMs(): number | undefined {
    const now = this.#parts.clock();
    const key = currentKey([...this.#ring.values()], now);
    return key === undefined ? undefined : Math.max(0, now - key.signsFromMs);
  }

  /**
   * Returns the key of an id; undefined = there is none. After a change it waits until the ring is read, so that a
   * removed key verifies nothing more. Rejects with a Fault if a read is needed and the store cannot answer.
   */
  async find(kid: string): Promise<SigningKey | undefined> {
    if (this.#outdated) {
      await this.#reads.run();
    }
    return this.#ring.get(kid) ?? (await this.#findUnknown(kid));
  }

  /** Reports whether the last read found the key. */
  isPublished(kid: string): boolean {
    return this.#ring.has(kid);
  }

  /** Next, current and retired. */
  published(): readonly PublishedKey[] {
    return [...this.#ring.values()].map(({ kid, publicJwk }) => ({ ...publicJwk, kid, use: 'sig', alg: 'ES256' }));
  }

  apply(batch: readonly { readonly kind: string }[]): void {
    if (batch.some((change) => change.kind === 'signing_keys')) {
      this.#readInBackground();
    }
  }

  flush(): void {
    this.#readInBackground();
  }

  async #findUnknown(kid: string): Promise<SigningKey | undefined> {
    const nowMs = this.#parts.monotonicMs();
    if (this.#reads.isRunning) {
      await this.#reads.idle();
    } else if (nowMs - this.#readForUnknownAtMs >= RELOAD_AT_MOST_EVERY_MS) {
      this.#readForUnknownAtMs = nowMs;
      await this.#reads.run();
    } else if (this.#lastReadFailed) {
      throw new Fault('the signing keys cannot be read');
    }
    return this.#ring.get(kid);
  }

  #readInBackground(): void {
    this.#outdated = true;
    this.#readAgain = true;
    this.#reads.run().catch((error: unknown) => {
      this.#parts.onFault(error);
      clearTimeout(this.#retry);
      this.#retry = setTimeout(() => this.#readInBackground(), RELOAD_AT_MOST_EVERY_MS);
      this.#retry.unref();
    });
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
 * Rotates manually: publishes a next key now, which takes over a day later. Does nothing while one is already waiting.
 * Other servers learn of it from the change feed.
 * @returns all keys after the change, and whether one was created
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
