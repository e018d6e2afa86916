/**
 * A store in memory for measuring the live cache: API keys over tenants with five policies each, every second key owned
 * by a user of its tenant.
 */

import type { CredentialCacheParts } from '../../src/credential-cache/credential-cache.ts';
import type { CacheLoader, Loaded } from '../../src/credential-cache/ports.ts';
import {
  type KeyDigest,
  type KeyId,
  parseId,
  parsePolicyName,
  parseRoleName,
  parseTenantId,
  type TenantId,
  type UserId,
} from '../../src/domain/ids.ts';
import type { KeyRecord, PolicyRecord, TenantRecord, UserRecord } from '../../src/domain/records.ts';
import type { Steps } from '../../src/domain/steps.ts';

export function given<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('the benchmark made an id that is none');
  return value;
}

/** As rows arrive: nothing shared between two records. */
const fresh = <T extends string>(text: T, parse: (text: string) => T | undefined): T =>
  given(parse(Buffer.from(text).toString()));
const keyId = (index: number): KeyId => given(parseId('key', `key_${index.toString(16).padStart(26, '0')}`));
const userId = (index: number): UserId => given(parseId('usr', `usr_${index.toString(16).padStart(26, '0')}`));

const POLICIES: readonly [string, 'allow' | 'deny', string[], string[], PolicyRecord['conditions']][] = [
  ['blocked-networks', 'deny', ['*'], ['*'], { ip_address: { in: ['198.51.100.0/24', '2001:db8:bad::/48'] } }],
  [
    'office-at-night',
    'deny',
    ['chat:*'],
    ['*'],
    { ip_address: { in: ['203.0.113.0/24'] }, time: { between: ['22:00', '06:00'] } },
  ],
  ['no-secret-models', 'deny', ['chat:*'], ['models/secret-*'], {}],
  ['embeddings-on-workdays', 'deny', ['embeddings:*'], ['*'], { day_of_week: { in: ['Sat', 'Sun'] } }],
  ['developers-try-phi', 'allow', ['chat:write'], ['models/phi-*'], {}],
];

function policies(): PolicyRecord[] {
  return POLICIES.map(([name, effect, actions, resources, conditions]) => ({
    name: fresh(given(parsePolicyName(name)), parsePolicyName),
    effect,
    actions: actions.map((text) => Buffer.from(text).toString()),
    resources: resources.map((text) => Buffer.from(text).toString()),
    conditions: JSON.parse(JSON.stringify(conditions)),
    appliesTo: effect === 'deny' ? 'everyone' : 'roles',
    attachedRoles: effect === 'deny' ? [] : [given(parseRoleName('developer'))],
    enabled: true,
  }));
}

function keyRecord(digest: KeyDigest, index: number, tenantId: TenantId): KeyRecord {
  return {
    id: keyId(index),
    digest,
    tenantId,
    userId: index % 2 === 0 ? userId(index) : undefined,
    scopes: ['chat:*', 'embeddings:write'].map((text) => Buffer.from(text).toString()),
    constraints: {},
    rateLimitRpm: undefined,
    expiresAtMs: 4_000_000_000_000 + index,
    graceUntilMs: undefined,
    revoked: false,
    disabled: false,
  };
}

/** As the store reads rules: one step for each. */
function* inSteps<T>(value: T): Steps<T> {
  yield;
  return value;
}

/** The parts of a cache that resolves no token. */
export const withoutTokens: Pick<CredentialCacheParts, 'verifier' | 'issuers'> = {
  verifier: { verify: async () => ({ kind: 'invalid', reason: 'malformed' }), hasOwnHeader: () => true },
  issuers: {
    reader: { read: () => undefined },
    admission: { admit: async () => ({ kind: 'refused', reason: 'no_principal' }) },
    refresh: { request: () => undefined },
    maxKeyAgeMs: 86_400_000,
  },
};

const asLoaded = async <T>(value: T): Promise<Loaded<T>> => ({ value, asOf: 1 });

/** @param indexOf the number of each key there is; its tenant is that number modulo `tenants` */
export function memorySource(indexOf: ReadonlyMap<string, number>, tenants: number): CacheLoader {
  const tenantOf = (index: number): TenantId => given(parseTenantId(`tenant-${index % tenants}`));
  return {
    key: (digest) => {
      const index = given(indexOf.get(digest));
      return asLoaded(keyRecord(digest, index, tenantOf(index)));
    },
    user: (id): Promise<Loaded<UserRecord>> =>
      asLoaded({
        id: fresh(id, (text) => parseId('usr', text)),
        tenantId: tenantOf(Number.parseInt(id.slice(4), 16)),
        status: 'active',
        roles: [fresh(given(parseRoleName('developer')), parseRoleName)],
      }),
    session: () => asLoaded(undefined),
    tenant: (id): Promise<Loaded<Steps<TenantRecord>>> =>
      asLoaded(
        inSteps({
          id: fresh(id, parseTenantId),
          status: 'active',
          settings: { timezone: 'Europe/Berlin', max_tokens_per_request: 4096 },
          quotas: {},
          roles: [],
          policies: policies(),
        }),
      ),
    globalPolicies: () => asLoaded(inSteps([])),
    issuer: () => asLoaded(undefined),
    link: () => asLoaded({ proofs: [], user: undefined }),
  };
}
