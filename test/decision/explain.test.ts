import { describe, expect, test } from 'vitest';
import { explainDecision } from '../../src/decision/explain.ts';
import { matchRoute } from '../../src/decision/routes.ts';
import { compileWorld, type DecisionCase, identityOf, inputOf, loadCases, snapshotOf } from '../support/world.ts';

const { defaults, world } = loadCases();
const compiled = compileWorld(world);

function explained(parts: Partial<DecisionCase>) {
  const one: DecisionCase = { name: '', as: null, method: 'GET', path: '/', expect: { status: 0, code: '' }, ...parts };
  const nowMs = Date.parse(one.time ?? defaults.time);
  const input = inputOf(one, defaults);
  const identity = identityOf(world, one.as, nowMs);
  return explainDecision(
    matchRoute(compiled.routes, input),
    input,
    identity,
    snapshotOf(compiled, identity, input.tenant),
    nowMs,
  );
}

test('an explanation lists at most 200 policies, those that name the permission first', () => {
  const policies = Array.from({ length: 300 }, (_, i) => ({
    name: `p${i}`,
    tenant_id: 'acme',
    effect: 'deny' as const,
    actions: [i < 290 ? 'rag:read' : 'models:read'],
    resources: ['*'],
    conditions: {},
    applies_to: 'roles' as const,
    attached_roles: [],
    enabled: true,
  }));
  const many = compileWorld({ ...world, policies });
  const nowMs = Date.parse(defaults.time);
  const one: DecisionCase = { name: '', as: 'ana', method: 'GET', path: '/v1/models', expect: { status: 0, code: '' } };
  const input = inputOf(one, defaults);
  const identity = identityOf(world, one.as, nowMs);
  const { policies: listed } = explainDecision(
    matchRoute(many.routes, input),
    input,
    identity,
    snapshotOf(many, identity, input.tenant),
    nowMs,
  );
  expect(listed).toHaveLength(200);
  expect(listed.slice(0, 10).map(({ name }) => name)).toEqual(policies.slice(290).map(({ name }) => name));
});

describe('an explanation', () => {
  test('shows all 18 steps, and those after the one that ended the decision as not evaluated', () => {
    const { steps } = explained({ as: 'ada', path: '/v1/models' });
    expect(steps.map((step) => step.line)).toEqual(Array.from({ length: 18 }, (_, i) => i + 1));
    expect(steps[12]).toMatchObject({
      name: 'permission',
      outcome: 'denied',
      detail: expect.stringContaining('models:read'),
    });
    expect(new Set(steps.slice(0, 12).map((step) => step.outcome))).toEqual(new Set(['passed']));
    expect(new Set(steps.slice(13).map((step) => step.outcome))).toEqual(new Set(['not_evaluated']));
  });

  test.each([
    ['a public path', { path: '/docs' }, 3, 'allowed'],
    ['a path out of normal form', { path: '//' }, 2, 'denied'],
    ['no route', { path: '/v1/unknown' }, 4, 'denied'],
    ['no credential', { path: '/v1/models' }, 5, 'denied'],
    ['another scheme', { path: '/v1/models', as: 'header:Basic x' }, 6, 'denied'],
    ['an unknown key', { path: '/v1/models', as: 'raw:psk_x' }, 8, 'denied'],
    ['an allow', { path: '/v1/models', as: 'ana' }, 18, 'allowed'],
  ] as const)('of %s ends at its step', (_, parts, line, outcome) => {
    const { steps, detail } = explained(parts);
    expect(steps.filter((step) => step.outcome === 'denied' || step.outcome === 'allowed')).toMatchObject([
      { line, outcome, detail },
    ]);
  });

  test('lists every grant with the reason why it does not permit the request', () => {
    const body = { model: 'llama-3-70b' };
    const { grants, resources, permission, code } = explained({
      as: 'mix',
      method: 'POST',
      path: '/v1/chat/completions',
      body,
    });
    expect(code).toBe('resource_not_permitted');
    expect(permission).toBe('chat:write');
    expect(resources).toEqual(['models/llama-3-70b']);
    expect(grants).toMatchObject([
      {
        kind: 'role',
        name: 'small-models',
        outcome: 'no_resources',
        resource_constraints: { models: ['llama-3-8b', 'phi-*'] },
      },
      { kind: 'role', name: 'analyst', outcome: 'no_permission' },
    ]);
  });

  test('lists the grants also if a policy denies', () => {
    const { code, grants } = explained({ as: 'ada', path: '/v1/agents', ip: '203.0.113.9' });
    expect(code).toBe('denied_by_policy');
    expect(grants).toMatchObject([{ kind: 'role', name: 'developer', outcome: 'covers' }]);
  });

  test("lists a key's scopes beside its owner's roles", () => {
    const { grants } = explained({ as: 'k-gus', path: '/v1/models', ip: '10.0.0.1' });
    expect(grants).toMatchObject([
      { kind: 'scopes', name: null, outcome: 'no_permission' },
      { kind: 'owner_role', name: 'guest', outcome: 'no_permission' },
    ]);
  });

  test('shows for each policy whether it matched, and each of its conditions', () => {
    const { policy, policies } = explained({ as: 'ada', path: '/v1/agents', ip: '203.0.113.9' });
    expect(policy).toBe('office-only-agents');
    expect(policies.find((one) => one.name === 'office-only-agents')).toEqual({
      name: 'office-only-agents',
      effect: 'deny',
      global: false,
      mode: 'enforce',
      matched: true,
      applies: true,
      actions: true,
      resources: true,
      conditions: [
        {
          kind: 'ip_address',
          operator: 'not_in',
          operand: ['10.0.0.0/8'],
          value: '203.0.113.9',
          timezone: null,
          matched: true,
          missing: false,
        },
      ],
    });
    expect(policies.find((one) => one.name === 'no-banned-nets')).toMatchObject({
      global: true,
      matched: false,
      actions: true,
    });
    expect(policies.find((one) => one.name === 'binds-nobody')).toMatchObject({
      effect: 'allow',
      matched: false,
      applies: false,
    });
  });

  test('shows the value that each condition was compared with, and its time zone', () => {
    const at = { as: 'mel', method: 'POST', path: '/v1/finetuning/jobs', time: '2026-11-18T22:30:00Z' };
    const night = explained({ ...at, body: { model: 'm' } }).policies.find((one) => one.name === 'no-night-finetuning');
    expect(night?.conditions[0]).toMatchObject({
      kind: 'time',
      value: '23:30',
      timezone: 'Europe/Berlin',
      matched: true,
    });
    const { policies } = explained({ as: 'ada', method: 'POST', path: '/v1/embeddings', body: { model: 'm' } });
    expect(policies.find((one) => one.name === 'workdays')?.conditions[0]).toMatchObject({
      kind: 'day_of_week',
      value: 'Wed',
      timezone: 'Europe/Berlin',
      matched: false,
    });
  });

  test('shows that the input of a condition is missing', () => {
    const { policies } = explained({ as: 'ada', path: '/v1/agents', ip: 'unknown' });
    expect(policies.find((one) => one.name === 'office-only-agents')?.conditions[0]).toMatchObject({
      value: null,
      matched: true,
      missing: true,
    });
  });

  test('shows a resource that the request does not name as its kind only', () => {
    const { resources } = explained({ as: 'ana', method: 'POST', path: '/v1/rag/query', body: { query: 'x' } });
    expect(resources).toEqual(['collections/']);
  });
});
