import { expect, test } from 'vitest';
import { Limits } from '../../src/metering/limits.ts';
import { MemoryStore } from './support/memory-store.ts';
import { askOf } from './support/world.ts';

const NOW_MS = Date.UTC(2026, 10, 21);
const PROCESS = '0123456789abcdef';
const REQUEST = askOf({ keyId: 'key_1', askedTokens: 1 });

test.each([
  ['rate limit', { tenantRpm: 20 }],
  ['token quota', { metered: true, askedTokens: 2, monthlyTokens: 40 }],
])(
  'a check that begins to wait when a statement for a small %s ends gets the next statement without a tick',
  async (_, limit) => {
    const limits = new Limits({
      store: new MemoryStore(() => NOW_MS),
      processId: PROCESS,
      reservationKey: new Uint8Array(16).fill(7),
      windowMs: 60_000,
      reservationTtlMs: 60_000,
      tokenEstimate: 1,
      fileEstimate: 1,
      now: () => NOW_MS,
      monotonicMs: () => 0,
    });
    // Each answer of the store lets the next check begin in the moment in which its statement ends.
    for (let i = 0; i < 20; i++)
      expect(await limits.admit({ ...REQUEST, ...limit })).toMatchObject({ kind: 'admitted' });
    expect(await limits.admit({ ...REQUEST, ...limit })).toMatchObject({ kind: 'refused' });
  },
);
