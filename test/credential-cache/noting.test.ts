/** The uses of keys that the resolver passes to the recorder of last uses. */

import { expect, test } from 'vitest';
import { LAST_USE_PRECISION_MS, notingUses } from '../../src/credential-cache/noting.ts';
import type { CredentialForm } from '../../src/domain/credential.ts';
import type { KeyId } from '../../src/domain/ids.ts';
import { keyId } from './support/ids.ts';
import { aLive, developersToken, NOW, OWNED, owned, tenantsOwn, unknownKey } from './support/world.ts';

function aDoor() {
  const world = aLive();
  const told: { key: KeyId; nowMs: number }[] = [];
  const room = { left: Number.POSITIVE_INFINITY };
  const resolver = notingUses(world.live, {
    note(key, nowMs) {
      if (room.left-- <= 0) return false;
      told.push({ key, nowMs });
      return true;
    },
  });
  const use = async (credential: CredentialForm, nowMs = NOW, tenant?: string) =>
    await resolver.resolve(credential, tenant, nowMs);
  return { ...world, told, room, use };
}

test('uses of a key in constant use are recorded at once and then once a minute, never more than a minute late', async () => {
  const { told, use } = aDoor();
  const seconds = 300;
  for (let second = 0; second < seconds; second++) await use(owned, NOW + second * 1000);
  expect(told.map(({ nowMs }) => nowMs - NOW)).toEqual([0, 60_000, 120_000, 180_000, 240_000]);
  expect(new Set(told.map(({ key }) => key))).toEqual(new Set([keyId(1)]));
});

test('uses are recorded for each key separately; tokens, unknown keys and explanations are no uses', async () => {
  const { told, use, live } = aDoor();
  await live.resolveKey(OWNED, undefined, NOW);
  await use(developersToken);
  await use(unknownKey);
  expect(told).toEqual([]);
  await use(tenantsOwn);
  await use(owned);
  expect(told.map(({ key }) => key)).toEqual([keyId(2), keyId(1)]);
});

test('a use that the recorder rejected is recorded with the next use', async () => {
  const { told, use, room } = aDoor();
  room.left = 0;
  await use(owned);
  room.left = 1;
  await use(owned, NOW + 1);
  await use(owned, NOW + 2);
  expect(told).toEqual([{ key: keyId(1), nowMs: NOW + 1 }]);
});

test('uses of a key are recorded after the clock was set back', async () => {
  const { told, use } = aDoor();
  await use(owned, NOW + 10 * LAST_USE_PRECISION_MS);
  await use(owned, NOW);
  expect(told.map(({ nowMs }) => nowMs)).toEqual([NOW + 10 * LAST_USE_PRECISION_MS, NOW]);
});

test('the use of a key that names its tenant in a header is recorded too', async () => {
  const { told, use } = aDoor();
  await use(owned, NOW, 'home');
  expect(told).toHaveLength(1);
});

test('the resolver passes the client and its wait time to the cache', () => {
  const asked: unknown[][] = [];
  const { live } = aLive();
  const resolver = notingUses(
    {
      resolve: (...parts) => {
        asked.push(parts);
        return live.resolve(...parts);
      },
    },
    { note: () => true },
  );
  void resolver.resolve(owned, undefined, NOW, '198.51.100.7', 500);
  expect(asked).toEqual([[owned, undefined, NOW, '198.51.100.7', 500]]);
});
