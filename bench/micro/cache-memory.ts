/**
 * The memory of a warm credential cache, and the time of a warm lookup: API keys over tenants with five policies each,
 * every second key owned by a user.
 *
 * node --expose-gc bench/micro/cache-memory.ts [keys] [tenants]
 */

import { hash } from 'node:crypto';
import { CredentialCache } from '../../src/credential-cache/credential-cache.ts';
import { type KeyDigest, parseKeyDigest } from '../../src/domain/ids.ts';
import { builtinRoles } from '../../test/support/builtin-roles.ts';
import { given, memorySource, withoutTokens } from './memory-source.ts';

const KEYS = Number(process.argv[2] ?? 100_000);
const TENANTS = Number(process.argv[3] ?? 10_000);
const LOOK_UPS = 1_000_000;

const digestOf = (index: number): KeyDigest => given(parseKeyDigest(hash('sha256', `key ${index}`, 'hex')));
const indexOf = new Map<string, number>();

const live = new CredentialCache({
  builtinRoles,
  source: memorySource(indexOf, TENANTS),
  ...withoutTokens,
  feed: { polledAtMs: Number.POSITIVE_INFINITY, catchUp: async () => {} },
  maxCredentials: 200_000,
  maxStalenessMs: 300_000,
  monotonicMs: () => performance.now(),
});

const collect = globalThis.gc;
if (collect === undefined) throw new Error('run with --expose-gc');
const used = (): { heap: number; rss: number } => {
  collect();
  collect();
  const { heapUsed, external, rss } = process.memoryUsage();
  return { heap: heapUsed + external, rss };
};
const MB = 1_048_576;

for (let index = 0; index < KEYS; index++) indexOf.set(digestOf(index), index);
const before = used();
for (let index = 0; index < TENANTS; index++) {
  await live.resolve({ kind: 'api_key', digest: digestOf(index) }, undefined, 0);
}
const tenantsWarm = used();
for (let index = TENANTS; index < KEYS; index++) {
  await live.resolve({ kind: 'api_key', digest: digestOf(index) }, undefined, 0);
}
const warm = used();
const perKey = (warm.heap - tenantsWarm.heap) / (KEYS - TENANTS);
console.log(`${KEYS} keys, ${TENANTS} tenants`);
console.log(`bytes per key, with half an owner: ${perKey.toFixed(0)}`);
console.log(`bytes per tenant: ${((tenantsWarm.heap - before.heap) / TENANTS - perKey).toFixed(0)}`);
console.log(
  `heap of the cache: ${((warm.heap - before.heap) / MB).toFixed(1)} MB; resident: +${((warm.rss - before.rss) / MB).toFixed(1)} MB`,
);

const order = Array.from({ length: 65_536 }, (_, i) => (i * 2_654_435_761) % KEYS);
for (let pass = 0; pass < 3; pass++) {
  const digests = order.map(digestOf);
  let slow = 0;
  const from = process.cpuUsage();
  for (let i = 0; i < LOOK_UPS; i++) {
    const digest = digests[i & 65_535];
    if (digest === undefined || live.resolve({ kind: 'api_key', digest }, undefined, 0) instanceof Promise) slow++;
  }
  console.log(
    `warm look-up: ${((process.cpuUsage(from).user * 1000) / LOOK_UPS).toFixed(0)} ns of processor time (${slow} waited)`,
  );
}
