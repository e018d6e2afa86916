/** A key store in memory, for what is about the ring and not about the table. */

import { Fault } from '../../../src/domain/errors.ts';
import type { SigningKeyStore, StoredSigningKey } from '../../../src/identity/ports.ts';

export interface MemoryKeyStore extends SigningKeyStore {
  readonly loads: () => number;
  readonly setDown: (down: boolean) => void;
  readonly keys: () => readonly StoredSigningKey[];
}

export function memoryKeyStore(): MemoryKeyStore {
  let keys: readonly StoredSigningKey[] = [];
  let loads = 0;
  let down = false;
  const answer = <T>(value: () => T): Promise<T> =>
    down ? Promise.reject(new Fault('the key store is down')) : Promise.resolve(value());
  return {
    load: () => {
      loads++;
      return answer(() => keys);
    },
    change: (plan) =>
      answer(() => {
        const { insert, retire, remove } = plan(keys);
        const retiredAt = new Map(retire.map(({ kid, retiredAtMs }) => [kid, retiredAtMs]));
        keys = [
          ...keys
            .filter((key) => !remove.includes(key.kid))
            .map((key) => ({ ...key, retiredAtMs: retiredAt.get(key.kid) ?? key.retiredAtMs })),
          ...insert,
        ];
        return keys;
      }),
    loads: () => loads,
    setDown: (value) => {
      down = value;
    },
    keys: () => keys,
  };
}
