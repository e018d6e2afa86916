/**
 * Processor time of a check with the token of an issuer against that of one with an access token of ours, from the bytes
 * of Envoy's message to the bytes of the answer: warm, for a key without a secret and for a user, and the first use of a
 * token. A key with a secret is the floor of a key. Tokens of about the same length, ten headers, a chat body of 1 KB,
 * five policies.
 *
 * node bench/micro/issuer-tokens.ts [tokens] [rounds]
 */

import { hash } from 'node:crypto';
import { CredentialCache } from '../../src/credential-cache/credential-cache.ts';
import type { CacheLoader, Loaded, VerifiedToken } from '../../src/credential-cache/ports.ts';
import { buildRouteTable } from '../../src/decision/routes.ts';
import { parseId, parseIssuerName, parseKeyDigest, parseRoleName, parseTenantId } from '../../src/domain/ids.ts';
import type { IssuerRecord } from '../../src/domain/records.ts';
import { createCheckHandler } from '../../src/extauthz/check-handler.ts';
import { issuerTokenReader } from '../../src/identity/issuer-token-reader.ts';
import { createTelemetry } from '../../src/telemetry/telemetry.ts';
import { builtinRoles } from '../../test/support/builtin-roles.ts';
import { makeIssuerKey, signToken } from '../../test/support/issuer.ts';
import { chatBody, encodeFrame } from '../frames.ts';
import { keyText } from '../population.ts';
import { given, memorySource, withoutTokens } from './memory-source.ts';

const TOKENS = Number(process.argv[2] ?? 2000);
const ROUNDS = Number(process.argv[3] ?? 11);
const CHECKS_PER_ROUND = 20_000;

const built = buildRouteTable([]);
if (built.kind === 'error') throw new Error(built.message);
const signer = makeIssuerKey('RS256');
const id = <P extends 'usr' | 'key' | 'ses' | 'iss'>(prefix: P, index: number) =>
  given(parseId(prefix, `${prefix}_${index.toString(16).padStart(26, '0')}`));
const tenantId = given(parseTenantId('tenant-0'));
const role = given(parseRoleName('developer'));
const issuerId = id('iss', 1);
const issuer: IssuerRecord = {
  id: issuerId,
  tenantId,
  name: given(parseIssuerName('cluster')),
  kind: 'oidc',
  enabled: true,
  issuer: 'https://cluster.example',
  valueSinceMs: 0,
  audiences: ['postern'],
  algorithms: ['RS256'],
  tokenTypes: ['JWT'],
  requiredClaims: [],
  maxAgeSeconds: undefined,
  keys: [signer.jwk],
  users: { subject_claim: 'sub', create: false, roles: [], default_roles: [] },
  leewaySeconds: 5,
  revokedBeforeMs: undefined,
  earlier: undefined,
  usersSinceMs: undefined,
  keysFetchedAtMs: Date.now(),
  globProofs: [],
};
const proofDigest = (index: number) => given(parseKeyDigest(hash('sha256', `proof ${index}`, 'hex')));
const numbers = Array.from({ length: TOKENS }, (_, index) => index);
const asLoaded = async <T>(value: T): Promise<Loaded<T>> => ({ value, asOf: 1 });
const secretDigest = (index: number): string => hash('sha256', keyText(index), 'hex');
const memory = memorySource(
  new Map(
    numbers.flatMap((index) => [proofDigest(index), secretDigest(index)].map((digest) => [digest, 2 * index + 1])),
  ),
  1,
);
const source: CacheLoader = {
  ...memory,
  session: (session) =>
    asLoaded({
      id: session,
      userId: given(parseId('usr', session.replace('ses', 'usr'))),
      keyId: undefined,
      issuerId: undefined,
      scope: undefined,
      ended: false,
      expiresAtMs: 4e12,
    }),
  user: (user) => asLoaded({ id: user, tenantId, status: 'active', roles: [role] }),
  issuer: () => asLoaded(issuer),
  link: (_issuer, subject) => {
    const index = Number(subject.split('-')[1]);
    const proofs = [{ digest: proofDigest(index), subject, claims: [], expiresAtMs: undefined }];
    return asLoaded(
      subject.startsWith('pod')
        ? { proofs, user: undefined }
        : { proofs: [], user: { id: id('usr', index), rolesAsOfMs: undefined } },
    );
  },
};

