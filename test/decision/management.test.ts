import { describe, expect, test } from 'vitest';
import { compileGrant, compilePolicies, compileTenant } from '../../src/decision/compile.ts';
import { decideManagement } from '../../src/decision/management.ts';
import { type HeaderValue, type Principal, REPEATED, type Snapshot } from '../../src/decision/model.ts';
import { effectiveTenant } from '../../src/decision/tenant.ts';
import { makeId, parsePolicyName, parseTenantId } from '../../src/domain/ids.ts';
import type { PolicyRecord, TenantRecord } from '../../src/domain/records.ts';
import { builtinRoles } from '../support/builtin-roles.ts';
import { must, roleName } from '../support/world.ts';

const tenantId = (id: string) => must(parseTenantId(id), id);

function user(tenant: string, ...roles: string[]): Principal {
  const names = roles.map(roleName);
  return {
    kind: 'user',
    id: makeId('usr', 0, new Uint8Array(10)),
    tenantId: tenantId(tenant),
    roles: names,
    platformAdmin: roles.includes('admin'),
    sessionId: undefined,
  };
}

function key(scopes: string[], ...ownerRoles: string[]): Principal {
  const owner =
    ownerRoles.length === 0 ? undefined : { id: makeId('usr', 0, new Uint8Array(10)), roles: ownerRoles.map(roleName) };
  const id = makeId('key', 0, new Uint8Array(10));
  return {
    kind: 'api_key',
    id,
    tenantId: tenantId('acme'),
    grant: compileGrant(scopes, {}),
    owner,
    rateLimitRpm: undefined,
  };
}

function deny(name: string, ...actions: string[]): PolicyRecord {
  return {
    name: must(parsePolicyName(name), name),
    effect: 'deny',
    actions,
    resources: ['*'],
    conditions: {},
    appliesTo: 'everyone',
    attachedRoles: [],
    enabled: true,
  };
}

interface Scene {
  readonly acme?: Partial<TenantRecord>;
  readonly platform?: Partial<TenantRecord>;
  readonly global?: PolicyRecord[];
}

function ask(principal: Principal, permission: string, scene: Scene = {}, self = false, effective = 'acme'): string {
  const view = (id: string, parts: Partial<TenantRecord> = {}) =>
    compileTenant({ id: tenantId(id), status: 'active', settings: {}, quotas: {}, roles: [], policies: [], ...parts });
  const tenants = [view('acme', scene.acme), view('default', scene.platform)];
  const snapshot: Snapshot = {
    own: tenants.find((tenant) => tenant.id === principal.tenantId),
    effective: tenants.find((tenant) => tenant.id === effective),
    global: compilePolicies(scene.global ?? []),
    builtinRoles,
  };
  const decision = decideManagement({ permission, self, principal, snapshot, clientAddress: '10.0.0.1', nowMs: 0 });
  return decision.kind === 'allow' ? 'allow' : decision.code;
}

const root = user('default', 'admin');
const tad = user('acme', 'tenant-admin');
const nobody = user('acme');

