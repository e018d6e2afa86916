/**
 * The memory of a cache that meets more tenants with the largest rules there may be (1 MiB as stored) than it keeps.
 *
 * node --expose-gc bench/micro/rules-memory.ts [tenants] [credentials]
 */

import { hash } from 'node:crypto';
import { CredentialCache } from '../../src/credential-cache/credential-cache.ts';
import { type KeyDigest, parseKeyDigest, parsePolicyName } from '../../src/domain/ids.ts';
import type { PolicyRecord, TenantRecord } from '../../src/domain/records.ts';
import type { Steps } from '../../src/domain/steps.ts';
import { builtinRoles } from '../../test/support/builtin-roles.ts';
import { given, memorySource, withoutTokens } from './memory-source.ts';

const TENANTS = Number(process.argv[2] ?? 100);
const CREDENTIALS = Number(process.argv[3] ?? 200_000);
const POLICIES = 180;
const MB = 1_048_576;

const digestOf = (index: number): KeyDigest => given(parseKeyDigest(hash('sha256', `key ${index}`, 'hex')));

/** Globs of eight stars, which take most memory for a byte that is stored. */
function policyOf(tenant: string, n: number): PolicyRecord {
  return {
    name: given(parsePolicyName(`p${n}`)),
    effect: 'deny',
    actions: ['*'],
    resources: Array.from({ length: 200 }, (_none, i) =>
      Buffer.from(`models/*a*b*c*d*e*f*${tenant}${n}*${i}*`).toString(),
    ),
    conditions: {},
    appliesTo: 'everyone',
    attachedRoles: [],
    enabled: true,
  };
}

function* rulesOf(tenant: TenantRecord): Steps<TenantRecord> {
  const policies: PolicyRecord[] = [];
  for (let n = 0; n < POLICIES; n++) {
    policies.push(policyOf(tenant.id, n));
    yield;
  }
  return { ...tenant, policies };
}

const small = memorySource(
  new Map(Array.from({ length: TENANTS }, (_none, index) => [digestOf(index), index])),
  TENANTS,
);
const live = new CredentialCache({
  builtinRoles,
  source: {
    ...small,
    tenant: async (id) => {
      const settings = {};
      return { value: rulesOf({ id, status: 'active', settings, quotas: {}, roles: [], policies: [] }), asOf: 1 };
    },
  },
  ...withoutTokens,
  feed: { polledAtMs: Number.POSITIVE_INFINITY, catchUp: async () => {} },
  maxCredentials: CREDENTIALS,
  maxStalenessMs: 300_000,
  monotonicMs: () => performance.now(),
});

const collect = globalThis.gc;
if (collect === undefined) throw new Error('run with --expose-gc');
collect();
const before = process.memoryUsage();
for (let index = 0; index < TENANTS; index++) {
  await live.resolve({ kind: 'api_key', digest: digestOf(index) }, undefined, 0);
  if ((index + 1) % Math.ceil(TENANTS / 10) !== 0) continue;
  collect();
  const { heapUsed, rss } = process.memoryUsage();
  const { maps, rulesBytes } = live.stats();
  console.log(
    `${String(index + 1).padStart(5)} tenants met, ${String(maps.tenants.size).padStart(3)} kept: estimate ${(rulesBytes / MB).toFixed(0)} MB, ` +
      `heap +${((heapUsed - before.heapUsed) / MB).toFixed(0)} MB, resident +${((rss - before.rss) / MB).toFixed(0)} MB`,
  );
}