const iat = Math.floor(Date.now() / 1000);
const external = (sub: string): string =>
  signToken(signer, { iss: issuer.issuer, sub, aud: 'postern', iat, exp: iat + 86_400, jti: sub });
const pods = numbers.map((index) => external(`pod-${index}`));
const people = numbers.map((index) => external(`person-${index}`));
/** Of ours: only their length matters, because the verification is counted apart. */
const own = people.map((token) => `eyJo${token.slice(4)}`);
const verified = new Map(
  own.map((token, index): [string, VerifiedToken] => [
    token,
    { kind: 'valid', userId: id('usr', index), sessionId: id('ses', index), validFromMs: 0, validUntilMs: 4e12 },
  ]),
);

const live = new CredentialCache({
  builtinRoles,
  source,
  verifier: {
    verify: async (token) => verified.get(token) ?? { kind: 'foreign' },
    hasOwnHeader: (token) => token.startsWith('eyJo'),
  },
  issuers: { ...withoutTokens.issuers, reader: issuerTokenReader },
  feed: { polledAtMs: Number.POSITIVE_INFINITY, catchUp: async () => {} },
  maxCredentials: 4 * TOKENS,
  maxStalenessMs: 300_000,
  monotonicMs: () => performance.now(),
});
const telemetry = createTelemetry({ level: 'warn' });
const gate = createCheckHandler({
  routes: built.table,
  resolver: live,
  trustedHops: 0,
  forwardCredential: false,
  observer: telemetry.observer,
});
const body = chatBody('llama-3-8b');
const framesOf = (tokens: readonly string[]): Buffer[] =>
  tokens.map((token) =>
    encodeFrame({ method: 'POST', path: '/v1/chat/completions', authorization: `Bearer ${token}`, body }),
  );
const frames = {
  own: framesOf(own),
  user: framesOf(people),
  key: framesOf(pods),
  'key with a secret': framesOf(numbers.map(keyText)),
};

for (const [name, all] of Object.entries(frames)) {
  const begun = process.cpuUsage();
  const startedAt = performance.now();
  const before = performance.eventLoopUtilization();
  for (const frame of all) await gate(frame);
  const { user, system } = process.cpuUsage(begun);
  const { active } = performance.eventLoopUtilization(before);
  for (const frame of all) if (gate(frame) instanceof Promise) throw new Error('a warm check had to wait');
  console.log(
    `${name}: first use ${((user + system) / all.length).toFixed(0)} us of processor, ${((active * 1000) / all.length).toFixed(0)} us of the event loop, ${(((performance.now() - startedAt) * 1000) / all.length).toFixed(0)} us in all`,
  );
}

const taken: Record<string, number[]> = Object.fromEntries(Object.keys(frames).map((name) => [name, []]));
for (let round = 0; round < ROUNDS; round++) {
  for (const [name, all] of Object.entries(frames)) {
    const begun = process.cpuUsage();
    for (let i = 0; i < CHECKS_PER_ROUND; i++) gate(all[i % TOKENS] ?? Buffer.alloc(0));
    const { user, system } = process.cpuUsage(begun);
    taken[name]?.push((user + system) / CHECKS_PER_ROUND);
  }
}
const median = (values: readonly number[] = []): number =>
  values.toSorted((left, right) => left - right)[Math.floor(values.length / 2)] ?? Number.NaN;
const base = median(taken['own']);
for (const [name, values] of Object.entries(taken))
  console.log(`${name}: warm ${median(values).toFixed(2)} us, ${(median(values) / base).toFixed(3)} of our own`);
