import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { Fault } from '../../src/domain/errors.ts';
import { rotationTimes } from '../../src/identity/signing-key-plan.ts';
import { rotateSigningKeys, SigningKeys } from '../../src/identity/signing-keys.ts';
import { runs } from '../support/properties.ts';
import { memoryKeyStore } from './support/memory-key-store.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const SECRET = 'a secret key of more than 32 characters';
const opened: SigningKeys[] = [];

afterEach(() => {
  for (const keys of opened.splice(0)) {
    keys.close();
  }
});

function world() {
  const store = memoryKeyStore();
  const time = { nowMs: Date.parse('2026-11-18T11:00:00Z'), monotonicMs: 0 };
  const faults: unknown[] = [];
  const server = (secretKey = SECRET): SigningKeys => {
    const keys = new SigningKeys({
      store,
      secretKey,
      times: rotationTimes(HOUR),
      clock: () => time.nowMs,
      monotonicMs: () => time.monotonicMs,
      onFault: (error) => faults.push(error),
    });
    opened.push(keys);
    return keys;
  };
  /** Rotates in another process; the feed reports it to the ring. */
  const rotate = async (ring: SigningKeys): Promise<void> => {
    await rotateSigningKeys(store, { secretKey: SECRET, times: rotationTimes(HOUR), nowMs: time.nowMs });
    ring.apply([{ kind: 'signing_keys' }]);
    await ring.find('none');
  };
  return { store, time, faults, server, rotate };
}

describe('the key ring', () => {
  it('makes one key at the first start, and two servers sign with the same', async () => {
    const { store, server } = world();
    const [a, b] = [server(), server()];
    await Promise.all([a.start(), b.start()]);
    expect(store.keys()).toHaveLength(1);
    expect(a.current().kid).toBe(b.current().kid);
  });

  it('stores private keys sealed, and says what is wrong when the secret key was changed', async () => {
    const { store, server } = world();
    await server().start();
    const stored = store.keys().map((key) => Buffer.from(key.privateSealed).toString('latin1'));
    expect(stored.join()).not.toContain('\x2a\x86\x48\xce\x3d\x02\x01');
    await expect(server('another secret key of 32 characters or more').start()).rejects.toThrow(
      /cannot be decrypted with this secret-key/,
    );
  });

  it('verifies nothing with a key that was just taken away, not even while the ring is still being read', async () => {
    const { store, server } = world();
    const keys = server();
    await keys.start();
    const { kid } = keys.current();
    await store.change(() => ({ insert: [], retire: [], remove: [kid] }));
    keys.apply([{ kind: 'signing_keys' }]);
    expect(await keys.find(kid)).toBeUndefined();
  });

  it('is a fault, not a signature, when keys have changed and cannot be read', async () => {
    const { store, server } = world();
    const keys = server();
    await keys.start();
    store.setDown(true);
    keys.apply([{ kind: 'signing_keys' }]);
    await expect(keys.find(keys.current().kid)).rejects.toThrow(Fault);
  });

  it('publishes a key a day before it signs and keeps it until its last token is past its expiry', async () => {
    const { time, server } = world();
    const keys = server();
    await keys.start();
    const first = keys.current().kid;
    time.nowMs += 29 * DAY - 1;
    await keys.maintain();
    expect(keys.published()).toHaveLength(1);
    time.nowMs += 1;
    await keys.maintain();
    expect(keys.published()).toHaveLength(2);
    expect(keys.current().kid).toBe(first);
    time.nowMs += DAY - 1;
    expect(keys.current().kid).toBe(first);
    time.nowMs += 1;
    const second = keys.current().kid;
    expect(second).not.toBe(first);
    time.nowMs += 25 * HOUR - 1;
    await keys.maintain();
    expect(await keys.find(first)).toBeDefined();
    time.nowMs += 1;
    await keys.maintain();
    expect(keys.published().map((key) => key.kid)).toEqual([second]);
  });

  it('rotates once for each command, and keeps the key of every token of the last 24 hours, for any times of upkeep', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(fc.nat({ max: 40 }), fc.boolean()), { maxLength: 40 }), async (steps) => {
        const { time, server, rotate: rotateByHand } = world();
        const keys = server();
        await keys.start();
        const signed: { readonly kid: string; readonly atMs: number }[] = [];
        for (const [hours, rotate] of steps) {
          time.nowMs += hours * HOUR;
          const published = new Set(keys.published().map((key) => key.kid));
          expect(published).toContain(keys.current().kid);
          signed.push({ kid: keys.current().kid, atMs: time.nowMs });
          await (rotate ? rotateByHand(keys) : keys.maintain());
          expect(published).toContain(keys.current().kid);
          for (const { kid, atMs } of signed) {
            if (time.nowMs - atMs < 24 * HOUR) {
              expect(await keys.find(kid)).toBeDefined();
            }
          }
          expect(keys.published().length).toBeLessThanOrEqual(4);
        }
      }),
      { numRuns: runs(25), examples: [[[0, 24, 24, 24, 24, 24].map((hours): [number, boolean] => [hours, true])]] },
    );
  });

  it('signs on a server whose clock lags behind the one that made the first key', async () => {
    const { time, server } = world();
    const first = server();
    await first.start();
    time.nowMs -= 5000;
    const second = server();
    await second.start();
    expect(second.current().kid).toBe(first.current().kid);
  });

  it('knows a key that another server made once the feed says so', async () => {
    const { server, rotate } = world();
    const [a, b] = [server(), server()];
    await a.start();
    await b.start();
    await rotate(a);
    expect(b.published()).toHaveLength(1);
    b.apply([{ kind: 'user' }]);
    b.apply([{ kind: 'signing_keys' }]);
    await b.find('x'.repeat(43));
    expect(b.published()).toEqual(a.published());
  });

  it('asks the store for a key that it does not know, at most once a second', async () => {
    const { store, time, server } = world();
    const keys = server();
    await keys.start();
    const before = store.loads();
    for (let i = 0; i < 50; i++) {
      expect(await keys.find(`unknown-${i}`)).toBeUndefined();
    }
    expect(store.loads()).toBe(before + 1);
    time.monotonicMs += 1000;
    await Promise.all(Array.from({ length: 50 }, (_, i) => keys.find(`unknown-${i}`)));
    expect(store.loads()).toBe(before + 2);
  });

  it('reports a fault for an unknown key while the store is down, and continues with its loaded keys', async () => {
    const { store, time, faults, server } = world();
    const keys = server();
    await keys.start();
    store.setDown(true);
    const { kid } = keys.current();
    await expect(keys.find('unknown')).rejects.toBeInstanceOf(Fault);
    await expect(keys.find('unknown')).rejects.toBeInstanceOf(Fault);
    expect(await keys.find(kid)).toBeDefined();
    keys.flush();
    await expect.poll(() => faults.length).toBe(1);
    store.setDown(false);
    time.monotonicMs += 1000;
    expect(await keys.find('unknown')).toBeUndefined();
    expect(keys.current().kid).toBe(kid);
  });
});
