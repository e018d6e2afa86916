/** GET /v1/iam/decisions/recent: whose decisions are shown, by which filters, and how one of them is explained. */

import { beforeAll, describe, expect, test } from 'vitest';
import { type DecisionSpec, storeDecision } from '../support/recorded-decisions.ts';
import { column, type Harness, it, type Json, outcome, type Person, type Reply, rows, unique } from './harness.ts';

const RECENT = '/v1/iam/decisions/recent';
const CHAT = '/v1/chat/completions';

const ACME = unique('acme');
const GLOBEX = unique('globex');

let h: Harness;
let auditor: Person;
let developer: Person;

it.beforeAll(async ({ harness }) => {
  h = harness;
  for (const id of [ACME, GLOBEX]) await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id, name: id } });
  auditor = await h.person(ACME, ['auditor']);
  developer = await h.person(ACME, ['developer']);
});

const store = (spec: DecisionSpec) => storeDecision(h.db, { tenant_id: ACME, ...spec });
const list = (query: string, as = auditor.token) => h.api('GET', `${RECENT}?${query}`, { as });
const open = (id: string, as = auditor.token, query = '') => h.api('GET', `${RECENT}/${id}${query}`, { as });

describe('recent decisions', () => {
  const MINUTE = 60_000;
  const now = Date.now();
  const ids: Record<string, string> = {};
  const named = (reply: Reply) => {
    const names = Object.entries(ids).map(([name, id]) => [id, name] as const);
    return column(reply, 'request_id').map((id) => new Map(names).get(String(id)));
  };

  beforeAll(async () => {
    const person = { principal_type: 'user', principal_id: developer.id } as const;
    const route = `POST ${CHAT}`;
    ids['policy'] = await store({
      ...person,
      atMs: now - 5 * MINUTE,
      code: 'denied_by_policy',
      policy: 'no-chat',
      route,
    });
    ids['allow'] = await store({
      ...person,
      atMs: now - 4 * MINUTE,
      outcome: 'allow',
      code: 'allow',
      route,
      sampled: true,
    });
    ids['path'] = await store({ atMs: now - 3 * MINUTE, code: 'malformed_path' });
    ids['theirs'] = await store({ atMs: now - 2 * MINUTE, tenant_id: GLOBEX });
    ids['unknown'] = await store({ atMs: now - MINUTE, tenant_id: '', code: 'missing_credential' });
    ids['old'] = await store({ atMs: now - 25 * 60 * MINUTE });
  });

  test('are listed newest first, of one tenant only, for the last 24 hours', async () => {
    const reply = await list('');
    expect(named(reply)).toEqual(['path', 'allow', 'policy']);
    expect(reply.json).toMatchObject({ object: 'list', has_more: false, sampled: true });
    expect(rows(reply)[2]).toEqual({
      request_id: ids['policy'],
      time: new Date(now - 5 * MINUTE).toISOString(),
      tenant_id: ACME,
      outcome: 'deny',
      code: 'denied_by_policy',
      detail: 'Denied in a test.',
      principal: { type: 'user', id: developer.id },
      method: 'GET',
      path: '/v1/nothing',
      route: `POST ${CHAT}`,
      permission: null,
      resources: [],
      client_ip: '192.0.2.7',
      policy: 'no-chat',
      budget: null,
      sampled: false,
      would_deny: null,
      would_allow: null,
      shadow: false,
      client_request_id: null,
      other: null,
    });
  });

  test('of all tenants, and those without a principal, are shown to platform administrators only', async () => {
    // Other tests of the same database record decisions as well.
    const ofAll = named(await list('tenant_id=*&limit=200', h.root.token)).filter((name) => name !== undefined);
    expect(ofAll).toEqual(['unknown', 'theirs', 'path', 'allow', 'policy']);
    expect(named(await list(`tenant_id=${GLOBEX}`, h.root.token))).toEqual(['theirs']);
    expect(named(await list('', h.root.token))).toEqual([]);
    for (const tenant of ['*', GLOBEX]) expect(outcome(await list(`tenant_id=${tenant}`))).toBe('403 tenant_mismatch');
    expect(outcome(await list('', developer.token))).toBe('403 insufficient_permission');
    expect(outcome(await open(ids['policy'] ?? '', developer.token))).toBe('403 insufficient_permission');
  });

  test.each([
    ['outcome=deny', ['path', 'policy']],
    ['outcome=allow', ['allow']],
    ['code=denied_by_policy', ['policy']],
    ['route=POST%20/v1/chat/completions', ['allow', 'policy']],
    [() => `principal=${developer.id}&outcome=deny`, ['policy']],
    ['principal=usr_nobody', []],
    [() => `from=${new Date(now - 4 * MINUTE).toISOString()}`, ['path', 'allow']],
    [() => `to=${new Date(now - 4 * MINUTE).toISOString()}`, ['policy']],
    ['from=0001-01-01T00:00:00Z&to=9999-12-31T23:59:59Z', ['path', 'allow', 'policy']],
  ])('are filtered by %s', async (query, expected) => {
    expect(named(await list(typeof query === 'string' ? query : query()))).toEqual(expected);
  });

  test('are listed in pages, each decision once', async () => {
    const seen: unknown[] = [];
    for (let cursor = ''; ; ) {
      const reply = await list(`limit=1${cursor}`);
      seen.push(...named(reply));
      if (reply.json['has_more'] !== true) break;
      cursor = `&cursor=${String(reply.json['next_cursor'])}`;
    }
    expect(seen).toEqual(['path', 'allow', 'policy']);
  });

  test.each(['outcome=maybe', 'from=yesterday', 'cursor=x', 'tenant=acme'])('are not listed for %s', async (query) => {
    expect(outcome(await list(query))).toBe('400 invalid_parameter');
  });

  test('of another tenant, too old, or never recorded are not found', async () => {
    for (const name of ['theirs', 'unknown', 'old']) expect(outcome(await open(ids[name] ?? ''))).toBe('404 not_found');
    for (const id of ['req_00000000000000000000000000', 'nonsense'])
      expect(outcome(await open(id))).toBe('404 not_found');
    expect((await open(ids['unknown'] ?? '', h.root.token, '?tenant_id=*')).status).toBe(200);
  });
});

