import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compileGrant, compilePolicies, compileTenant } from '../../src/decision/compile.ts';
import { decide } from '../../src/decision/decide.ts';
import { type Ability, evaluateAccess, parseResource, rolesThatSuffice } from '../../src/decision/effective-access.ts';
import { decideManagement } from '../../src/decision/management.ts';
import type { Principal, Resource, Snapshot } from '../../src/decision/model.ts';
import { permissionOf } from '../../src/decision/permissions.ts';
import type { CompiledPolicy } from '../../src/decision/policies.ts';
import { makeId, parsePolicyName, parseTenantId, type RoleName, type TenantId } from '../../src/domain/ids.ts';
import type { PolicyRecord } from '../../src/domain/records.ts';
import { ADMIN } from '../../src/domain/roles.ts';
import { builtinRoles } from '../support/builtin-roles.ts';
import { enough, runs } from '../support/properties.ts';
import { checkInput, compileWorld, loadCases, must, roleName, snapshotOf, userPrincipal } from '../support/world.ts';
import { principalArbitrary, type RandomWorld, worldArbitrary } from './worlds.ts';

type RandomPrincipal = typeof principalArbitrary extends fc.Arbitrary<infer T> ? T : never;

const ID = makeId('usr', 0, new Uint8Array(10));

const abilityArbitrary: fc.Arbitrary<Ability> = fc
  .tuple(
    fc.oneof(
      { weight: 2, arbitrary: fc.constantFrom('chat:write', 'rag:read') },
      {
        weight: 1,
        arbitrary: fc.constantFrom('models:read', 'agents:run', 'admin:users', 'admin:tenants', 'audit:read'),
      },
    ),
    fc.oneof(
      { weight: 2, arbitrary: fc.constant(undefined) },
      { weight: 1, arbitrary: fc.constantFrom('models/a', 'models/ab', 'collections/x/y', 'agents/', 'models/') },
    ),
  )
  .map(([permission, resource]) => ({
    permissions: [permissionOf(permission)] as const,
    resources: resource === undefined ? [] : [must(parseResource(resource), resource)],
  }));

const MANAGED = new Set(['admin:users', 'admin:tenants', 'audit:read']);
/** The conditions of random worlds depend on the address only. */
const ADDRESSES = ['10.0.0.1', '192.0.2.1', undefined];

function principalOf({ key, roles, id }: RandomPrincipal, tenant: string): Principal {
  const tenantId = must(parseTenantId(tenant), tenant);
  if (key === undefined) return person(roles, tenantId);
  const grant = compileGrant(key.permissions, key.constraints);
  const owner = key.owned ? { id, roles } : undefined;
  const keyId = makeId('key', 0, new Uint8Array(10));
  return { kind: 'api_key', id: keyId, tenantId, grant, owner, rateLimitRpm: undefined };
}

function person(roles: readonly RoleName[], tenantId: Principal['tenantId']): Principal {
  return {
    kind: 'user',
    id: ID,
    tenantId,
    roles,
    platformAdmin: roles.some((one) => one === 'admin'),
    sessionId: undefined,
  };
}

function snapshotIn(world: RandomWorld, own: string, effective: string): Snapshot {
  const view = (id: string) =>
    compileTenant(
      must(
        world.tenants.find((one) => one.id === id),
        id,
      ),
    );
  const home = view(own);
  return {
    own: home,
    effective: own === effective ? home : view(effective),
    global: compilePolicies(world.globals),
    builtinRoles,
  };
}

/** Returns the decision for a client address, by the rule that the permission belongs to. */
function isAllowed(
  ability: Ability,
  principal: Principal,
  snapshot: Snapshot,
  clientAddress: string | undefined,
): boolean {
  const { permissions, resources } = ability;
  const [permission] = permissions;
  if (MANAGED.has(permission.text) && resources.length === 0) {
    const asked = { permission: permission.text, self: false, principal, snapshot, clientAddress, nowMs: 0 };
    return decideManagement(asked).kind === 'allow';
  }
  const line = {
    method: 'GET',
    template: '/',
    permissions,
    model: 'none',
    collection: 'none',
    agent: 'none',
    tokens: false,
    upgrade: false,
    counts: 'none',
    readsBody: false,
    readsPrompts: false,
    usageOnRequest: false,
    reportsUsage: false,
    readsResponse: false,
    upstreamToken: true,
  } as const;
  const input = checkInput({ tenant: snapshot.effective?.id, clientAddress });
  return (
    decide({ kind: 'matched', route: line, resources }, input, { kind: 'proved', principal }, snapshot, 0).kind ===
    'allow'
  );
}

/** The world in which the conditional policies of one kind have come to nothing. */
function withoutPolicies(world: RandomWorld, dropped: (policy: PolicyRecord) => boolean): RandomWorld {
  return {
    tenants: world.tenants.map((tenant) => ({
      ...tenant,
      policies: tenant.policies.filter((policy) => !dropped(policy)),
    })),
    globals: world.globals.filter((policy) => !dropped(policy)),
  };
}

