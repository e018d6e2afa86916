/**
 * Every endpoint does what it is for, and answers as the description of the API says: the harness holds each answer
 * against it.
 */

import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeId, type WebhookId } from '../../src/domain/ids.ts';
import type { Endpoint } from '../../src/http/endpoint.ts';
import { withDescription } from '../../src/http/openapi/endpoint.ts';
import { describedEndpoints } from '../../src/iam/api-routes.ts';
import { insertDeliveries } from '../../src/iam/webhooks/delivery-queries.ts';
import { makeIssuerKey, signToken } from '../support/issuer.ts';
import { storeDecision } from '../support/recorded-decisions.ts';
import { nowhere } from './directories.ts';
import { type Call, column, type Harness, type Reply, startHarness, text } from './harness.ts';
import { importedKey, usageEvent } from './isolation-probes.ts';
import { type Kind, makeOne, newBody } from './resources.ts';

/** Refuses connections. */
const NOWHERE = '127.0.0.1:1';

let h: Harness;
beforeAll(async () => {
  h = await startHarness({
    directory: nowhere(),
    settings: { POSTERN_WEBHOOKS_ALLOWED_HOSTS: JSON.stringify([NOWHERE]) },
  });
});
afterAll(async () => {
  await h.close();
});

const PASSWORD = 'a lake of tin whistles';
const NEXT_PASSWORD = 'a field of wet trombones';

interface Expectation {
  readonly guarantee: string;
  readonly status: number;
  readonly ask: () => Promise<Reply>;
  /** Members of the answer. */
  readonly shows?: () => object;
}

let count = 0;

const asRoot = (method: string, path: string, call: Call = {}) => h.api(method, path, { as: h.root.token, ...call });
/** A fresh resource, and what to do with it. */
const onOne =
  (kind: Kind, method: string, suffix = '', body?: object) =>
  async (): Promise<Reply> => {
    const { path } = await makeOne(h, kind);
    return asRoot(method, path + suffix, body === undefined ? {} : { body });
  };

interface LoggedIn {
  readonly email: string;
  readonly as: string;
  readonly refreshToken: string;
}

async function logIn(): Promise<LoggedIn> {
  const email = `person-${++count}@example.test`;
  await asRoot('POST', '/v1/iam/users', { body: { email, name: 'Person', password: PASSWORD } });
  const { json } = await h.api('POST', '/v1/auth/login', { body: { email, password: PASSWORD } });
  return { email, as: text(json, 'access_token'), refreshToken: text(json, 'refresh_token') };
}

async function oneSession(): Promise<{ readonly as: string; readonly path: string }> {
  const { as } = await logIn();
  const [id] = column(await h.api('GET', '/v1/auth/sessions', { as }), 'id');
  return { as, path: `/v1/auth/sessions/${String(id)}` };
}

/** The path of the one session of a fresh user. */
async function sessionOfUser(): Promise<string> {
  const { as } = await logIn();
  const me = await h.api('GET', '/v1/auth/me', { as });
  const [id] = column(await h.api('GET', '/v1/auth/sessions', { as }), 'id');
  return `/v1/iam/users/${text(me.json, 'id')}/sessions/${String(id)}`;
}

async function attached(): Promise<{ readonly role: string; readonly policy: string }> {
  const role = await makeOne(h, 'roles');
  const policy = await makeOne(h, 'policies');
  await asRoot('PUT', `${role.path}/policies/${policy.id}`);
  return { role: role.path, policy: policy.id };
}

const NO_ISSUER = 'iss_00000000000000000000000000';

/** Creates an issuer with a pasted key. */
async function makeIssuer(more: object = {}) {
  const key = makeIssuerKey();
  const iss = `https://issuer-${++count}.example`;
  const base = { name: `issuer-${count}`, issuer: iss, audiences: ['postern'], jwks: { keys: [key.jwk] } };
  const { json } = await asRoot('POST', '/v1/iam/issuers', { body: { ...base, users: { create: true }, ...more } });
  return { key, iss, json, iat: Math.floor(Date.now() / 1000) };
}

/** Exchanges the first token of a subject. */
async function exchangeOne(): Promise<Reply> {
  const { key, iss, iat } = await makeIssuer();
  const form = {
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    subject_token: signToken(key, { iss, aud: 'postern', sub: 'ada', iat, exp: iat + 60 }),
  };
  return h.api('POST', '/v1/auth/token', {
    raw: new URLSearchParams(form).toString(),
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  });
}