describe('one decision', () => {
  const person = () => ({ principal_type: 'user', principal_id: developer.id }) as const;
  const explained = async (spec: DecisionSpec, as = auditor.token, query = '') =>
    (await open(await store(spec), as, query)).json;

  test.each<[string, DecisionSpec, Json]>([
    [
      'a missing model',
      { code: 'malformed_body', detail: 'At byte 7.' },
      { code: 'malformed_body', same: true, detail: 'At byte 7.' },
    ],
    ['a body that was too large', { code: 'body_too_large' }, { code: 'body_too_large', same: true }],
    ['a wrong tenant', { code: 'tenant_mismatch', facts: { tenant: GLOBEX } }, { code: 'tenant_mismatch', same: true }],
    [
      'a repeated tenant header',
      { code: 'invalid_tenant', facts: { tenant: '' } },
      { code: 'invalid_tenant', same: true },
    ],
    [
      'a quota',
      { code: 'insufficient_quota', resources: ['models/a'] },
      { code: 'insufficient_quota', status: 429, same: true },
    ],
    ['an upgrade', { code: 'no_route', facts: { upgrade: true } }, { code: 'no_route', same: true }],
    ['rules that are no longer there', { code: 'denied_by_policy', policy: 'gone' }, { code: 'allow', same: false }],
    ['no rule', { outcome: 'allow', code: 'allow', resources: ['models/a'] }, { code: 'allow', same: true }],
  ])('that ended by %s is explained', async (_what, spec, expected) => {
    const json = await explained({ ...person(), method: 'POST', path: CHAT, ...spec });
    expect(json).toMatchObject({ explanation: expected, not_explained: null });
  });

  test('by the token limit is explained with the limit that the body named', async () => {
    const settings = { max_tokens_per_request: 100 };
    await h.api('PUT', `/v1/iam/tenants/${ACME}`, { as: h.root.token, body: { settings } });
    const facts = { asked_tokens: 101 };
    const json = await explained({
      ...person(),
      method: 'POST',
      path: CHAT,
      code: 'max_tokens_exceeded',
      resources: ['models/a'],
      facts,
    });
    expect(json).toMatchObject({
      request: { body: '{"model":"a","max_tokens":101}' },
      explanation: { code: 'max_tokens_exceeded', same: true },
    });
    await h.api('PUT', `/v1/iam/tenants/${ACME}`, {
      as: h.root.token,
      body: { settings: { max_tokens_per_request: null } },
    });
  });

  test('that was allowed is explained as allowed after the tenant has used up its current limits', async () => {
    const change = (rate: number | null, tokens: number | null) =>
      h.api('PUT', `/v1/iam/tenants/${ACME}`, {
        as: h.root.token,
        body: { settings: { rate_limit_rpm: rate }, quotas: { monthly_tokens: tokens } },
      });
    await change(0, 0);
    const id = await store({
      ...person(),
      method: 'POST',
      path: CHAT,
      outcome: 'allow',
      code: 'allow',
      resources: ['models/a'],
    });
    const { explanation, request } = (await open(id)).json;
    expect(explanation).toMatchObject({ code: 'allow', same: true, limits: [{ line: 15, exceeded: false }] });
    const again = await h.api('POST', '/v1/iam/explain', { as: h.root.token, body: Object(request) });
    expect(again.json['code']).toBe('rate_limit_exceeded');
    await change(null, null);
  });

  test.each<[string, DecisionSpec, Json]>([
    ['an expired token', { code: 'token_expired' }, { code: 'token_expired' }],
    [
      'a malformed credential',
      { code: 'invalid_credential', facts: { reason: 'malformed' } },
      { code: 'invalid_credential' },
    ],
  ])('of %s is explained with the result of its credential at that time', async (_what, spec, expected) => {
    const json = await explained({ tenant_id: '', path: '/v1/models', ...spec }, h.root.token, '?tenant_id=*');
    expect(json).toMatchObject({ principal: null, explanation: { ...expected, same: true } });
  });

  test.each([
    ['unknown', 'unknown'],
    ['disabled', 'disabled'],
    ['key_expired', 'expired'],
    ['user_deactivated', 'owner_deactivated'],
    ['ambiguous', 'ambiguous'],
  ])('of a credential that proved no principal because of %s has that reason in step 8', async (reason, shown) => {
    const spec = { tenant_id: '', path: '/v1/models', code: 'invalid_credential', facts: { reason } } as const;
    const { explanation } = await explained(spec, h.root.token, '?tenant_id=*');
    expect(explanation).toMatchObject({ code: 'invalid_credential', same: true });
    expect(Object(explanation).steps[7]).toMatchObject({ line: 8, outcome: 'denied', reason: shown });
  });

  test('names the resources of a body and of a path in a body that explain and simulate take', async () => {
    const search = '/v1/rag/search';
    const json = await explained({
      ...person(),
      method: 'POST',
      path: search,
      code: 'resource_not_permitted',
      resources: ['collections/a', 'collections/b'],
    });
    expect(json['request']).toMatchObject({ path: search, body: '{"collections":["a","b"]}' });
    const again = await h.api('POST', '/v1/iam/explain', { as: h.root.token, body: Object(json['request']) });
    expect(again.json['resources']).toEqual(['collections/a', 'collections/b']);
  });

  test('lists the policies that match, and to a caller with admin:policies the others as well', async () => {
    const policy = (name: string, resource: string) => ({
      name,
      effect: 'deny',
      actions: ['chat:write'],
      resources: [resource],
    });
    for (const body of [policy('no-a', 'models/a'), policy('no-b', 'models/b')]) {
      await h.api('POST', '/v1/iam/policies', { as: h.root.token, tenant: ACME, body });
    }
    const id = await store({
      ...person(),
      method: 'POST',
      path: CHAT,
      code: 'denied_by_policy',
      policy: 'no-a',
      resources: ['models/a'],
    });
    const policies = async (as: string, query = '') =>
      JSON.stringify(Object((await open(id, as, query)).json['explanation']).policies.map((one: Json) => one['name']));
    expect(await policies(auditor.token)).toBe('["no-a"]');
    expect(await policies(h.root.token, `?tenant_id=${ACME}`)).toBe('["no-a","no-b"]');
    for (const name of ['no-a', 'no-b'])
      await h.api('DELETE', `/v1/iam/policies/${name}`, { as: h.root.token, tenant: ACME });
  });

  test('has no explanation if its texts were altered, the check was unreadable, or the principal is not of the tenant', async () => {
    expect(await explained({ ...person(), facts: { altered: true } })).toMatchObject({
      request: null,
      not_explained: 'altered',
    });
    expect(await explained({ method: null, path: null })).toMatchObject({ request: null, not_explained: 'unreadable' });
    const foreign = { principal_type: 'user', principal_id: h.root.id } as const;
    expect(await explained(foreign)).toMatchObject({ explanation: null, not_explained: 'unknown_principal' });
    expect(await explained(foreign, h.root.token, `?tenant_id=${ACME}`)).toMatchObject({ not_explained: null });
  });
});