/** Random worlds with more conditions in them. */
const conditionalWorlds = worldArbitrary.map((world): RandomWorld => {
  const often = (policy: PolicyRecord): PolicyRecord =>
    !policy.name.endsWith('4') ? { ...policy, conditions: { ip_address: { in: ['10.0.0.0/8'] } } } : policy;
  return {
    tenants: world.tenants.map((tenant) => ({ ...tenant, policies: tenant.policies.map(often) })),
    globals: world.globals.map(often),
  };
});

const isConditional = (policy: PolicyRecord) => Object.keys(policy.conditions).length > 0;

/** Expects that the verdict depends on each of these policies, and on no other. */
function expectHanging(
  dependsOn: readonly CompiledPolicy[],
  verdictOf: (world: RandomWorld) => string,
  world: RandomWorld,
): void {
  const [denies, allows] = ['deny', 'allow'].map((effect) =>
    dependsOn.filter((policy) => policy.effect === effect).map(nameOf),
  );
  const without = (names: readonly string[] = []) => withoutPolicies(world, (policy) => names.includes(policy.name));
  expect(verdictOf(without(denies))).toBe(allows?.length === 0 ? 'allow' : 'conditional');
  if (allows !== undefined && allows.length > 0) expect(verdictOf(without(allows))).toBe('deny');
  for (const name of allows?.length === 0 ? (denies ?? []) : []) {
    expect(verdictOf(without(denies?.filter((other) => other !== name)))).toBe('conditional');
  }
}

const nameOf = (policy: CompiledPolicy): string => policy.name;

describe('effective access to a permission, for random tenants and policies', () => {
  const wheres = fc.constantFrom(['home', 'home'], ['home', 'home'], ['home', 'away'], ['home', 'frozen']);

  test('allow and deny equal the decision for every address; conditional names the policies that it depends on', () => {
    const seen = new Map<string, number>();
    fc.assert(
      fc.property(
        conditionalWorlds,
        principalArbitrary,
        wheres,
        abilityArbitrary,
        (world, random, [own = '', there = ''], ability) => {
          const principal = principalOf(random, own);
          const snapshot = snapshotIn(world, own, there);
          const { verdict, dependsOn, grants, allows } = evaluateAccess(ability, principal, snapshot);
          const decided = ADDRESSES.map((address) => isAllowed(ability, principal, snapshot, address));
          if (!decided.includes(false)) expect(verdict).not.toBe('deny');
          if (verdict === 'allow') expect(decided).not.toContain(false);
          if (verdict === 'deny') expect(decided).not.toContain(true);
          if (verdict === 'conditional') expect(dependsOn).not.toEqual([]);
          else expect(dependsOn).toEqual([]);
          if (verdict !== 'deny') expect([...grants, ...allows]).not.toEqual([]);
          if (principal.kind === 'api_key' && principal.owner === undefined) expect(allows).toEqual([]);
          if (verdict === 'conditional')
            expectHanging(
              dependsOn,
              (changed) => evaluateAccess(ability, principal, snapshotIn(changed, own, there)).verdict,
              world,
            );
          seen.set(verdict, (seen.get(verdict) ?? 0) + 1);
        },
      ),
      { numRuns: runs(2000) },
    );
    for (const verdict of ['allow', 'conditional', 'deny'])
      expect(seen.get(verdict) ?? 0, verdict).toBeGreaterThanOrEqual(enough(25));
  });

  test('without conditions, it is never conditional, and equals the decision', () => {
    fc.assert(
      fc.property(
        worldArbitrary,
        principalArbitrary,
        wheres,
        abilityArbitrary,
        (world, random, [own = '', there = ''], ability) => {
          const principal = principalOf(random, own);
          const snapshot = snapshotIn(withoutPolicies(world, isConditional), own, there);
          const { verdict } = evaluateAccess(ability, principal, snapshot);
          expect(verdict).toBe(isAllowed(ability, principal, snapshot, undefined) ? 'allow' : 'deny');
        },
      ),
      { numRuns: runs(500) },
    );
  });

  test('a principal that is not denied has one of the roles that suffice', () => {
    let narrowed = 0;
    fc.assert(
      fc.property(conditionalWorlds, principalArbitrary, abilityArbitrary, (world, random, ability) => {
        const snapshot = snapshotIn(world, 'home', 'home');
        const tenantId = must(snapshot.own?.id, 'home');
        const suffices = rolesThatSuffice(ability, snapshot, (roles) => person(roles, tenantId));
        const { verdict } = evaluateAccess(ability, person(random.roles, tenantId), snapshot);
        if (suffices === 'any') return;
        narrowed++;
        if (verdict !== 'deny') expect(random.roles.filter((role) => suffices.includes(role))).not.toEqual([]);
      }),
      { numRuns: runs(1000) },
    );
    expect(narrowed).toBeGreaterThanOrEqual(enough(250));
  });
});