/** Logs a subject without sessions out, by a token that a pasted key signed. */
async function logOutByProvider(): Promise<Reply> {
  const { key, iss, json, iat } = await makeIssuer({ sso: { client_id: 'console', label: 'Company' } });
  const events = { 'http://schemas.openid.net/event/backchannel-logout': {} };
  const token = signToken(key, { iss, aud: 'console', sub: 'ada', jti: 'one', iat, exp: iat + 60, events });
  return h.api('POST', `/v1/auth/sso/${text(json, 'id')}/backchannel-logout`, {
    raw: new URLSearchParams({ logout_token: token }).toString(),
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  });
}

async function deliveryOfWebhook(): Promise<{ readonly path: string; readonly id: string }> {
  const webhook = await makeOne(h, 'webhooks');
  const id = makeId('dlv', Date.now(), randomBytes(10));
  await insertDeliveries(h.db.knex, [{ id, webhook_id: webhook.id as WebhookId, type: 'key.revoked', body: '{}' }], 1);
  return { path: webhook.path, id };
}

const question = () => ({
  subject: h.root.id,
  method: 'POST',
  path: '/v1/chat/completions',
  body: '{"model":"llama-3"}',
});

const PRICE = { models: 'gpt-*', input: '1', output: '2', per: 1_000_000 };

