/**
 * The memory of cached issuers and of keys without a secret, each with its link and one verified token, and the time of
 * a warm lookup of a token: issuers of 20 tenants, keys with an exact subject.
 *
 * node --expose-gc bench/micro/issuer-memory.ts [issuers] [keys]
 */

import { hash } from 'node:crypto';
import { CredentialCache } from '../../src/credential-cache/credential-cache.ts';
import type { CacheLoader, Loaded } from '../../src/credential-cache/ports.ts';
import { parseId, parseIssuerName, parseKeyDigest, parseTenantId } from '../../src/domain/ids.ts';
import type { IssuerRecord } from '../../src/domain/records.ts';
import { issuerTokenReader } from '../../src/identity/issuer-token-reader.ts';
import { builtinRoles } from '../../test/support/builtin-roles.ts';
import { makeIssuerKey, signToken } from '../../test/support/issuer.ts';
import { given, memorySource, withoutTokens } from './memory-source.ts';

const ISSUERS = Number(process.argv[2] ?? 1_000);
const KEYS = Number(process.argv[3] ?? 100_000);
const TENANTS = 20;
const LOOK_UPS = 500_000;
const MB = 1_048_576;

const collect = globalThis.gc;
if (collect === undefined) throw new Error('run with --expose-gc');
const heap = (): number => {
  collect();
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
};

const signer = makeIssuerKey('ES256');
const digestOf = (index: number) => given(parseKeyDigest(hash('sha256', `proof ${index}`, 'hex')));
const issuerValue = (index: number): string => `https://issuer-${index}.example`;
const issuerId = (index: number) => given(parseId('iss', `iss_${index.toString(16).padStart(26, '0')}`));
const issuerOf = (index: number): IssuerRecord => ({
  id: issuerId(index),
  tenantId: given(parseTenantId(`tenant-${index % TENANTS}`)),
  name: given(parseIssuerName(`issuer-${index}`)),
  kind: 'oidc',
  enabled: true,
  issuer: issuerValue(index),
  valueSinceMs: 0,
  audiences: ['postern'],
  algorithms: ['RS256', 'ES256', 'EdDSA'],
  tokenTypes: ['JWT'],
  requiredClaims: [],
  maxAgeSeconds: undefined,
  keys: [Object.freeze({ ...signer.jwk }), Object.freeze({ ...signer.jwk, kid: `next-${index}` })],
  users: undefined,
  leewaySeconds: 5,
  revokedBeforeMs: undefined,
  earlier: undefined,
  usersSinceMs: undefined,
  keysFetchedAtMs: Date.now(),
  globProofs: [],
});

const asLoaded = async <T>(value: T): Promise<Loaded<T>> => ({ value, asOf: 1 });
const indexOf = new Map(Array.from({ length: KEYS }, (_, index) => [digestOf(index), 2 * index + 1]));
const memory = memorySource(indexOf, TENANTS);
const source: CacheLoader = {
  ...memory,
  issuer: (value) => asLoaded(issuerOf(Number(/issuer-([0-9]+)\./.exec(value)?.[1]))),
  link: (_issuer, subject) => {
    const digest = digestOf(Number(subject.split(':')[3]));
    return asLoaded({ proofs: [{ digest, subject, claims: [], expiresAtMs: undefined }], user: undefined });
  },
};
const live = new CredentialCache({
  builtinRoles,
  source,
  verifier: { verify: async () => ({ kind: 'foreign' }), hasOwnHeader: () => false },
  issuers: { ...withoutTokens.issuers, reader: issuerTokenReader },
  feed: { polledAtMs: Number.POSITIVE_INFINITY, catchUp: async () => {} },
  maxCredentials: Math.max(200_000, 2 * KEYS),
  maxStalenessMs: 300_000,
  monotonicMs: () => performance.now(),
});

const iat = Math.floor(Date.now() / 1000);
const tokenOf = (index: number): string =>
  signToken(signer, {
    iss: issuerValue(index % ISSUERS),
    sub: `system:serviceaccount:prod:${index}`,
    aud: 'postern',
    iat,
    exp: iat + 86_400,
    jti: String(index),
  });
const resolve = async (index: number): Promise<void> => {
  const token = tokenOf(index);
  const credential = { kind: 'token', token, digest: hash('sha256', token, 'hex') } as const;
  const { identity } = await live.resolve(credential, undefined, Date.now());
  if (identity.kind !== 'proved') throw new Error(`the token ${index} proved nothing`);
};

const before = heap();
for (let index = 0; index < ISSUERS; index++) await resolve(index);
const issuersWarm = heap();
for (let index = ISSUERS; index < KEYS; index++) await resolve(index);
const warm = heap();
const perKey = (warm - issuersWarm) / (KEYS - ISSUERS);
console.log(`${ISSUERS} issuers, ${KEYS} keys`);
console.log(`bytes per key with its link and one token: ${perKey.toFixed(0)}`);
console.log(`bytes per issuer with two keys: ${((issuersWarm - before) / ISSUERS - perKey).toFixed(0)}`);
console.log(`heap of the cache: ${((warm - before) / MB).toFixed(1)} MB`);

const credentials = Array.from({ length: Math.min(KEYS, 65_536) }, (_, i) => {
  const token = tokenOf((i * 2_654_435_761) % KEYS);
  return { kind: 'token', token, digest: hash('sha256', token, 'hex') } as const;
});
for (const credential of credentials) await live.resolve(credential, undefined, Date.now());
for (let pass = 0; pass < 3; pass++) {
  let slow = 0;
  const from = process.cpuUsage();
  const nowMs = Date.now();
  for (let i = 0; i < LOOK_UPS; i++) {
    const credential = credentials[i % credentials.length];
    if (credential === undefined || live.resolve(credential, undefined, nowMs) instanceof Promise) slow++;
  }
  console.log(
    `warm look-up: ${((process.cpuUsage(from).user * 1000) / LOOK_UPS).toFixed(0)} ns of processor time (${slow} waited)`,
  );
}
