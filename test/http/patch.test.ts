/** PATCH beside PUT: the same change, of a merge patch or of plain JSON. */

import { describe, expect, test } from 'vitest';
import { type Harness, it, outcome } from './harness.ts';
import { KINDS, type Kind, makeOne } from './resources.ts';

let h: Harness;
it.beforeAll(({ harness }) => {
  h = harness;
});

const MERGE_PATCH = 'application/merge-patch+json';
const CHANGES: Readonly<Record<Kind, object>> = {
  users: { name: 'Renamed', department: null, rate_limits: [{ models: ['*'], parallel: 2 }] },
  roles: { description: 'Changed', permissions: ['chat:*'] },
  policies: { description: 'Changed', enabled: false },
  budgets: { limit: 5 },
  tenants: {
    name: 'Renamed',
    settings: { timezone: 'Europe/Berlin', rate_limit_rpm: null, rate_limits: [{ models: ['*'], parallel: 0 }] },
  },
  'api-keys': {
    description: 'Changed',
    rate_limit_rpm: 7,
    rate_limits: [{ models: ['a', 'b-*'], tokens_per_minute: 0 }],
  },
  webhooks: { events: ['budget.*', 'login.locked'], description: null },
  issuers: { audiences: ['other'], max_age_seconds: null },
};

/** Sends a body under a media type. */
const send = (method: string, path: string, type: string, raw: string | Uint8Array) =>
  h.api(method, path, { as: h.root.token, raw, headers: { 'content-type': type } });

describe.each(KINDS)('PATCH of %s', (kind) => {
  test.each(['application/json', MERGE_PATCH, `${MERGE_PATCH}; charset=utf-8`])(
    'changes what PUT changes, as %s',
    async (type) => {
      const [one, other] = [await makeOne(h, kind), await makeOne(h, kind)];
      const patched = await send('PATCH', one.path, type, JSON.stringify(CHANGES[kind]));
      const put = await h.api('PUT', other.path, { as: h.root.token, body: CHANGES[kind] });
      const own = new Set([
        'id',
        'name',
        'email',
        'description',
        'issuer',
        'tenant_id',
        'url',
        'applies_to',
        'prefix',
        'last_four',
        'created_at',
        'updated_at',
        'expires_at',
      ]);
      const members = (json: object) => Object.fromEntries(Object.entries(json).filter(([name]) => !own.has(name)));
      expect([outcome(patched), outcome(put)]).toEqual(['200', '200']);
      expect(members(patched.json)).toEqual(members(put.json));
      const given = Object.entries(CHANGES[kind]).filter(([name]) => name !== 'settings');
      expect(patched.json).toMatchObject(Object.fromEntries(given));
      const { state: _useOfBudget, ...shown } = (await h.api('GET', one.path, { as: h.root.token })).json;
      expect(shown).toEqual(patched.json);
    },
  );

  test('has the methods of its path in Allow, and the audit action of PUT', async () => {
    const { path, id } = await makeOne(h, kind);
    const stray = await h.api('POST', path, { as: h.root.token, body: {} });
    expect(outcome(stray)).toBe('405 method_not_allowed');
    expect(String(stray.headers['allow']).split(', ').toSorted()).toEqual(['DELETE', 'GET', 'HEAD', 'PATCH', 'PUT']);
    await send('PATCH', path, MERGE_PATCH, JSON.stringify(CHANGES[kind]));
    const rows = (await h.audit()).filter((row) => row['target_id'] === id).map((row) => String(row['action']));
    expect(rows.at(-1)).toMatch(/^[a-z_]+\.update$/);
  });
});

test('only PATCH takes application/merge-patch+json, and it takes no other type', async () => {
  const { path } = await makeOne(h, 'users');
  for (const [method, where, type] of [
    ['PUT', path, MERGE_PATCH],
    ['POST', '/v1/iam/users', MERGE_PATCH],
    ['PATCH', path, 'application/json-patch+json'],
    ['PATCH', path, `${MERGE_PATCH}; charset=latin1`],
  ] as const) {
    expect([method, type, outcome(await send(method, where, type, '{"name":"Other"}'))]).toEqual([
      method,
      type,
      '415 unsupported_media_type',
    ]);
  }
});

test('a merge patch is read as strictly as every body', async () => {
  const { path } = await makeOne(h, 'users');
  const answers = [];
  for (const raw of [
    '{"name":"a","name":"b"}',
    '[]',
    '{"no_such":1}',
    '{"name":null}',
    Uint8Array.of(0x22, 0xff, 0x22),
  ]) {
    answers.push(outcome(await send('PATCH', path, MERGE_PATCH, raw)));
  }
  expect(answers).toEqual([
    '400 invalid_json',
    '422 invalid_field',
    '422 invalid_field',
    '422 invalid_field',
    '400 invalid_json',
  ]);
});

test('attaching a policy has no PATCH: it changes no members', async () => {
  const policy = await makeOne(h, 'policies');
  const path = `/v1/iam/roles/auditor/policies/${policy.id}`;
  const reply = await h.api('PATCH', path, { as: h.root.token, body: {} });
  expect([outcome(reply), reply.headers['allow']]).toEqual(['405 method_not_allowed', 'PUT, DELETE']);
});