const ENDPOINTS: Readonly<Record<string, Expectation>> = {
  login: {
    guarantee: 'a right password gives an access token and a refresh token',
    status: 200,
    ask: async () => {
      const { email } = await logIn();
      return h.api('POST', '/v1/auth/login', { body: { email, password: PASSWORD } });
    },
    shows: () => ({ token_type: 'Bearer', expires_in: 3600 }),
  },
  refresh: {
    guarantee: 'a refresh token gives the next pair',
    status: 200,
    ask: async () => h.api('POST', '/v1/auth/refresh', { body: { refresh_token: (await logIn()).refreshToken } }),
    shows: () => ({ token_type: 'Bearer' }),
  },
  exchangeToken: {
    guarantee: 'a token of an issuer gives an access token of its user',
    status: 200,
    ask: exchangeOne,
    shows: () => ({ token_type: 'Bearer' }),
  },
  logout: {
    guarantee: 'a refresh token ends its session',
    status: 204,
    ask: async () => h.api('POST', '/v1/auth/logout', { body: { refresh_token: (await logIn()).refreshToken } }),
  },
  listSsoIssuers: {
    guarantee: 'the issuers with a login to the console are shown',
    status: 200,
    ask: async () => h.api('GET', '/v1/auth/sso'),
    shows: () => ({ only: false }),
  },
  startSso: {
    guarantee: 'an issuer without a login leads back to the sign-in page',
    status: 302,
    ask: async () => h.api('GET', `/v1/auth/sso/${NO_ISSUER}/start`),
  },
  finishSso: {
    guarantee: 'an answer to no login leads back to the sign-in page',
    status: 302,
    ask: async () => h.api('GET', `/v1/auth/sso/${NO_ISSUER}/callback?code=x&state=y`),
  },
  logoutByProvider: {
    guarantee: 'a logout token of the provider is accepted',
    status: 200,
    ask: logOutByProvider,
  },
  getMe: {
    guarantee: 'the principal of the credential is shown',
    status: 200,
    ask: () => asRoot('GET', '/v1/auth/me'),
    shows: () => ({ id: h.root.id, type: 'user', roles: ['admin'], permissions: ['*'], platform_admin: true }),
  },
  changePassword: {
    guarantee: 'the old password sets a new one',
    status: 204,
    ask: async () => {
      const body = { old_password: PASSWORD, new_password: NEXT_PASSWORD };
      return h.api('POST', '/v1/auth/password', { as: (await logIn()).as, body });
    },
  },
  resetPassword: {
    guarantee: 'a one-time token sets a password',
    status: 204,
    ask: async () => {
      const { made } = await makeOne(h, 'users');
      const token = text(made.json, 'password_setup_token');
      return h.api('POST', '/v1/auth/password/reset', { body: { token, new_password: PASSWORD } });
    },
  },
  listSessions: {
    guarantee: 'the sessions of the caller are listed',
    status: 200,
    ask: async () => h.api('GET', '/v1/auth/sessions', { as: (await logIn()).as }),
    shows: () => ({ object: 'list', data: [expect.objectContaining({ current: true })], has_more: false }),
  },
  endSessions: {
    guarantee: 'the other sessions of the caller end',
    status: 204,
    ask: async () => h.api('DELETE', '/v1/auth/sessions', { as: (await logIn()).as }),
  },
  getSession: {
    guarantee: 'a session of the caller is shown',
    status: 200,
    ask: async () => {
      const { as, path } = await oneSession();
      return h.api('GET', path, { as });
    },
    shows: () => ({ current: true, cookie: false }),
  },
  endSession: {
    guarantee: 'a session of the caller ends',
    status: 204,
    ask: async () => {
      const { as, path } = await oneSession();
      return h.api('DELETE', path, { as });
    },
  },
  listUsers: list('users'),
  createUser: create('users'),
  getUser: get('users', () => ({ status: 'active', directory_roles: [] })),
  updateUser: {
    guarantee: 'a user is changed member by member',
    status: 200,
    ask: onOne('users', 'PUT', '', { department: 'Research', roles: ['developer'] }),
    shows: () => ({ department: 'Research', roles: ['developer'] }),
  },
  patchUser: {
    guarantee: 'a user is changed member by member by PATCH',
    status: 200,
    ask: onOne('users', 'PATCH', '', { department: 'Research', roles: ['developer'] }),
    shows: () => ({ department: 'Research', roles: ['developer'] }),
  },
  deleteUser: { guarantee: 'a user is deleted', status: 204, ask: onOne('users', 'DELETE') },
  deactivateUser: {
    guarantee: 'a user is deactivated',
    status: 200,
    ask: onOne('users', 'POST', '/deactivate'),
    shows: () => ({ status: 'deactivated' }),
  },
  changeUsers: {
    guarantee: 'several users are deactivated',
    status: 200,
    ask: async () => {
      const { made } = await makeOne(h, 'users');
      return asRoot('POST', '/v1/iam/users/change', { body: { action: 'deactivate', ids: [text(made.json, 'id')] } });
    },
    shows: () => ({ dry_run: false, changed: 1, has_more: false }),
  },
  activateUser: {
    guarantee: 'a user is activated',
    status: 200,
    ask: onOne('users', 'POST', '/activate'),
    shows: () => ({ status: 'active' }),
  },
  unlockUser: {
    guarantee: 'a user is unlocked',
    status: 200,
    ask: onOne('users', 'POST', '/unlock'),
    shows: () => ({ locked_until: null }),
  },
  resetUserPassword: {
    guarantee: 'a one-time token for a new password is made',
    status: 200,
    ask: onOne('users', 'POST', '/password-reset'),
    shows: () => ({ password_setup_token: expect.any(String) }),
  },
  listUserSessions: {
    guarantee: 'the sessions of a user are listed to an administrator',
    status: 200,
    ask: async () => asRoot('GET', (await sessionOfUser()).replace(/\/ses_\w+$/, '')),
    shows: () => ({
      object: 'list',
      data: [expect.objectContaining({ current: false, cookie: false })],
      has_more: false,
    }),
  },
  getUserSession: {
    guarantee: 'a session of a user is shown to an administrator',
    status: 200,
    ask: async () => asRoot('GET', await sessionOfUser()),
    shows: () => ({ current: false, address: '127.0.0.1' }),
  },
  endUserSession: {
    guarantee: 'a session of a user ends',
    status: 204,
    ask: async () => asRoot('DELETE', await sessionOfUser()),
  },
  endUserSessions: {
    guarantee: 'the sessions of a user end',
    status: 200,
    ask: onOne('users', 'DELETE', '/sessions'),
    shows: () => ({ status: 'active' }),
  },
  listPermissions: {
    guarantee: 'every permission that a pattern covers is listed with the routes that need it',
    status: 200,
    ask: () => asRoot('GET', '/v1/iam/permissions?pattern=agents:run'),
    shows: () => ({
      data: [
        {
          permission: 'agents:run',
          kind: 'platform',
          routes: [{ method: 'POST', path: '/v1/agents/{agent}/runs/**' }],
          route_count: 1,
        },
      ],
    }),
  },
  listRoles: list('roles'),
  createRole: create('roles'),
  getRole: get('roles', () => ({ builtin: false, permissions: ['chat:read'] })),
  updateRole: {
    guarantee: 'a role is changed member by member',
    status: 200,
    ask: onOne('roles', 'PUT', '', { permissions: ['chat:*'], resource_constraints: { models: ['llama-*'] } }),
    shows: () => ({ permissions: ['chat:*'], resource_constraints: { models: ['llama-*'] } }),
  },
  patchRole: {
    guarantee: 'a role is changed member by member by PATCH',
    status: 200,
    ask: onOne('roles', 'PATCH', '', { permissions: ['chat:*'], resource_constraints: { models: ['llama-*'] } }),
    shows: () => ({ permissions: ['chat:*'], resource_constraints: { models: ['llama-*'] } }),
  },
  deleteRole: { guarantee: 'a role is deleted', status: 204, ask: onOne('roles', 'DELETE') },
  listRolePolicies: {
    guarantee: 'the policies attached to a role are listed',
    status: 200,
    ask: async () => asRoot('GET', `${(await attached()).role}/policies`),
    shows: () => ({ object: 'list', data: [expect.objectContaining({ effect: 'deny' })] }),
  },
  attachPolicy: {
    guarantee: 'a policy is attached to a role',
    status: 204,
    ask: async () => {
      const policy = await makeOne(h, 'policies');
      return asRoot('PUT', `${(await makeOne(h, 'roles')).path}/policies/${policy.id}`);
    },
  },
  detachPolicy: {
    guarantee: 'a policy is detached from a role',
    status: 204,
    ask: async () => {
      const { role, policy } = await attached();
      return asRoot('DELETE', `${role}/policies/${policy}`);
    },
  },
  listPolicies: list('policies'),
  createPolicy: create('policies'),
  getPolicy: get('policies', () => ({ effect: 'deny', global: false })),
  updatePolicy: {
    guarantee: 'a policy is changed member by member',
    status: 200,
    ask: onOne('policies', 'PUT', '', {
      conditions: {
        time: { not_between: ['22:00', '06:00'] },
        day_of_week: { in: ['Sat'] },
        ip_address: { in: ['10.0.0.0/8'] },
      },
    }),
    shows: () => ({
      conditions: {
        time: { not_between: ['22:00', '06:00'] },
        day_of_week: { in: ['Sat'] },
        ip_address: { in: ['10.0.0.0/8'] },
      },
    }),
  },
  patchPolicy: {
    guarantee: 'a policy is changed member by member by PATCH',
    status: 200,
    ask: onOne('policies', 'PATCH', '', {
      conditions: {
        time: { not_between: ['22:00', '06:00'] },
        day_of_week: { in: ['Sat'] },
        ip_address: { in: ['10.0.0.0/8'] },
      },
    }),
    shows: () => ({
      conditions: {
        time: { not_between: ['22:00', '06:00'] },
        day_of_week: { in: ['Sat'] },
        ip_address: { in: ['10.0.0.0/8'] },
      },
    }),
  },
  deletePolicy: { guarantee: 'a policy is deleted', status: 204, ask: onOne('policies', 'DELETE') },
  listTenants: list('tenants'),
  createTenant: create('tenants'),
  getTenant: get('tenants', () => ({ status: 'active', settings: {}, quotas: {} })),
  updateTenant: {
    guarantee: 'a tenant is changed member by member',
    status: 200,
    ask: onOne('tenants', 'PUT', '', {
      settings: { timezone: 'Europe/Berlin', rate_limit_rpm: 60 },
      quotas: { max_users: 5 },
    }),
    shows: () => ({ settings: { timezone: 'Europe/Berlin', rate_limit_rpm: 60 }, quotas: { max_users: 5 } }),
  },
  patchTenant: {
    guarantee: 'a tenant is changed member by member by PATCH',
    status: 200,
    ask: onOne('tenants', 'PATCH', '', {
      settings: { timezone: 'Europe/Berlin', rate_limit_rpm: 60 },
      quotas: { max_users: 5 },
    }),
    shows: () => ({ settings: { timezone: 'Europe/Berlin', rate_limit_rpm: 60 }, quotas: { max_users: 5 } }),
  },
  deleteTenant: { guarantee: 'a tenant is deleted', status: 204, ask: onOne('tenants', 'DELETE') },
  suspendTenant: {
    guarantee: 'a tenant is suspended',
    status: 200,
    ask: onOne('tenants', 'POST', '/suspend'),
    shows: () => ({ status: 'suspended' }),
  },
  activateTenant: {
    guarantee: 'a tenant is activated',
    status: 200,
    ask: onOne('tenants', 'POST', '/activate'),
    shows: () => ({ status: 'active' }),
  },
  listApiKeys: list('api-keys'),
  createApiKey: create('api-keys'),
  getApiKey: get('api-keys', () => ({ status: 'active', last_used_at: null })),
  updateApiKey: {
    guarantee: 'a key is changed member by member',
    status: 200,
    ask: onOne('api-keys', 'PUT', '', { rate_limit_rpm: 10 }),
    shows: () => ({ rate_limit_rpm: 10 }),
  },
  patchApiKey: {
    guarantee: 'a key is changed member by member by PATCH',
    status: 200,
    ask: onOne('api-keys', 'PATCH', '', { rate_limit_rpm: 10 }),
    shows: () => ({ rate_limit_rpm: 10 }),
  },
  revokeApiKey: { guarantee: 'a key is revoked', status: 204, ask: onOne('api-keys', 'DELETE') },
  rotateApiKey: {
    guarantee: 'a key gets a new secret',
    status: 200,
    ask: onOne('api-keys', 'POST', '/rotate', { grace_seconds: 60 }),
    shows: () => ({ key: expect.stringMatching(/^psk_/) }),
  },
  disableApiKey: {
    guarantee: 'a key is disabled',
    status: 200,
    ask: onOne('api-keys', 'POST', '/disable'),
    shows: () => ({ status: 'disabled' }),
  },
  enableApiKey: {
    guarantee: 'a key is enabled',
    status: 200,
    ask: onOne('api-keys', 'POST', '/enable'),
    shows: () => ({ status: 'active' }),
  },
  listApiKeyPermissions: {
    guarantee: 'the permissions of a key are listed with their last uses',
    status: 200,
    ask: onOne('api-keys', 'GET', '/permissions'),
    shows: () => ({ object: 'list', data: [{ permission: 'chat:read', last_used_on: null }], has_more: false }),
  },
  importApiKeys: {
    guarantee: "another system's keys are imported by digest",
    status: 200,
    ask: () => asRoot('POST', '/v1/iam/api-keys/import', { body: { keys: [importedKey()] } }),
    shows: () => ({ imported: 1, data: [{ index: 0, outcome: 'imported', id: expect.stringMatching(/^key_/) }] }),
  },
  revokeApiKeys: {
    guarantee: 'several keys are revoked',
    status: 200,
    ask: async () => {
      const { made } = await makeOne(h, 'api-keys');
      return asRoot('POST', '/v1/iam/api-keys/revoke', { body: { ids: [text(made.json, 'id')] } });
    },
    shows: () => ({ dry_run: false, revoked: 1, has_more: false }),
  },
  listIssuers: list('issuers'),
  createIssuer: create('issuers'),
  getIssuer: get('issuers', () => ({ kind: 'oidc', enabled: true, keys: expect.objectContaining({ count: 0 }) })),
  updateIssuer: {
    guarantee: 'an issuer is changed member by member',
    status: 200,
    ask: onOne('issuers', 'PUT', '', { required_claims: [{ claim: 'hd', in: ['acme.example'] }] }),
    shows: () => ({ required_claims: [{ claim: 'hd', in: ['acme.example'] }], audiences: ['postern'] }),
  },
  patchIssuer: {
    guarantee: 'an issuer is changed member by member by PATCH',
    status: 200,
    ask: onOne('issuers', 'PATCH', '', { enabled: false }),
    shows: () => ({ enabled: false, audiences: ['postern'] }),
  },
  deleteIssuer: { guarantee: 'an issuer is deleted', status: 204, ask: onOne('issuers', 'DELETE') },
  revokeTokensBefore: {
    guarantee: 'the older tokens of an issuer are refused',
    status: 200,
    ask: onOne('issuers', 'POST', '/revoke-before', { time: '2026-11-21T09:00:00Z' }),
    shows: () => ({ revoked_before: '2026-11-21T09:00:00.000Z' }),
  },
  testIssuer: {
    guarantee: 'a token is examined step by step',
    status: 200,
    ask: onOne('issuers', 'POST', '/test', { token: 'hello' }),
    shows: () => ({
      accepted: false,
      steps: [{ step: 'parsed', outcome: 'failed', detail: expect.any(String) }],
      principal: null,
    }),
  },
  refreshIssuerKeys: {
    guarantee: 'the keys of an issuer are fetched, and the reason of a failure is shown',
    status: 200,
    ask: onOne('issuers', 'POST', '/refresh'),
    shows: () => ({ keys: expect.objectContaining({ count: 0, error: expect.any(String) }) }),
  },
  listWebhooks: {
    guarantee: 'the webhooks of all tenants are listed',
    status: 200,
    ask: async () => {
      await makeOne(h, 'webhooks');
      return asRoot('GET', '/v1/iam/webhooks?limit=1&tenant_id=*');
    },
    shows: () => ({ object: 'list', data: [expect.objectContaining({ events: ['key.*'] })] }),
  },
  createWebhook: {
    guarantee: 'a webhook is created, and its secret is shown',
    status: 201,
    ask: async () => (await makeOne(h, 'webhooks')).made,
    shows: () => ({ enabled: true, secret: expect.stringMatching(/^whsec_/), events: ['key.*'] }),
  },
  getWebhook: get('webhooks', () => ({ enabled: true, disabled_reason: null, previous_until: null, dropped: 0 })),
  updateWebhook: {
    guarantee: 'a webhook is changed member by member',
    status: 200,
    ask: onOne('webhooks', 'PUT', '', { events: ['budget.*'] }),
    shows: () => ({ events: ['budget.*'], enabled: true }),
  },
  patchWebhook: {
    guarantee: 'a webhook is changed member by member by PATCH',
    status: 200,
    ask: onOne('webhooks', 'PATCH', '', { enabled: false }),
    shows: () => ({ events: ['key.*'], enabled: false }),
  },
  deleteWebhook: { guarantee: 'a webhook is deleted', status: 204, ask: onOne('webhooks', 'DELETE') },
  rotateWebhook: {
    guarantee: 'a webhook gets another secret, and the former one signs as well',
    status: 200,
    ask: onOne('webhooks', 'POST', '/rotate'),
    shows: () => ({ secret: expect.stringMatching(/^whsec_/), previous_until: expect.any(String) }),
  },
  testWebhook: {
    guarantee: 'a test event is sent, and the reason of a failure is shown',
    status: 200,
    ask: async () => {
      const { path } = await makeOne(h, 'webhooks');
      await asRoot('PATCH', path, { body: { url: `https://${NOWHERE}/` } });
      return asRoot('POST', `${path}/test`);
    },
    shows: () => ({ type: 'webhook.test', state: 'failed', attempts: 1, error: expect.any(String) }),
  },
  listWebhookDeliveries: {
    guarantee: 'the deliveries of a webhook are listed',
    status: 200,
    ask: async () => asRoot('GET', `${(await deliveryOfWebhook()).path}/deliveries?state=waiting&count=true`),
    shows: () => ({ object: 'list', total: 1, data: [expect.objectContaining({ type: 'key.revoked', attempts: 0 })] }),
  },
  replayWebhookDelivery: {
    guarantee: 'a delivery is made due again',
    status: 200,
    ask: async () => {
      const { path, id } = await deliveryOfWebhook();
      return asRoot('POST', `${path}/deliveries/${id}/replay`);
    },
    shows: () => ({ type: 'key.revoked', state: 'waiting', attempts: 0 }),
  },
  listBudgets: list('budgets'),
  createBudget: create('budgets'),
  getBudget: get('budgets', () => ({
    limit: 1000,
    state: expect.objectContaining({ spent: 0, remaining: 1000, by_key: [], by_model: [] }),
  })),
  updateBudget: {
    guarantee: 'a budget is changed member by member',
    status: 200,
    ask: onOne('budgets', 'PUT', '', { alerts: [0.5] }),
    shows: () => ({ alerts: [0.5], limit: 1000 }),
  },
  patchBudget: {
    guarantee: 'a budget is changed member by member by PATCH',
    status: 200,
    ask: onOne('budgets', 'PATCH', '', { enabled: false }),
    shows: () => ({ enabled: false, limit: 1000 }),
  },
  deleteBudget: { guarantee: 'a budget is deleted', status: 204, ask: onOne('budgets', 'DELETE') },
  resetBudget: {
    guarantee: 'a budget begins a new amount',
    status: 200,
    ask: onOne('budgets', 'POST', '/reset', { reason: 'a test' }),
    shows: () => ({ limit: 1000 }),
  },
  previewBudget: {
    guarantee: 'a new budget is compared with the usage of the last month',
    status: 200,
    ask: () => asRoot('POST', '/v1/iam/budgets/preview', { body: newBody('budgets') }),
    shows: () => ({ periods: [], blocked_requests: 0, blocked: 0 }),
  },
  listAudit: {
    guarantee: 'the rows of the audit log are listed',
    status: 200,
    ask: async () => {
      await makeOne(h, 'roles');
      return asRoot('GET', '/v1/iam/audit?action=role.create');
    },
    shows: () => ({
      object: 'list',
      data: expect.arrayContaining([expect.objectContaining({ action: 'role.create' })]),
    }),
  },
  getAuditChain: {
    guarantee: 'the state of the audit chain is shown',
    status: 200,
    ask: () => asRoot('GET', '/v1/iam/audit/chain'),
    shows: () => ({ rows: 0, seals: 0, unsealed: expect.any(Number), newest_seal: null }),
  },
  getUsage: {
    guarantee: 'usage is shown, in total and by model',
    status: 200,
    ask: async () => {
      await asRoot('POST', '/v1/iam/usage/events', { body: { events: [usageEvent()] } });
      return asRoot('GET', '/v1/iam/usage?group_by=model');
    },
    shows: () => ({
      tenant_id: 'default',
      total: { estimated_tokens: 0 },
      data: [expect.objectContaining({ model: 'llama-3' })],
      has_more: false,
    }),
  },
  getPrices: {
    guarantee: 'the prices in force are shown',
    status: 200,
    ask: () => asRoot('GET', '/v1/iam/prices'),
    shows: () => ({ version: expect.any(Number), currency: 'USD' }),
  },
  setPrices: {
    guarantee: 'the prices are replaced',
    status: 200,
    ask: () => asRoot('PUT', '/v1/iam/prices', { body: { prices: [PRICE] } }),
    shows: () => ({ prices: [{ ...PRICE, input: '1.00', output: '2.00' }] }),
  },
  patchPrices: {
    guarantee: 'the prices are replaced by PATCH',
    status: 200,
    ask: () => asRoot('PATCH', '/v1/iam/prices', { body: { prices: [PRICE] } }),
    shows: () => ({ prices: [{ ...PRICE, input: '1.00', output: '2.00' }] }),
  },
  proposePrices: {
    guarantee: 'the table of the release is compared with the prices in force',
    status: 200,
    ask: () => asRoot('GET', '/v1/iam/prices/proposal?provider=openai'),
    shows: () => ({
      source: { license: 'MIT', currency: 'USD' },
      data: expect.arrayContaining([expect.objectContaining({ provider: 'openai', change: 'added' })]),
    }),
  },
  getOverview: {
    guarantee: 'the overview is shown',
    status: 200,
    ask: () => asRoot('GET', '/v1/iam/overview'),
    shows: () => ({ monthly_tokens: { limit: null }, users: { locked: [] } }),
  },
  getDecisions: {
    guarantee: 'the summary of recent decisions is shown',
    status: 200,
    ask: () => asRoot('GET', '/v1/iam/decisions'),
    shows: () => ({ tenant_id: 'default', total: { allow: 0, deny: 0, fault: 0 }, data: [], has_more: false }),
  },
  getTrial: {
    guarantee: 'the summary of a trial is shown',
    status: 200,
    ask: () => asRoot('GET', '/v1/iam/decisions/trial'),
    shows: () => ({ tenant_id: 'default', total: { allow: 0, deny: 0, fault: 0 }, other_gate_reported_at: null }),
  },
  listRecentDecisions: {
    guarantee: 'recorded decisions are listed',
    status: 200,
    ask: async () => {
      await storeDecision(h.db, { sampled: true });
      return asRoot('GET', '/v1/iam/decisions/recent');
    },
    shows: () => ({ data: [expect.objectContaining({ code: 'no_route', path: '/v1/nothing' })], sampled: true }),
  },
  getRecentDecision: {
    guarantee: 'a recorded decision is explained',
    status: 200,
    ask: async () => asRoot('GET', `/v1/iam/decisions/recent/${await storeDecision(h.db)}`),
    shows: () => ({ code: 'no_route', explanation: expect.objectContaining({ code: 'no_route', same: true }) }),
  },
  recordUsage: {
    guarantee: 'events are counted',
    status: 200,
    ask: () => asRoot('POST', '/v1/iam/usage/events', { body: { events: [usageEvent(), usageEvent()] } }),
    shows: () => ({ accepted: 2, duplicates: 0 }),
  },
  getLimits: {
    guarantee: 'the remainder of each limit is shown',
    status: 200,
    ask: onOne('tenants', 'GET', '/limits'),
    shows: () => ({ max_users: { limit: null, used: 0, reserved: 0, remaining: null, resets_at: null } }),
  },
  correctUsage: {
    guarantee: 'usage is corrected',
    status: 200,
    ask: onOne('tenants', 'PUT', '/usage', { collections: 3 }),
    shows: () => ({ max_collections: { limit: null, used: 3, reserved: 0 } }),
  },
  patchUsage: {
    guarantee: 'usage is corrected by PATCH',
    status: 200,
    ask: onOne('tenants', 'PATCH', '/usage', { collections: 3 }),
    shows: () => ({ max_collections: { limit: null, used: 3, reserved: 0 } }),
  },
  explain: {
    guarantee: 'the decision for a request is explained',
    status: 200,
    ask: () => asRoot('POST', '/v1/iam/explain', { body: question() }),
    shows: () => ({ decision: 'allow', code: 'allow', resources: ['models/llama-3'] }),
  },
  simulate: {
    guarantee: 'the decision for a request with proposed policies is explained',
    status: 200,
    ask: () => {
      const policies = [{ name: 'no-chat', effect: 'deny', actions: ['chat:*'], resources: ['*'] }];
      return asRoot('POST', '/v1/iam/explain/simulate', { body: { ...question(), policies } });
    },
    shows: () => ({ decision: 'deny', code: 'denied_by_policy', policy: 'no-chat' }),
  },
  difference: {
    guarantee: 'the requests that a proposed policy would deny are shown',
    status: 200,
    ask: () => {
      const policies = [{ name: 'no-chat', effect: 'deny', actions: ['chat:*'], resources: ['*'] }];
      return asRoot('POST', '/v1/iam/explain/difference', { body: { policies } });
    },
    shows: () => ({ unchanged: false, complete: true, newly_allowed: [] }),
  },
  whoCan: {
    guarantee: 'the holders of a permission are listed',
    status: 200,
    ask: () =>
      asRoot('POST', '/v1/iam/explain/who-can', { body: { permission: 'chat:write', resource: 'models/llama-3' } }),
    shows: () => ({ permission: 'chat:write', resource: 'models/llama-3' }),
  },
  listDirectories: {
    guarantee: 'the configured directories are listed with their status',
    status: 200,
    ask: () => asRoot('GET', '/v1/iam/directory'),
    shows: () => ({ directories: [{ name: 'corp', status: 'unknown' }] }),
  },
  listWhoCan: {
    guarantee: 'the roles, users and keys with access to a resource are listed',
    status: 200,
    ask: () => asRoot('GET', '/v1/iam/explain/who-can?resource=models/llama-3'),
    shows: () => ({ permission: null, resource: 'models/llama-3', roles: expect.any(Array) }),
  },
  testDirectory: {
    guarantee: 'a directory is tested up to the failing step',
    status: 200,
    ask: () => asRoot('POST', '/v1/iam/directory/test', { body: { username: 'alice', password: PASSWORD } }),
    shows: () => ({ steps: [{ step: 'connect', ok: false, detail: expect.any(String) }] }),
  },
  getKeySet: {
    guarantee: 'the public keys of access tokens are published',
    status: 200,
    ask: () => h.api('GET', '/.well-known/jwks.json'),
    shows: () => ({ keys: expect.arrayContaining([expect.objectContaining({ kty: 'EC', alg: 'ES256' })]) }),
  },
  getDiscovery: {
    guarantee: 'there is no discovery document for an issuer that is no URL',
    status: 404,
    ask: () => h.api('GET', '/.well-known/openid-configuration'),
    shows: () => ({ code: 'not_found' }),
  },
  getDescription: {
    guarantee: 'the API describes itself',
    status: 200,
    ask: () => h.api('GET', '/openapi.json'),
    shows: () => ({ openapi: '3.1.0' }),
  },
};

