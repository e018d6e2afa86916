import fc from 'fast-check';
import { createLocalJWKSet, decodeJwt, decodeProtectedHeader, errors, type JWTPayload, jwtVerify } from 'jose';
import { beforeAll, describe, expect, it } from 'vitest';
import { compileGrant, compileTenant } from '../../src/decision/compile.ts';
import type { Principal } from '../../src/decision/model.ts';
import { compilePatterns, covers, permissionOf } from '../../src/decision/permissions.ts';
import { Fault } from '../../src/domain/errors.ts';
import { makeId, parseRoleName, parseTenantId, type RoleName, type TenantId } from '../../src/domain/ids.ts';
import { readIssuerToken } from '../../src/identity/issuer-token.ts';
import { AccessTokens } from '../../src/identity/tokens.ts';
import {
  OPTIONAL_CLAIMS,
  type OptionalClaim,
  type TokenSubject,
  UpstreamTokens,
} from '../../src/identity/upstream-token.ts';
import { runs } from '../support/properties.ts';
import { type SigningRing, signingRing } from './support/signing-ring.ts';

const NOW = Date.parse('2026-11-18T11:00:00Z');
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const ISSUER = 'https://ai.example.com';
const PLATFORM = 'https://models.example.com';
const TYPE = 'postern-upstream+jwt';
const TENANT = parseTenantId('acme') ?? expect.fail('acme is a tenant id');

let ring: SigningRing;
beforeAll(async () => {
  ring = await signingRing(NOW);
});

interface Options {
  readonly ttlSeconds?: number;
  readonly claims?: readonly OptionalClaim[];
}

const tokensOf = ({ keys }: Pick<SigningRing, 'keys'>, { ttlSeconds = 300, claims = OPTIONAL_CLAIMS }: Options = {}) =>
  new UpstreamTokens({ keys, issuer: ISSUER, audience: PLATFORM, accessAudience: 'platform', ttlSeconds, claims });

const accessTokens = () =>
  new AccessTokens({ keys: ring.keys, issuer: ISSUER, audience: 'platform', ttlSeconds: 3600, clock: () => NOW });

/** Verifies as a platform does, with the keys that Postern published at some time. */
async function verified(token: string, published: readonly object[], nowMs: number): Promise<JWTPayload> {
  const keys = createLocalJWKSet(JSON.parse(JSON.stringify({ keys: published })));
  const rules = { issuer: ISSUER, audience: PLATFORM, typ: TYPE, algorithms: ['ES256'], currentDate: new Date(nowMs) };
  return (await jwtVerify(token, keys, rules)).payload;
}

const tenantView = (id: TenantId): TokenSubject['tenant'] =>
  compileTenant({ id, status: 'active', settings: {}, quotas: {}, roles: [], policies: [] });

const ids = fc.uint8Array({ minLength: 10, maxLength: 10 });
const userIds = ids.map((bytes) => makeId('usr', NOW, bytes));
const roleLists = fc.array(
  fc.stringMatching(/^[a-z][a-z0-9_-]{0,20}$/).map((name): RoleName => parseRoleName(name) ?? expect.fail(name)),
  { maxLength: 20 },
);
const scopeLists = fc.array(fc.stringMatching(/^[a-z]{1,12}:([a-z]{1,12}|\*)$/), { maxLength: 30 });
const principals: fc.Arbitrary<Principal> = fc.oneof(
  fc.record({
    kind: fc.constant('user' as const),
    id: userIds,
    tenantId: fc.constant(TENANT),
    roles: roleLists,
    platformAdmin: fc.boolean(),
    sessionId: fc.constant(undefined),
    scope: fc.option(scopeLists.map(compilePatterns), { nil: undefined }),
  }),
  fc.record({
    kind: fc.constant('api_key' as const),
    id: ids.map((bytes) => makeId('key', NOW, bytes)),
    tenantId: fc.constant(TENANT),
    grant: scopeLists.map((scopes) => compileGrant(scopes, { models: ['llama-*'] })),
    owner: fc.option(fc.record({ id: userIds, roles: roleLists }), { nil: undefined }),
    rateLimitRpm: fc.constant(undefined),
  }),
);
const subjects: fc.Arbitrary<TokenSubject> = fc.record({
  principal: principals,
  roles: roleLists,
  tenant: fc.stringMatching(/^[a-z0-9][a-z0-9-]{0,62}$/).map((id) => tenantView(parseTenantId(id) ?? TENANT)),
});

