/** Two servers on one PostgreSQL: what is done at one counts at the other. */

import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { makeIssuerKey, signToken } from '../support/issuer.ts';
import { ADMIN, call, type Decider, decider, done, login, makeKey, makeUser, SECRET_KEY } from './support/client.ts';
import { becomes } from './support/eventually.ts';
import { openStand, type Server, type Stand } from './support/postern.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 180_000 });

/** Longer than any change may take to be seen elsewhere, and short enough to be called soon. */
const SOON_MS = 10_000;

describe.each([
  { how: 'with notifications', notifications: 'true' },
  { how: 'by polling alone', notifications: 'false' },
])('of two servers on one database, $how,', ({ notifications }) => {
  let stand: Stand;
  let database: FreshDatabase;
  let here: Server & { readonly gate: Decider };
  let there: Server & { readonly gate: Decider };
  let admin: string;

  beforeAll(async () => {
    stand = await openStand();
    database = await freshDatabase();
    const start = async (): Promise<typeof here> => {
      const server = await stand.serve({
        POSTERN_DATABASE_URL: database.url,
        POSTERN_DATABASE_NOTIFICATIONS: notifications,
        POSTERN_SECRET_KEY: SECRET_KEY,
        POSTERN_BOOTSTRAP_PASSWORD: ADMIN.password,
      });
      return { ...server, gate: decider(server.grpc) };
    };
    [here, there] = await Promise.all([start(), start()]);
    admin = await login(here.http);
  });

  afterAll(async () => {
    here?.gate.close();
    there?.gate.close();
    await stand?.close();
    await database?.close();
  });

  async function isAllowedAtBoth(credential: string): Promise<void> {
    expect(await here.gate.decide(credential)).toBe('allow');
    await becomes('the other server allows', 'allow', () => there.gate.decide(credential), SOON_MS);
  }

  /** The change was acknowledged here just now. */
  async function isRefusedEverywhere(credential: string, code: string): Promise<void> {
    expect(await here.gate.decide(credential), 'the very next check at the server that made the change').toBe(code);
    await becomes('the other server refuses', code, () => there.gate.decide(credential), SOON_MS);
  }

  it('a token of one is accepted by the other, at both listeners', async () => {
    const token = await login(here.http);
    await isAllowedAtBoth(token);
    const mine = await done(there.http, 'GET', '/v1/auth/me', { token });
    expect(mine.body).toMatchObject({ email: ADMIN.email, platform_admin: true });
    const other = await login(there.http);
    await isAllowedAtBoth(other);
    expect((await done(here.http, 'GET', '/v1/auth/me', { token: other })).body['id']).toBe(mine.body['id']);
  });

  it('both publish the same keys to verify tokens with', async () => {
    const path = '/.well-known/jwks.json';
    expect((await done(here.http, 'GET', path)).body).toEqual((await done(there.http, 'GET', path)).body);
  });

  it('a refresh token of one is exchanged at the other', async () => {
    const pair = (await done(here.http, 'POST', '/v1/auth/login', { body: ADMIN })).body;
    const next = await done(there.http, 'POST', '/v1/auth/refresh', { body: { refresh_token: pair['refresh_token'] } });
    await isAllowedAtBoth(String(next.body['access_token']));
  });

  it('a key revoked at one is refused at both', async () => {
    const { id, key } = await makeKey(here.http, admin);
    await isAllowedAtBoth(key);
    await done(here.http, 'DELETE', `/v1/iam/api-keys/${id}`, { token: admin });
    await isRefusedEverywhere(key, 'invalid_credential');
  });

  it('a key disabled at one is refused at both, also with its old secret, and works again once it is enabled', async () => {
    const { id, key } = await makeKey(here.http, admin);
    const act = (server: typeof here, action: string, body?: object) =>
      done(server.http, 'POST', `/v1/iam/api-keys/${id}/${action}`, { token: admin, ...(body && { body }) });
    const next = String((await act(here, 'rotate', { grace_seconds: 3600 })).body['key']);
    await isAllowedAtBoth(key);
    await isAllowedAtBoth(next);
    await act(here, 'disable');
    await isRefusedEverywhere(key, 'invalid_credential');
    await isRefusedEverywhere(next, 'invalid_credential');
    await act(here, 'enable');
    await isAllowedAtBoth(next);
  });

  it('a key made at one is accepted at the other, where it was unknown before', async () => {
    const { key } = await makeKey(here.http, admin);
    await becomes('the other server knows the key', 'allow', () => there.gate.decide(key), SOON_MS);
  });

  it('a role taken away counts for the tokens and keys that are out', async () => {
    const user = await makeUser(here.http, admin);
    const token = await login(there.http, user);
    const { key } = await makeKey(here.http, admin, { owner: user.id });
    await isAllowedAtBoth(token);
    await isAllowedAtBoth(key);
    await done(here.http, 'PUT', `/v1/iam/users/${user.id}`, { token: admin, body: { roles: [] } });
    await isRefusedEverywhere(token, 'insufficient_permission');
    await isRefusedEverywhere(key, 'insufficient_permission');
  });

  it('a deactivated user is refused with tokens and keys; its keys come back with it, its sessions do not', async () => {
    const user = await makeUser(here.http, admin);
    const token = await login(there.http, user);
    const { key } = await makeKey(here.http, admin, { owner: user.id });
    await isAllowedAtBoth(token);
    await isAllowedAtBoth(key);
    await done(here.http, 'POST', `/v1/iam/users/${user.id}/deactivate`, { token: admin });
    await isRefusedEverywhere(token, 'invalid_credential');
    await isRefusedEverywhere(key, 'invalid_credential');
    await done(there.http, 'POST', `/v1/iam/users/${user.id}/activate`, { token: admin });
    expect(await there.gate.decide(key)).toBe('allow');
    await becomes('the key wakes at the first server', 'allow', () => here.gate.decide(key), SOON_MS);
    expect(await here.gate.decide(token)).toBe('invalid_credential');
    expect(await there.gate.decide(token)).toBe('invalid_credential');
  });

  it('a deleted user is refused', async () => {
    const user = await makeUser(here.http, admin);
    const token = await login(there.http, user);
    await isAllowedAtBoth(token);
    await done(here.http, 'DELETE', `/v1/iam/users/${user.id}`, { token: admin });
    await isRefusedEverywhere(token, 'invalid_credential');
  });

  it('a suspended tenant is rejected, and admitted again after its activation', async () => {
    const tenant = `tenant-${notifications}`;
    await done(here.http, 'POST', '/v1/iam/tenants', { token: admin, body: { id: tenant, name: 'A tenant' } });
    const user = await makeUser(here.http, admin, { tenant });
    const token = await login(there.http, user);
    const { key } = await makeKey(here.http, admin, { tenant });
    await isAllowedAtBoth(token);
    await isAllowedAtBoth(key);
    await done(here.http, 'POST', `/v1/iam/tenants/${tenant}/suspend`, { token: admin });
    await isRefusedEverywhere(token, 'tenant_suspended');
    await isRefusedEverywhere(key, 'tenant_suspended');
    await done(there.http, 'POST', `/v1/iam/tenants/${tenant}/activate`, { token: admin });
    expect(await there.gate.decide(key)).toBe('allow');
    await becomes('the first server lets the tenant in', 'allow', () => here.gate.decide(key), SOON_MS);
  });

  it('a session ended by logging out at one is over at both, at the gate and in the management API', async () => {
    const user = await makeUser(here.http, admin);
    const token = await login(there.http, user);
    await isAllowedAtBoth(token);
    expect((await call(there.http, 'GET', '/v1/auth/me', { token })).status).toBe(200);
    await done(here.http, 'POST', '/v1/auth/logout', { token, body: {} });
    await isRefusedEverywhere(token, 'invalid_credential');
    expect((await call(here.http, 'GET', '/v1/auth/me', { token })).status).toBe(401);
    await becomes('the API of the other server refuses', 401, async () => {
      return (await call(there.http, 'GET', '/v1/auth/me', { token })).status;
    });
  });

  it('a permission removed from a role, and a deny policy, apply to the holders of the role', async () => {
    const role = { name: 'reader', permissions: ['chat:read'] };
    await done(here.http, 'POST', '/v1/iam/roles', { token: admin, body: role });
    const user = await makeUser(here.http, admin, { roles: ['reader'] });
    const token = await login(there.http, user);
    await isAllowedAtBoth(token);
    await done(here.http, 'PUT', '/v1/iam/roles/reader', { token: admin, body: { permissions: ['models:read'] } });
    await isRefusedEverywhere(token, 'insufficient_permission');
    await done(here.http, 'PUT', '/v1/iam/roles/reader', { token: admin, body: { permissions: ['chat:*'] } });
    await becomes('the other server allows again', 'allow', () => there.gate.decide(token), SOON_MS);
    const deny = {
      name: 'no-reading',
      effect: 'deny',
      actions: ['chat:read'],
      resources: ['*'],
      attached_roles: ['reader'],
    };
    await done(here.http, 'POST', '/v1/iam/policies', { token: admin, body: deny });
    await isRefusedEverywhere(token, 'denied_by_policy');
  });

  describe('a token of an issuer', () => {
    const key = makeIssuerKey();
    const applied = { prefer: 'wait=applied' };
    let issuer: string;
    let iss: string;
    /** The key of the subject `pod`. */
    let pod: string;
    const sign = (sub: string, more: object = {}) => {
      const iat = Math.floor(Date.now() / 1000);
      return signToken(key, { iss, sub, aud: 'postern', iat, exp: iat + 300, ...more });
    };
    const change = (method: string, path: string, body?: object) =>
      done(here.http, method, path, { token: admin, headers: applied, ...(body && { body }) });
    /** The change was acknowledged by all replicas. */
    const isRefusedAtOnce = async (token: string): Promise<void> => {
      expect(await Promise.all([here, there].map(({ gate }) => gate.decide(token)))).toEqual([
        'invalid_credential',
        'invalid_credential',
      ]);
    };
    beforeEach(async () => {
      const name = `issuer-${randomBytes(4).toString('hex')}`;
      iss = `https://${name}.example`;
      const users = { create: true, default_roles: ['developer'] };
      const body = { name, issuer: iss, audiences: ['postern'], jwks: { keys: [key.jwk] }, users };
      issuer = String((await done(here.http, 'POST', '/v1/iam/issuers', { token: admin, body })).body['id']);
      const proof = { issuer: name, subject: 'pod' };
      const made = { description: 'pod', scopes: ['chat:read'], expires_in_days: 1, proof };
      pod = String((await done(here.http, 'POST', '/v1/iam/api-keys', { token: admin, body: made })).body['id']);
    });

    it('is refused at every replica once its issuer is disabled', async () => {
      const tokens = [sign('pod'), sign('ada')];
      for (const token of tokens) await isAllowedAtBoth(token);
      await change('PUT', `/v1/iam/issuers/${issuer}`, { enabled: false });
      for (const token of tokens) await isRefusedAtOnce(token);
    });

    it('is refused at every replica once the tokens before a time are revoked', async () => {
      const old = sign('pod', { iat: Math.floor(Date.now() / 1000) - 60 });
      await isAllowedAtBoth(old);
      await change('POST', `/v1/iam/issuers/${issuer}/revoke-before`, {});
      await isRefusedAtOnce(old);
    });

    it('is refused at every replica once its key is revoked', async () => {
      // Without the key, the token would prove a user.
      await change('PUT', `/v1/iam/issuers/${issuer}`, { users: null });
      const token = sign('pod');
      await isAllowedAtBoth(token);
      await change('DELETE', `/v1/iam/api-keys/${pod}`);
      await isRefusedAtOnce(token);
    });

    it('is refused at every replica once its user is deactivated', async () => {
      const token = sign('ada');
      await isAllowedAtBoth(token);
      const me = await done(there.http, 'GET', '/v1/auth/me', { token });
      expect(me.body).toMatchObject({ roles: ['developer'] });
      await change('POST', `/v1/iam/users/${String(me.body['id'])}/deactivate`);
      await isRefusedAtOnce(token);
    });

    it('creates its user once, when both replicas see its first token at the same time', async () => {
      const token = sign('eve');
      const first = Array.from({ length: 10 }, (_, i) => (i % 2 === 0 ? here : there).gate.decide(token));
      expect(new Set(await Promise.all(first))).toEqual(new Set(['allow']));
      const ids = await Promise.all([here, there].map(({ http }) => done(http, 'GET', '/v1/auth/me', { token })));
      expect(new Set(ids.map(({ body }) => body['id'])).size).toBe(1);
    });
  });
});

describe('an installation', () => {
  it('that two servers begin together on an empty database has one administrator, and one of them says its password', async () => {
    const stand = await openStand();
    const database = await freshDatabase('');
    try {
      const env = { POSTERN_DATABASE_URL: database.url, POSTERN_SECRET_KEY: SECRET_KEY };
      const servers = await Promise.all([stand.serveApi(env), stand.serveApi(env)]);
      const passwords = servers.flatMap((server) =>
        [...server.stdout().matchAll(/^ +Password +(\S+)$/gm)].map(([, word]) => word),
      );
      expect(passwords).toHaveLength(1);
      const person = { email: ADMIN.email, password: String(passwords[0]) };
      const [first, second] = await Promise.all(servers.map(({ http }) => login(http, person)));
      expect((await done(servers[0]?.http ?? '', 'GET', '/v1/iam/users', { token: second })).body['data']).toHaveLength(
        1,
      );
      expect((await done(servers[1]?.http ?? '', 'GET', '/v1/iam/users', { token: first })).body['data']).toHaveLength(
        1,
      );
    } finally {
      await stand.close();
      await database.close();
    }
  });
});