test('with more roles times policies than one question compares, every user is a candidate', () => {
  const names = Array.from({ length: 250 }, (_, i) => `r${i}`);
  const policies = names.map(
    (name): PolicyRecord => ({
      name: must(parsePolicyName(name), name),
      effect: 'allow',
      actions: ['chat:write'],
      resources: ['*'],
      conditions: {},
      appliesTo: 'roles',
      attachedRoles: [roleName(name)],
      enabled: true,
    }),
  );
  const ability: Ability = { permissions: [permissionOf('chat:write')], resources: [] };
  const suffices = (of: readonly PolicyRecord[]) => {
    const id = must(parseTenantId('acme'), 'acme');
    const own = compileTenant({ id, status: 'active', settings: {}, quotas: {}, roles: [], policies: of });
    const snapshot = { own, effective: own, global: compilePolicies([]), builtinRoles };
    return rolesThatSuffice(ability, snapshot, (roles) => person(roles, id));
  };
  expect(suffices(policies.slice(0, 50))).toContain('r49');
  expect(suffices(policies)).toBe('any');
});

describe('the effective access of the users in the decision cases', () => {
  const compiled = compileWorld(loadCases().world);
  const verdictOf = (label: string, permission: string, resource?: string) => {
    const principal = userPrincipal(compiled.world, label);
    const snapshot = must(snapshotOf(compiled, { kind: 'proved', principal }, undefined), 'snapshot');
    const resources: readonly Resource[] = resource === undefined ? [] : [must(parseResource(resource), resource)];
    const { verdict, dependsOn } = evaluateAccess(
      { permissions: [permissionOf(permission)], resources },
      principal,
      snapshot,
    );
    return [verdict, ...dependsOn.map((policy) => policy.name)].join(' ');
  };

  test.each([
    ['ada', 'chat:write', undefined, 'conditional no-banned-nets'],
    ['ada', 'agents:run', 'agents/a', 'conditional no-banned-nets office-only-agents'],
    ['ada', 'embeddings:write', undefined, 'conditional no-banned-nets workdays'],
    ['ada', 'models:read', undefined, 'deny'],
    ['ada', 'rag:read', 'collections/secret-x', 'deny'],
    ['ada', 'rag:read', 'collections/', 'deny'],
    ['ada', 'rag:read', undefined, 'conditional no-banned-nets'],
    ['sma', 'chat:write', 'models/phi-3', 'conditional no-banned-nets'],
    ['sma', 'chat:write', 'models/gpt', 'deny'],
    ['sma', 'chat:write', 'models/', 'deny'],
    ['sma', 'chat:write', undefined, 'conditional no-banned-nets'],
    ['gus', 'models:read', undefined, 'conditional no-banned-nets guests-may-list-models'],
    ['gus', 'chat:write', 'models/phi-3', 'conditional no-banned-nets'],
    ['gus', 'chat:write', undefined, 'deny'],
    ['nos', 'rag:read', undefined, 'deny'],
    ['tad', 'admin:users', undefined, 'conditional no-banned-nets'],
    ['tad', 'admin:tenants', undefined, 'deny'],
    ['none', 'chat:write', undefined, 'deny'],
    ['fro', 'chat:write', undefined, 'deny'],
  ])('%s, %s on %s: %s', (label, permission, resource, verdict) => {
    expect(verdictOf(label, permission, resource)).toBe(verdict);
  });
});

test("the access of a platform administrator depends on global policies only when it manages a tenant, and on the tenant's as well when it uses it", () => {
  const [home, away] = ['home', 'away'].map((id) => must(parseTenantId(id), id));
  const deny = (text: string): PolicyRecord => ({
    name: must(parsePolicyName(text), text),
    effect: 'deny',
    actions: ['*'],
    resources: ['*'],
    conditions: { ip_address: { in: ['10.0.0.0/8'] } },
    appliesTo: 'everyone',
    attachedRoles: [],
    enabled: true,
  });
  const view = (id: TenantId) =>
    compileTenant({ id, status: 'active', settings: {}, quotas: {}, roles: [], policies: [deny('of-tenant')] });
  const snapshot = {
    own: view(must(home, 'home')),
    effective: view(must(away, 'away')),
    global: compilePolicies([deny('of-all')]),
    builtinRoles,
  };
  const root = person([ADMIN], must(home, 'home'));
  const dependsOn = (permission: string) =>
    evaluateAccess({ permissions: [permissionOf(permission)], resources: [] }, root, snapshot).dependsOn.map(nameOf);
  expect(dependsOn('admin:users')).toEqual(['of-all']);
  expect(dependsOn('chat:write')).toEqual(['of-all', 'of-tenant']);
});

describe('a resource in a request for effective access', () => {
  test.each(['models', 'models1', '/x', 'model/x', 'models/*', 'models/a*', '*', '', 'MODELS/x'])(
    'is not %s',
    (text) => {
      expect(parseResource(text)).toBeUndefined();
    },
  );

  test('is a kind and a name, which may have slashes; an empty name means an unknown name', () => {
    expect(parseResource('models/meta/llama-3')).toEqual({ kind: 'models', name: 'meta/llama-3' });
    expect(parseResource('agents/')).toEqual({ kind: 'agents', name: undefined });
  });
});
