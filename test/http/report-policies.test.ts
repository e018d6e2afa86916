/** Report-only policies at the API: how they are kept and shown, and that they have no effect on any answer. */

import { describe, expect, test } from 'vitest';
import { storeDecision } from '../support/recorded-decisions.ts';
import { column, type Harness, it, outcome, type Person, unique } from './harness.ts';

const ACME = unique('acme');
const POLICIES = '/v1/iam/policies';
const DENY = {
  name: 'no-gpt',
  effect: 'deny',
  actions: ['chat:*'],
  resources: ['models/gpt-*'],
  applies_to: 'everyone',
  mode: 'report',
};
const ALLOW = { ...DENY, name: 'yes-rag', effect: 'allow', actions: ['rag:*'], resources: ['*'] };
const CHAT = { method: 'POST', path: '/v1/chat/completions', body: '{"model":"gpt-4"}' };
const RAG = { method: 'GET', path: '/v1/rag/collections' };

let h: Harness;
let boss: Person;
let ada: Person;
let reader: Person;

it.beforeAll(async ({ harness }) => {
  h = harness;
  const { token } = h.root;
  await h.api('POST', '/v1/iam/tenants', { as: token, body: { id: ACME, name: ACME } });
  await h.api('POST', '/v1/iam/roles', {
    as: token,
    tenant: ACME,
    body: { name: 'chatter', permissions: ['chat:*'] },
  });
  boss = await h.person(ACME, ['tenant-admin']);
  ada = await h.person(ACME, ['chatter']);
  reader = await h.person(ACME, ['auditor']);
  for (const body of [DENY, ALLOW]) expect(outcome(await api('POST', POLICIES, body))).toBe('201');
});

const api = (method: string, path: string, body?: object, as = boss.token) =>
  h.api(method, path, { as, ...(body === undefined ? {} : { body }) });
const explain = (body: object, as = boss.token) => api('POST', '/v1/iam/explain', body, as);

describe('a report-only policy', () => {
  test('is disabled for servers that do not know modes, and enabled at the API', async () => {
    const { rows } = await h.db.knex.raw<{ rows: unknown[] }>(
      'select mode, enabled, reports from policies where tenant_id = ? order by name',
      [ACME],
    );
    expect(rows).toEqual([1, 2].map(() => ({ mode: 'report', enabled: false, reports: true })));
    const { json } = await api('GET', `${POLICIES}/no-gpt`);
    expect(json).toMatchObject({ mode: 'report', enabled: true });
    const [row] = await h.audit('policy.create').then((all) => all.filter((one) => one['tenant_id'] === ACME));
    expect(row).toMatchObject({ after: { mode: 'report', enabled: true } });
  });

  test('changes its mode in both directions, and is kept as it is without one', async () => {
    const shown = async (body: object) => (await api('PUT', `${POLICIES}/no-gpt`, body)).json;
    expect(await shown({ mode: 'enforce' })).toMatchObject({ mode: 'enforce', enabled: true });
    expect((await explain({ ...CHAT, subject: ada.id })).json).toMatchObject({ code: 'denied_by_policy' });
    expect(await shown({ enabled: false })).toMatchObject({ mode: 'enforce', enabled: false });
    expect(await shown({ mode: 'report' })).toMatchObject({ mode: 'report', enabled: false });
    expect((await explain({ ...CHAT, subject: ada.id })).json).toMatchObject({ code: 'allow', would_deny: null });
    expect(await shown({ enabled: true })).toMatchObject({ mode: 'report', enabled: true });
  });

  test('is explained after the decision, to callers with admin:policies only', async () => {
    expect((await explain({ ...CHAT, subject: ada.id })).json).toMatchObject({
      code: 'allow',
      would_deny: 'no-gpt',
      would_allow: null,
      policies: [
        { name: 'no-gpt', mode: 'report', matched: true },
        { name: 'yes-rag', mode: 'report', matched: false },
      ],
    });
    expect((await explain({ ...RAG, subject: ada.id })).json).toMatchObject({
      code: 'insufficient_permission',
      would_deny: null,
      would_allow: 'yes-rag',
    });
    expect((await explain({ ...CHAT, subject: ada.id }, ada.token)).json).toMatchObject({
      code: 'allow',
      would_deny: null,
      policies: [],
    });
  });

  test('takes part in a simulation, in neither the difference of a change nor who-can', async () => {
    const policies = [{ ...DENY, name: 'no-chat', resources: ['*'] }];
    const simulated = await api('POST', '/v1/iam/explain/simulate', { ...CHAT, subject: ada.id, policies });
    expect(simulated.json).toMatchObject({ code: 'allow', would_deny: 'no-chat', current: { code: 'allow' } });
    const difference = await api('POST', '/v1/iam/explain/difference', { policies });
    expect(difference.json).toMatchObject({ unchanged: true, complete: true });
    const enforced = await api('POST', '/v1/iam/explain/difference', { policies: [{ ...DENY, mode: 'enforce' }] });
    expect(enforced.json).toMatchObject({
      unchanged: false,
      newly_denied: expect.arrayContaining([expect.objectContaining({ by: 'no-gpt' })]),
    });
    const { text } = await api('POST', '/v1/iam/explain/who-can', { permission: 'rag:read' });
    expect(text).not.toContain(ada.id);
  });

  test('never locks its author out, and does when it is enforced', async () => {
    const lock = { ...DENY, name: 'lock', actions: ['admin:*'], resources: ['*'] };
    expect(outcome(await api('POST', POLICIES, lock))).toBe('201');
    expect(outcome(await api('PUT', `${POLICIES}/lock`, { mode: 'enforce' }))).toBe('409 would_lock_out');
    expect(outcome(await api('DELETE', `${POLICIES}/lock`))).toBe('204');
  });
});

test('recent decisions that a report-only policy would have changed are found by its effect and its name', async () => {
  const at = Date.now() - 1000;
  const spec = { tenant_id: ACME, principal_type: 'user', principal_id: ada.id } as const;
  const denied = await storeDecision(h.db, {
    ...spec,
    atMs: at,
    outcome: 'allow',
    code: 'allow',
    would_deny: 'no-gpt',
  });
  const allowed = await storeDecision(h.db, { ...spec, atMs: at + 1, would_allow: 'yes-rag' });
  await storeDecision(h.db, { ...spec, atMs: at + 2 });
  const found = async (query: string) =>
    column(await api('GET', `/v1/iam/decisions/recent?${query}`, undefined, reader.token), 'request_id');
  expect(await found('would=any')).toEqual([allowed, denied]);
  expect(await found('would=deny')).toEqual([denied]);
  expect(await found('would=allow')).toEqual([allowed]);
  expect(await found('report=no-gpt')).toEqual([denied]);
  expect(await found('report=other')).toEqual([]);
  const opened = await api('GET', `/v1/iam/decisions/recent/${denied}`, undefined, reader.token);
  expect(opened.json).toMatchObject({ would_deny: 'no-gpt', would_allow: null });
});
