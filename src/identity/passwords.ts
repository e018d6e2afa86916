/**
 * Passwords under argon2id (RFC 9106). Hashing is slow by design, so it runs in a bounded queue: when the queue is
 * full, the caller gets 503 and the server keeps its memory. Passwords are normalized to NFC first, so that the same
 * letters typed on two systems match.
 */

import { availableParallelism } from 'node:os';
import { hash, type Options, verify } from '@node-rs/argon2';
import { Fault, Refusal } from '../domain/errors.ts';
import { letHashingGiveWay } from './hashing-threads.ts';
import { MAX_PASSWORD_LENGTH } from './password-rules.ts';
import { makeWorkQueue, type WorkQueue } from './work-queue.ts';

/**
 * m=19456 KiB, t=2, p=1: the minimum of OWASP's password storage guide for argon2id, which is this library's default
 * kind.
 */
const PARAMETERS = { memoryCost: 19_456, timeCost: 2, parallelism: 1, outputLen: 32 } as const satisfies Options;
/** A hash in the PHC string format with these parameters: a salt, and the hash in base64 without padding. */
const TODAYS = new RegExp(
  `^\\$argon2id\\$v=19\\$m=${PARAMETERS.memoryCost},t=${PARAMETERS.timeCost},p=${PARAMETERS.parallelism}\\$[^$]+\\$[^$]{${Math.ceil((PARAMETERS.outputLen * 4) / 3)}}$`,
);
const MAX_WAITING = 64;
const RETRY_AFTER_SECONDS = 1;
/** More UTF-16 units than any accepted password has. */
const MAX_PASSWORD_UNITS = MAX_PASSWORD_LENGTH * 4;

interface PasswordsOptions {
  /** Concurrent hashes; each takes 19 MiB and a processor. */
  readonly maxRunning?: number;
  readonly maxWaiting?: number;
}

export class Passwords {
  readonly #queue: WorkQueue;
  /** A hash of a random password, so that an unknown user costs the same work as a known one. */
  readonly #dummy: string;

  private constructor(queue: WorkQueue, dummy: string) {
    this.#queue = queue;
    this.#dummy = dummy;
  }

  static async start(options: PasswordsOptions = {}): Promise<Passwords> {
    // One processor stays free for checks. More than four hashes would only wait for the thread pool.
    const maxRunning = options.maxRunning ?? Math.min(Math.max(availableParallelism() - 1, 1), 4);
    const dummy = await hash(crypto.randomUUID(), PARAMETERS);
    letHashingGiveWay();
    return new Passwords(makeWorkQueue(maxRunning, options.maxWaiting ?? MAX_WAITING), dummy);
  }

  /**
   * Rejects with the Refusal `unavailable` if the queue is full.
   * @param key a tenant whose administrator may ask for any number of hashes: it leaves half of the queue to others
   */
  async hash(password: string, key?: string): Promise<string> {
    return await this.#enqueue(() => hash(password.normalize('NFC'), PARAMETERS), key);
  }

  /**
   * Reports whether the password is correct. The work is the same for a wrong, an empty and an overlong password, and
   * without a hash: for an unknown user, or one that has no password yet.
   */
  async verify(stored: string | undefined, password: string): Promise<boolean> {
    const comparable = stored !== undefined && password.length <= MAX_PASSWORD_UNITS;
    const attempt = comparable ? password.normalize('NFC') : '';
    const right = await this.#enqueue(() => verify(comparable ? stored : this.#dummy, attempt).catch(faultOfHash));
    return comparable && right;
  }

  /** Reports whether the hash has other parameters than new ones: hash again while the password is known. */
  needsRehash(stored: string): boolean {
    return !TODAYS.test(stored);
  }

  #enqueue<T>(task: () => Promise<T>, key?: string): Promise<T> {
    const result = this.#queue.run(task, key);
    if (result === undefined) {
      throw new Refusal(
        'unavailable',
        'The server is checking too many passwords at once. Try again in a few seconds.',
        { retryAfter: RETRY_AFTER_SECONDS },
      );
    }
    return result;
  }
}

function faultOfHash(cause: unknown): never {
  throw new Fault('a stored password hash cannot be read', { cause });
}
