/** How much one caller may write by its changes. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { WriteRate } from '../../src/iam/caller/write-rate.ts';
import { startIssuer } from '../support/issuer.ts';
import { type Harness, type Person, startHarness, text, unique } from './harness.ts';

const BYTES_PER_SECOND = 1;
const BURST_BYTES = 10_000;

let nowMs = 0;
let h: Harness;
beforeAll(async () => {
  h = await startHarness({ writes: new WriteRate(() => nowMs, BYTES_PER_SECOND, BURST_BYTES) });
});
afterAll(() => h.close());

async function makeKey(person: Person): Promise<string> {
  const body = { description: 'own', scopes: ['chat:*'], expires_in_days: 1 };
  const { status, json } = await h.api('POST', '/v1/iam/api-keys', { as: person.token, body });
  expect(status).toBe(201);
  return `/v1/iam/api-keys/${json['id']}`;
}

const annotate = (person: Person, key: string) =>
  h.api('PUT', key, { as: person.token, body: { metadata: { note: 'x'.repeat(512) } } });

/** Changes the key until the server refuses it. */
async function exhaust(person: Person, key: string) {
  for (let i = 0; i < 100; i++) {
    const reply = await annotate(person, key);
    if (reply.status !== 200) return reply;
  }
  throw new Error('the server admits every change');
}

test('the server refuses further changes of a caller that has written too much, and of no other caller', async () => {
  const [writer, other] = [await h.person('default', ['developer']), await h.person('default', ['developer'])];
  const [key, second, others] = [await makeKey(writer), await makeKey(writer), await makeKey(other)];
  const refused = await exhaust(writer, key);
  expect([refused.status, refused.json['code'], refused.headers['retry-after']]).toEqual([
    429,
    'rate_limit_exceeded',
    '60',
  ]);
  expect((await h.api('GET', key, { as: writer.token })).status).toBe(200);
  expect((await annotate(other, others)).status).toBe(200);
  // Rights can always be ended.
  expect((await h.api('POST', `${second}/disable`, { as: writer.token })).status).toBe(200);
  expect((await h.api('DELETE', second, { as: writer.token })).status).toBe(204);
  expect((await annotate(writer, key)).status).toBe(429);
  nowMs += 20_000_000;
  expect((await annotate(writer, key)).status).toBe(200);
});

test('the keys of a user count as the user', async () => {
  const writer = await h.person('default', ['tenant-admin']);
  const body = { description: 'own', scopes: ['admin:keys'], expires_in_days: 5, user_id: writer.id };
  const made = await h.api('POST', '/v1/iam/api-keys', { as: writer.token, body });
  expect(made.status).toBe(201);
  await exhaust(writer, await makeKey(writer));
  const byKey = await h.api('POST', '/v1/iam/api-keys', {
    as: String(made.json['key']),
    body: { description: 'another', scopes: ['admin:keys'], expires_in_days: 1 },
  });
  expect(byKey.json['code']).toBe('rate_limit_exceeded');
});

test('a platform administrator has no such bound', async () => {
  const key = await makeKey(h.root);
  for (let i = 0; i < 10; i++) expect((await annotate(h.root, key)).status).toBe(200);
});

test('a replay does not count, because it writes no audit row', async () => {
  const person = await h.person('default', ['developer']);
  const body = { description: 'own', scopes: ['chat:*'], expires_in_days: 1 };
  const call = { as: person.token, body, headers: { 'idempotency-key': unique('replayed') } };
  const made = async () => (await h.api('POST', '/v1/iam/api-keys', call)).json['code'];
  expect(await codesOf(made)).toEqual([undefined]);
});

test('a refused change counts as well, because it has an audit row of its own', async () => {
  const person = await h.person('default', ['developer']);
  const body = { description: 'own', scopes: ['admin:users'], expires_in_days: 1 };
  const refused = async () => (await h.api('POST', '/v1/iam/api-keys', { as: person.token, body })).json['code'];
  expect(await codesOf(refused)).toEqual(['escalation', 'rate_limit_exceeded']);
});

test('the refresh of the keys of an issuer counts', async () => {
  const person = await h.person('default', ['tenant-admin']);
  const body = { name: unique('private'), issuer: 'https://127.0.0.1:1', audiences: ['postern'] };
  const made = await h.api('POST', '/v1/iam/issuers', { as: person.token, body });
  const path = `/v1/iam/issuers/${text(made.json, 'id')}/refresh`;
  const refreshed = async () => (await h.api('POST', path, { as: person.token })).json['code'];
  expect(await codesOf(refreshed)).toEqual([undefined, 'rate_limit_exceeded']);
});

test('an exchange in a suspended tenant counts', async () => {
  await using keys = await startIssuer();
  const tenant = unique('suspended');
  await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: tenant, name: tenant } });
  const person = await h.person(tenant, ['tenant-admin']);
  const iss = `https://${tenant}.example`;
  const body = { name: 'staff', issuer: iss, audiences: ['postern'], jwks: keys.jwks(), users: { create: true } };
  expect((await h.api('POST', '/v1/iam/issuers', { as: person.token, body })).status).toBe(201);
  const raw = new URLSearchParams({
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    subject_token: keys.sign({ iss, sub: 'ada' }),
  }).toString();
  const headers = { 'content-type': 'application/x-www-form-urlencoded' };
  const exchanged = async () => (await h.api('POST', '/v1/auth/token', { raw, headers })).json['code'];
  expect(await exchanged()).toBeUndefined();
  await h.api('POST', `/v1/iam/tenants/${tenant}/suspend`, { as: h.root.token });
  expect(await codesOf(exchanged)).toEqual(['tenant_suspended', 'rate_limit_exceeded']);
});

/** Returns the different codes of many requests, in the order in which they came. */
async function codesOf(request: () => Promise<unknown>): Promise<readonly unknown[]> {
  const codes = new Set<unknown>();
  for (let i = 0; i < 100; i++) codes.add(await request());
  return [...codes];
}
