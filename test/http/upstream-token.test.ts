import { randomBytes } from 'node:crypto';
import { createRemoteJWKSet, exportJWK, generateKeyPair, jwtVerify, SignJWT } from 'jose';
import { describe, expect, test } from 'vitest';
import { makeId, parseTenantId } from '../../src/domain/ids.ts';
import { type CheckHandler, createCheckHandler } from '../../src/extauthz/check-handler.ts';
import { createRandomPool } from '../../src/extauthz/random-pool.ts';
import { UpstreamHeaders } from '../../src/extauthz/upstream-headers.ts';
import type { RawRequestInput } from '../../src/http/endpoint.ts';
import { keySetEndpoints } from '../../src/http/jwks.ts';
import { OPTIONAL_CLAIMS, UpstreamTokens } from '../../src/identity/upstream-token.ts';
import { readAnswer } from '../extauthz/support/definition.ts';
import { checkRequest, type RequestSpec } from '../extauthz/support/requests.ts';
import { type Harness, it, outcome, text, unique } from './harness.ts';

const AUDIENCE = 'https://models.example.com';
const ACME = unique('acme');
const BODY = JSON.stringify({ model: 'llama-3', messages: [] });

let h: Harness;
let gate: CheckHandler;
it.beforeAll(async ({ harness }) => {
  h = harness;
  await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: ACME, name: ACME } });
  const { keys, tokens, platformRoutes, live } = h;
  const names = { issuer: tokens.issuer, audience: AUDIENCE, accessAudience: 'platform' };
  gate = createCheckHandler({
    routes: platformRoutes,
    resolver: live,
    observer: { observe: () => undefined },
    trustedHops: 0,
    forwardCredential: false,
    upstreamHeaders: new UpstreamHeaders({
      tokens: new UpstreamTokens({ keys, ...names, ttlSeconds: 300, claims: OPTIONAL_CLAIMS }),
      header: 'x-postern-token',
      isPublished: (kid) => keys.isPublished(kid),
      random: createRandomPool(),
    }),
  });
});

const headersWith = (name: string, value: string): NonNullable<RequestSpec['headers']> => [
  [name, value],
  ['content-type', 'application/json'],
];
const check = async (headers: RequestSpec['headers'] = []) =>
  readAnswer(await gate(checkRequest({ headers, body: BODY })));
const tokenOf = async (credential: string): Promise<string> => {
  const answer = await check(headersWith('authorization', `Bearer ${credential}`));
  return answer.headers['x-postern-token'] ?? expect.fail(`no token: ${answer.bodyText}`);
};
const claimsOf = async (token: string) => {
  const keys = createRemoteJWKSet(new URL('/.well-known/jwks.json', h.url));
  const rules = { issuer: h.tokens.issuer, audience: AUDIENCE, typ: 'postern-upstream+jwt', algorithms: ['ES256'] };
  return (await jwtVerify(token, keys, rules)).payload;
};
const makeKey = async (as: string, body: object) => {
  const all = { description: 'k', scopes: ['chat:write'], expires_in_days: 30, ...body };
  const { json } = await h.api('POST', '/v1/iam/api-keys', { as, body: all });
  return { id: text(json, 'id'), key: text(json, 'key') };
};

describe('a token for the upstream', () => {
  it('proves nothing at the gate and at the API, in any header: 401 invalid_credential', async () => {
    const person = await h.person(ACME, ['developer', 'tenant-admin']);
    const token = await tokenOf(person.token);
    expect(outcome(await h.api('GET', '/v1/iam/users', { as: person.token }))).toBe('200');
    for (const path of ['/v1/iam/users', '/v1/iam/api-keys', '/v1/auth/me', '/v1/auth/sessions'])
      expect(outcome(await h.api('GET', path, { as: token }))).toBe('401 invalid_credential');
    for (const headers of [
      headersWith('authorization', `Bearer ${token}`),
      headersWith('x-api-key', token),
      headersWith('api-key', token),
    ]) {
      const answer = await check(headers);
      expect([answer.kind, answer.status, answer.body['code']]).toEqual(['denied', 401, 'invalid_credential']);
    }
    const alone = await check(headersWith('x-postern-token', token));
    expect([alone.status, alone.body['code']]).toEqual([401, 'missing_credential']);
  });

  it('states the roles and scopes that hold now: a change of the user ends the use of its tokens', async () => {
    const boss = await h.person(ACME, ['tenant-admin']);
    const person = await h.person(ACME, ['developer']);
    const key = await makeKey(boss.token, { user_id: person.id, scopes: ['chat:*'] });
    expect(await claimsOf(await tokenOf(person.token))).toMatchObject({
      sub: person.id,
      tenant_id: ACME,
      roles: ['developer'],
    });
    const ofKey = await tokenOf(key.key);
    expect(await tokenOf(key.key)).toBe(ofKey);
    expect(await claimsOf(ofKey)).toMatchObject({
      sub: person.id,
      client_id: key.id,
      act: { sub: key.id },
      roles: ['developer'],
      scope: 'chat:*',
    });
    const changed = await h.api('PATCH', `/v1/iam/users/${person.id}`, {
      as: boss.token,
      body: { roles: ['analyst', 'developer'] },
    });
    expect(outcome(changed)).toBe('200');
    for (const credential of [person.token, key.key])
      expect(await claimsOf(await tokenOf(credential))).toMatchObject({ roles: ['analyst', 'developer'] });
    const ended = await h.api('POST', `/v1/iam/users/${person.id}/deactivate`, { as: boss.token });
    expect(outcome(ended)).toBe('200');
    for (const credential of [person.token, key.key])
      expect((await check(headersWith('authorization', `Bearer ${credential}`))).status).toBe(401);
  });

  it('is one for all sessions of a user', async () => {
    const person = await h.person(ACME, ['developer']);
    const sessionId = makeId('ses', Date.now(), randomBytes(10));
    const expires_at = new Date(Date.now() + 3_600_000);
    await h.db.knex('sessions').insert({ id: sessionId, user_id: person.id, expires_at });
    const about = { userId: person.id, sessionId, tenantId: parseTenantId(ACME) ?? expect.fail() };
    const other = await h.tokens.issue({ ...about, nowMs: Date.now(), jti: unique('jti') });
    expect(await tokenOf(other.token)).toBe(await tokenOf(person.token));
  });

  it('names the tenant in which a platform administrator acts', async () => {
    const headers = headersWith('authorization', `Bearer ${h.root.token}`);
    const own = await check(headers);
    const other = await check([...headers, ['x-tenant-id', ACME]]);
    expect(await claimsOf(own.headers['x-postern-token'] ?? '')).toMatchObject({ tenant_id: 'default' });
    expect(await claimsOf(other.headers['x-postern-token'] ?? '')).toMatchObject({ sub: h.root.id, tenant_id: ACME });
  });

  it('of a key of a tenant has the key as its subject, and no roles', async () => {
    const boss = await h.person(ACME, ['tenant-admin']);
    const { id, key } = await makeKey(boss.token, { user_id: null, scopes: ['chat:write', 'rag:read'] });
    const claims = await claimsOf(await tokenOf(key));
    expect(claims).toMatchObject({ sub: id, client_id: id, roles: [], scope: 'chat:write rag:read' });
    expect(claims).not.toHaveProperty('act');
  });
});