/** The claims as the documentation describes them, by the kinds of principals. */
function claimsOf({ principal, roles, tenant }: TokenSubject, nowMs: number, ttlSeconds: number, jti: string): object {
  const now = Math.floor(nowMs / 1000);
  const common = { iss: ISSUER, aud: PLATFORM, iat: now - 10, exp: now + ttlSeconds, jti, tenant_id: tenant.id, roles };
  const { scope } = principal;
  if (principal.kind === 'user')
    return { ...common, sub: principal.id, ...(scope && { scope: [...scope.texts].join(' ') }) };
  const ofKey = { ...common, client_id: principal.id, scope: principal.grant.patterns.join(' ') };
  return principal.owner === undefined
    ? { ...ofKey, sub: principal.id }
    : { ...ofKey, sub: principal.owner.id, act: { sub: principal.id } };
}

const USER: TokenSubject = {
  principal: {
    kind: 'user',
    id: makeId('usr', NOW, new Uint8Array(10)),
    tenantId: TENANT,
    roles: [],
    platformAdmin: false,
    sessionId: undefined,
  },
  roles: [],
  tenant: tenantView(TENANT),
};

function keyWith(scopes: readonly string[]): TokenSubject {
  const id = makeId('key', NOW, new Uint8Array(10));
  const grant = compileGrant(scopes, {});
  return {
    ...USER,
    principal: { kind: 'api_key', id, tenantId: TENANT, grant, owner: undefined, rateLimitRpm: undefined },
  };
}

describe('a token for the upstream', () => {
  it('verifies with the published keys, and states exactly the principal, the roles and the tenant of the decision', async () => {
    await fc.assert(
      fc.asyncProperty(
        subjects,
        fc.integer({ min: 60, max: 900 }),
        fc.integer({ min: NOW, max: NOW + HOUR }),
        async (subject, ttlSeconds, nowMs) => {
          const unsigned = tokensOf(ring, { ttlSeconds }).prepare(subject, nowMs, 'jti-1');
          const token = await unsigned.sign();
          expect(await verified(token, ring.keys.published(), nowMs)).toEqual(
            claimsOf(subject, nowMs, ttlSeconds, 'jti-1'),
          );
          expect([unsigned.length, unsigned.kid]).toEqual([token.length, ring.keys.current().kid]);
          expect(decodeProtectedHeader(token)).toEqual({ alg: 'ES256', typ: TYPE, kid: unsigned.kid });
        },
      ),
      { numRuns: runs(200) },
    );
  });

  it('has only the optional claims that are configured', async () => {
    await fc.assert(
      fc.asyncProperty(subjects, fc.subarray([...OPTIONAL_CLAIMS]), async (subject, claims) => {
        const token = await tokensOf(ring, { claims }).prepare(subject, NOW, 'jti-1').sign();
        const all = Object.entries(claimsOf(subject, NOW, 300, 'jti-1'));
        const left = OPTIONAL_CLAIMS.filter((claim) => !claims.includes(claim));
        const expected = Object.fromEntries(all.filter(([name]) => !left.some((claim) => claim === name)));
        expect(await verified(token, ring.keys.published(), NOW)).toEqual(expected);
      }),
      { numRuns: runs(100) },
    );
  });

  it('is no access token, and an access token is no token for the upstream', async () => {
    const token = await tokensOf(ring).prepare(USER, NOW, 'jti-1').sign();
    expect(await accessTokens().verify(token)).toEqual({ kind: 'invalid', reason: 'malformed' });
    // Not even for an issuer that has Postern's own value of `iss` and its keys.
    expect(readIssuerToken(token)).toBeUndefined();
    const { token: access } = await accessTokens().issue({
      userId: makeId('usr', NOW, new Uint8Array(10)),
      sessionId: makeId('ses', NOW, new Uint8Array(10)),
      tenantId: TENANT,
      nowMs: NOW,
      jti: 'jti-1',
    });
    expect(await accessTokens().verify(access)).toMatchObject({ kind: 'valid' });
    await expect(verified(access, ring.keys.published(), NOW)).rejects.toThrow(errors.JOSEError);
  });

  it('has no audience of access tokens', () => {
    const parts = { keys: ring.keys, issuer: ISSUER, ttlSeconds: 300, claims: [] };
    expect(() => new UpstreamTokens({ ...parts, audience: 'platform', accessAudience: 'platform' })).toThrow(
      /audience/,
    );
  });

  it('is a fault without a signing key', () => {
    const current = (): never => {
      throw new Fault('no signing key exists yet');
    };
    const parts = { issuer: ISSUER, audience: PLATFORM, accessAudience: 'platform', ttlSeconds: 300, claims: [] };
    const tokens = new UpstreamTokens({ keys: { current }, ...parts });
    expect(() => tokens.prepare(USER, NOW, 'jti-1')).toThrow(Fault);
  });

  it('has 500 to 700 bytes with a few roles and scopes, and at most 8 KiB: a longer one is a fault that names its principal', async () => {
    const few = await tokensOf(ring)
      .prepare(keyWith(['chat:write', 'models:read']), NOW, 'a'.repeat(22))
      .sign();
    expect(few.length).toBeGreaterThan(500);
    expect(few.length).toBeLessThan(700);
    const scopes = (count: number) => Array.from({ length: count }, (_, index) => `permission-${index}:write`);
    const lengths = [100, 200, 250].map((count) => tokensOf(ring).prepare(keyWith(scopes(count)), NOW, 'j').length);
    expect(lengths.at(-1)).toBeGreaterThan(7000);
    for (const count of [300, 1000]) {
      expect(() => tokensOf(ring).prepare(keyWith(scopes(count)), NOW, 'j')).toThrow(/key_.*more than 8192 bytes/);
      const without = tokensOf(ring, { claims: ['roles'] }).prepare(keyWith(scopes(count)), NOW, 'j');
      expect(without.length).toBeLessThan(700);
    }
  });
});