function list(kind: Kind): Expectation {
  return {
    guarantee: 'they are listed in pages',
    status: 200,
    ask: async () => {
      await makeOne(h, kind);
      return asRoot('GET', `/v1/iam/${kind}?limit=1`);
    },
    shows: () => ({ object: 'list', data: [expect.any(Object)] }),
  };
}

function create(kind: Kind): Expectation {
  return {
    guarantee: 'one is created, and Location has its path',
    status: 201,
    ask: async () => {
      const reply = await asRoot('POST', `/v1/iam/${kind}`, { body: newBody(kind) });
      expect((await asRoot('GET', String(reply.headers['location']))).status).toBe(200);
      return reply;
    },
  };
}

function get(kind: Kind, shows: () => object): Expectation {
  return { guarantee: 'it is shown', status: 200, ask: onOne(kind, 'GET'), shows };
}

function described(): readonly Endpoint[] {
  return withDescription(describedEndpoints()).filter(({ path }) => !path.startsWith('/docs'));
}

describe.each(described())('$method $path', ({ operationId }) => {
  const expectation = ENDPOINTS[operationId];

  test(expectation?.guarantee ?? 'is tested', async () => {
    if (expectation === undefined) throw new Error(`${operationId} has no line in ENDPOINTS`);
    const reply = await expectation.ask();
    expect([reply.status, reply.text]).toEqual([expectation.status, expect.any(String)]);
    if (expectation.shows !== undefined) expect(reply.json).toMatchObject(expectation.shows());
  });
});
