import { KeyUses } from '../store/last-use.ts';
import type { Wiring } from './wiring.ts';

/** The writer of each key's last use. Stopped with the stack. */
export function keyUses({ config, store, telemetry }: Wiring, stack: AsyncDisposableStack): KeyUses {
  const uses = new KeyUses({
    db: store.db,
    maxKeys: config.cache.credentials,
    onError: (error) => {
      telemetry.log.warn(
        { part: 'last use', err: error, waiting: uses.waiting },
        'the last use of keys could not be written',
      );
    },
  });
  stack.defer(() => uses.stop());
  return uses;
}