describe('the scope of a narrowed session', () => {
  const patterns = fc.array(fc.constantFrom('*', '*:*', 'a:*', '*:x', 'a:x', 'a:y', 'b:x', 'b:y', 'c:*'), {
    maxLength: 5,
  });

  it('of a key covers a permission exactly if the scopes of the key and the scope of the session do', async () => {
    const universe = ['a', 'b', 'c', 'd'].flatMap((resource) =>
      ['x', 'y', 'z'].map((action) => `${resource}:${action}`),
    );
    const covered = (texts: readonly string[]) =>
      universe.filter((text) => covers(compilePatterns(texts), permissionOf(text)));
    await fc.assert(
      fc.asyncProperty(patterns, patterns, async (scopes, narrow) => {
        const { principal, ...rest } = keyWith(scopes);
        const subject = { ...rest, principal: { ...principal, scope: compilePatterns(narrow) } };
        const token = await tokensOf(ring).prepare(subject, NOW, 'j').sign();
        const scope = String(decodeJwt(token)['scope']);
        const both = covered(scopes).filter((permission) => covered(narrow).includes(permission));
        expect(covered(scope.split(' ').filter((text) => text !== ''))).toEqual(both);
      }),
      { numRuns: runs(200) },
    );
  });

  it('is a fault if there are too many pairs to compare', () => {
    const many = Array.from({ length: 60 }, (_, index) => `r${index}:x`);
    const { principal, ...rest } = keyWith(many);
    const subject = { ...rest, principal: { ...principal, scope: compilePatterns(many) } };
    expect(() => tokensOf(ring).prepare(subject, NOW, 'j')).toThrow(Fault);
  });
});

describe('the keys of tokens for the upstream', () => {
  /** Longer than the caches of jose and Envoy (10 min) and as long as that of Istio. */
  const CACHE_MS = 20 * MINUTE;

  it('a verifier that caches the key set for 20 minutes rejects no token during any rotations', async () => {
    const minutes = (max: number): fc.Arbitrary<number> => fc.nat({ max }).map((count) => count * MINUTE);
    const step = fc.record({ pause: minutes(3000), rotates: fc.boolean(), before: minutes(10), after: minutes(10) });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
        const own = await signingRing(NOW);
        const tokens = tokensOf(own, { ttlSeconds: 900 });
        for (const { pause, rotates, before, after } of steps) {
          own.time.nowMs += pause;
          await own.maintain();
          // The verifier's copy, which is then up to 20 minutes old. Between both times a rotation begins.
          const cached = own.keys.published();
          own.time.nowMs += before;
          await (rotates ? own.rotate() : own.maintain());
          own.time.nowMs += after;
          const token = await tokens.prepare(USER, own.time.nowMs, 'jti-1').sign();
          expect(before + after).toBeLessThanOrEqual(CACHE_MS);
          await expect(verified(token, cached, own.time.nowMs)).resolves.toMatchObject({ sub: USER.principal.id });
          // A token from before the next fetch is still accepted with the keys after it, until its end.
          own.time.nowMs += 14 * MINUTE;
          await own.maintain();
          await verified(token, own.keys.published(), own.time.nowMs);
        }
      }),
      { numRuns: runs(60) },
    );
  });

  it('the next key is published 24 hours before it signs', async () => {
    const own = await signingRing(NOW);
    const first = own.keys.current().kid;
    await own.rotate();
    const next = own.keys.published().find(({ kid }) => kid !== first) ?? expect.fail('there is no next key');
    own.time.nowMs += 24 * HOUR - 1;
    expect(tokensOf(own).prepare(USER, own.time.nowMs, 'j').kid).toBe(first);
    own.time.nowMs += 1;
    expect(tokensOf(own).prepare(USER, own.time.nowMs, 'j').kid).toBe(next.kid);
  });
});