describe('a token of another issuer', () => {
  it('that proves a key gets the token of that key, and its narrowed session a narrower one', async () => {
    const boss = await h.person(ACME, ['tenant-admin']);
    const { privateKey, publicKey } = await generateKeyPair('ES256');
    const name = unique('cluster');
    const issuer = `https://${name}.example.com`;
    const jwks = { keys: [{ ...(await exportJWK(publicKey)), kid: 'k1', alg: 'ES256', use: 'sig' }] };
    const made = await h.api('POST', '/v1/iam/issuers', {
      as: boss.token,
      body: { name, issuer, audiences: ['postern'], jwks },
    });
    expect(outcome(made)).toBe('201');
    const proof = { issuer: name, subject: 'system:serviceaccount:agents:planner' };
    const key = await h.api('POST', '/v1/iam/api-keys', {
      as: boss.token,
      body: { description: 'pod', scopes: ['chat:*', 'rag:read'], expires_in_days: 1, proof },
    });
    const id = text(key.json, 'id');
    const token = await new SignJWT()
      .setProtectedHeader({ alg: 'ES256', kid: 'k1' })
      .setIssuer(issuer)
      .setSubject(proof.subject)
      .setAudience('postern')
      .setIssuedAt()
      .setExpirationTime('5m')
      .sign(privateKey);
    const first = await tokenOf(token);
    expect(await claimsOf(first)).toMatchObject({ sub: id, client_id: id, scope: 'chat:* rag:read', roles: [] });
    expect(await tokenOf(token)).toBe(first);
    const exchanged = await h.api('POST', '/v1/auth/token', {
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      raw: String(
        new URLSearchParams({
          grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
          subject_token: token,
          subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
          scope: 'chat:write',
        }),
      ),
    });
    expect(outcome(exchanged)).toBe('200');
    const session = text(exchanged.json, 'access_token');
    expect(await claimsOf(await tokenOf(session))).toMatchObject({ sub: id, client_id: id, scope: 'chat:write' });
    expect(await tokenOf(session)).toBe(await tokenOf(session));
  });
});

describe('the discovery document', () => {
  const discovery = (issuer: string) => {
    const endpoints = keySetEndpoints({ issuer, jwks: () => ({ keys: [] }) });
    const endpoint = endpoints.find(({ operationId }) => operationId === 'getDiscovery') ?? expect.fail('no endpoint');
    return (ifNoneMatch?: string) => endpoint.run({ ...INPUT, header: () => ifNoneMatch }, undefined);
  };
  const INPUT: Omit<RawRequestInput, 'header'> = {
    param: () => '',
    address: undefined,
    throttledAs: undefined,
    scheme: 'https',
    requestId: makeId('req', 0, new Uint8Array(10)),
    nowMs: 0,
    body: undefined,
    allErrors: false,
    query: {},
  };

  test.each([
    ['https://ai.example.com', 'https://ai.example.com/.well-known/jwks.json'],
    ['https://ai.example.com/', 'https://ai.example.com/.well-known/jwks.json'],
    ['https://ai.example.com/postern', 'https://ai.example.com/postern/.well-known/jwks.json'],
    ['http://127.0.0.1:10000', 'http://127.0.0.1:10000/.well-known/jwks.json'],
  ])('of %s names the issuer as it is, and its key set', async (issuer, jwksUri) => {
    const { status, headers, body } = await discovery(issuer)();
    expect([status, headers?.['cache-control']]).toEqual([200, 'public, max-age=300, must-revalidate']);
    expect(body).toMatchObject({
      issuer,
      jwks_uri: jwksUri,
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['ES256'],
    });
    expect(await discovery(issuer)(String(headers?.['etag']))).toMatchObject({ status: 304 });
  });

  test.each(['urn:uuid:0', 'postern-test', 'https://', 'javascript:x'])(
    'does not exist for the issuer %s',
    async (issuer) => {
      await expect(discovery(issuer)()).rejects.toMatchObject({ code: 'not_found' });
    },
  );
});