describe('managing', () => {
  test('needs the permission of the endpoint', () => {
    expect(ask(tad, 'admin:users')).toBe('allow');
    expect(ask(user('acme', 'developer'), 'admin:users')).toBe('insufficient_permission');
    expect(ask(user('acme', 'auditor'), 'audit:read')).toBe('allow');
  });

  test('tenants is for platform administrators only, for any permissions of other callers', () => {
    expect(ask(root, 'admin:tenants')).toBe('allow');
    expect(ask(tad, 'admin:tenants')).toBe('insufficient_permission');
    expect(ask(key(['*']), 'admin:tenants')).toBe('insufficient_permission');
    const all = { name: roleName('all'), permissions: ['*', 'admin:tenants'], constraints: {} };
    expect(ask(user('acme', 'all'), 'admin:tenants', { acme: { roles: [all] } })).toBe('insufficient_permission');
    const gift = { ...deny('gift', '*'), effect: 'allow' as const };
    expect(ask(nobody, 'admin:tenants', { acme: { policies: [gift] } })).toBe('insufficient_permission');
    expect(ask(nobody, 'admin:users', { acme: { policies: [gift] } })).toBe('allow');
  });

  test("a key stays within its scopes and its owner's rights", () => {
    expect(ask(key(['admin:users']), 'admin:users')).toBe('allow');
    expect(ask(key(['admin:keys']), 'admin:users')).toBe('insufficient_permission');
    expect(ask(key(['admin:*'], 'developer'), 'admin:users')).toBe('insufficient_permission');
    expect(ask(key(['admin:*'], 'tenant-admin'), 'admin:users')).toBe('allow');
  });

  test("the caller's own resources need no grant, but a deny on the permission or on * applies", () => {
    expect(ask(nobody, 'admin:keys', {}, true)).toBe('allow');
    expect(ask(nobody, 'admin:keys', { acme: { policies: [deny('a', 'admin:*')] } }, true)).toBe('denied_by_policy');
    expect(ask(nobody, 'self', { acme: { policies: [deny('a', 'admin:*', '*:read')] } }, true)).toBe('allow');
    expect(ask(nobody, 'self', { acme: { policies: [deny('a', '*')] } }, true)).toBe('denied_by_policy');
  });

  test('constraints and policies on resources do not reach it', () => {
    const narrow = { name: roleName('narrow'), permissions: ['admin:users'], constraints: { models: [] } };
    const onModels = { ...deny('a', '*'), resources: ['models/*'] };
    expect(ask(user('acme', 'narrow'), 'admin:users', { acme: { roles: [narrow], policies: [onModels] } })).toBe(
      'allow',
    );
  });

  test('policies of a tenant do not apply to a platform administrator, and global policies do', () => {
    expect(ask(root, 'admin:policies', { acme: { policies: [deny('a', '*')] } })).toBe('allow');
    expect(ask(root, 'admin:policies', { platform: { policies: [deny('a', '*')] } }, false, 'default')).toBe('allow');
    expect(ask(root, 'admin:policies', { global: [deny('a', 'admin:*')] })).toBe('denied_by_policy');
    expect(ask(tad, 'admin:policies', { acme: { policies: [deny('a', '*')] } })).toBe('denied_by_policy');
  });

  test('a suspended tenant rejects its own users, and accepts platform administrators of another tenant', () => {
    const suspended = { status: 'suspended' } as const;
    expect(ask(tad, 'admin:users', { acme: suspended })).toBe('tenant_suspended');
    expect(ask(root, 'admin:users', { acme: suspended })).toBe('allow');
    expect(ask(root, 'admin:users', { platform: suspended })).toBe('tenant_suspended');
  });

  test('a tenant that does not exist, or is not the caller’s own, is a mismatch', () => {
    expect(ask(root, 'admin:users', {}, false, 'nowhere')).toBe('tenant_mismatch');
    expect(ask(tad, 'admin:users', {}, false, 'default')).toBe('tenant_mismatch');
  });
});

describe('the effective tenant', () => {
  const told = (principal: Principal, header: HeaderValue) => {
    const tenant = effectiveTenant(principal, header);
    return tenant.kind === 'tenant' ? tenant.id : tenant.code;
  };

  test('is the own one without a header', () => {
    expect(told(tad, undefined)).toBe('acme');
  });

  test.each<HeaderValue>(['', 'ACME', 'a_b', '-a', 'acme,acme', ' acme', 'a'.repeat(64), 'acme\n', REPEATED])(
    '%s is malformed',
    (header) => {
      expect(told(root, header)).toBe('invalid_tenant');
    },
  );

  test('is any tenant for platform administrators, and its own for every other user and every key', () => {
    expect(told(root, 'acme')).toBe('acme');
    expect(told(tad, 'acme')).toBe('acme');
    expect(told(tad, 'default')).toBe('tenant_mismatch');
    expect(told(key(['*'], 'admin'), 'default')).toBe('tenant_mismatch');
  });
});
