/** A key ring in memory with a clock of its own. */

import { rotationTimes } from '../../../src/identity/signing-key-plan.ts';
import { rotateSigningKeys, SigningKeys } from '../../../src/identity/signing-keys.ts';
import { memoryKeyStore } from './memory-key-store.ts';

const SECRET = 'a secret key of more than 32 characters';
const TIMES = rotationTimes(3_600_000);

export interface SigningRing {
  readonly keys: SigningKeys;
  /** The clock of the ring. */
  readonly time: { nowMs: number };
  /** Does what the hourly upkeep does. */
  maintain(): Promise<void>;
  /** Rotates by hand, and the ring reads the change. */
  rotate(): Promise<void>;
  /** Removes a key from the store, and the ring reads the change. */
  remove(kid: string): Promise<void>;
}

/** Returns a ring with its first key, which signs from `nowMs` on. */
export async function signingRing(nowMs: number): Promise<SigningRing> {
  const time = { nowMs };
  const store = memoryKeyStore();
  const keys = new SigningKeys({
    store,
    secretKey: SECRET,
    times: TIMES,
    clock: () => time.nowMs,
    monotonicMs: () => 0,
    onFault: (error) => {
      throw error;
    },
  });
  await keys.maintain();
  const reread = async (): Promise<void> => {
    keys.apply([{ kind: 'signing_keys' }]);
    await keys.find('none');
  };
  return {
    keys,
    time,
    maintain: () => keys.maintain(),
    async rotate() {
      await rotateSigningKeys(store, { secretKey: SECRET, times: TIMES, nowMs: time.nowMs });
      await reread();
    },
    async remove(kid) {
      await store.change(() => ({ insert: [], retire: [], remove: [kid] }));
      await reread();
    },
  };
}
