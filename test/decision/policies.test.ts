import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compilePolicies } from '../../src/decision/compile.ts';
import { conditionInputs } from '../../src/decision/conditions.ts';
import { ruleWork } from '../../src/decision/limits.ts';
import type { Resource } from '../../src/decision/model.ts';
import { permissionOf } from '../../src/decision/permissions.ts';
import { allowing, denying, type PolicyQuery, parseResourcePattern } from '../../src/decision/policies.ts';
import { parsePolicyName } from '../../src/domain/ids.ts';
import type { PolicyRecord } from '../../src/domain/records.ts';
import { runs } from '../support/properties.ts';
import { must, roleName } from '../support/world.ts';

function policy(name: string, parts: Partial<PolicyRecord> = {}): PolicyRecord {
  return {
    name: must(parsePolicyName(name), name),
    effect: 'deny',
    actions: ['*'],
    resources: ['*'],
    conditions: {},
    appliesTo: 'everyone',
    attachedRoles: [],
    enabled: true,
    ...parts,
  };
}

function query(
  parts: { permissions?: readonly string[]; resources?: Resource[]; roles?: string[]; inOwnTenant?: boolean } = {},
): PolicyQuery {
  return {
    permissions: (parts.permissions ?? ['chat:write']).map(permissionOf),
    resources: parts.resources ?? [],
    roles: (parts.roles ?? []).map(roleName),
    inOwnTenant: parts.inOwnTenant ?? true,
    now: conditionInputs(0, undefined, undefined),
    work: ruleWork(),
  };
}

function denier(records: PolicyRecord[], asked: PolicyQuery): string | undefined {
  return denying(compilePolicies(records), asked)?.name;
}

const model = (name: string | undefined): Resource => ({ kind: 'models', name });

describe('which deny is reported', () => {
  test('is the first by name', () => {
    expect(denier([policy('b'), policy('a'), policy('c')], query())).toBe('a');
  });

  test('is the same in a long list as in a short one', () => {
    const actions = ['*', 'chat:*', 'chat:write', '*:write', 'rag:*', '*:read', 'models:read'];
    const list = fc.array(
      fc.record({
        name: fc.integer({ min: 0, max: 200 }),
        actions: fc.uniqueArray(fc.constantFrom(...actions), { maxLength: 3 }),
      }),
      { minLength: 17, maxLength: 60 },
    );
    const asked = fc.constantFrom(['chat:write'], ['rag:query', 'rag:read'], ['models:read'], ['agents:run']);
    fc.assert(
      fc.property(list, asked, asked, (drawn, ...permissions) => {
        const records = drawn.map((one) => policy(`p${one.name}`, { actions: one.actions }));
        const long = compilePolicies(records);
        for (const one of [...permissions, ...permissions]) {
          const short = records
            .filter((record) => denier([record], query({ permissions: one })) !== undefined)
            .map((record) => record.name);
          expect(denying(long, query({ permissions: one }))?.name).toBe(short.toSorted()[0]);
        }
      }),
      { numRuns: runs(300) },
    );
  });

  test('is found without reading 20,000 policies of other actions', () => {
    const conditions = { time: { between: ['00:00', '23:59'] } } as const;
    const others = Array.from({ length: 20_000 }, (_, i) =>
      policy(`o${i}`, { actions: [`other${i % 100}:read`], conditions }),
    );
    const set = compilePolicies([...others, policy('z', { actions: ['chat:*'] })]);
    expect(denying(set, query())?.name).toBe('z');
    expect(set.denies.index?.picked.get('chat:write')?.map((one) => one.name)).toEqual(['z']);
  });
});

describe('the principals that a policy applies to', () => {
  test('a disabled policy applies to no principal', () => {
    expect(denier([policy('a', { enabled: false })], query())).toBeUndefined();
  });

  test('a policy for roles applies to principals with one of its roles, and to no principal if it has no roles', () => {
    const attached = policy('a', { appliesTo: 'roles', attachedRoles: [roleName('developer'), roleName('mine')] });
    expect(denier([attached], query({ roles: ['mine'] }))).toBe('a');
    expect(denier([attached], query({ roles: ['other'] }))).toBeUndefined();
    expect(denier([policy('a', { appliesTo: 'roles' })], query({ roles: ['mine'] }))).toBeUndefined();
  });

  test('in another tenant, a custom role does not match the role of that name there, and a built-in role does', () => {
    const attached = policy('a', { appliesTo: 'roles', attachedRoles: [roleName('admin'), roleName('mine')] });
    expect(denier([attached], query({ roles: ['mine'], inOwnTenant: false }))).toBeUndefined();
    expect(denier([attached], query({ roles: ['admin'], inOwnTenant: false }))).toBe('a');
  });
});

describe('the requests that a policy applies to', () => {
  const narrow = (effect: 'allow' | 'deny', ...resources: string[]) =>
    compilePolicies([policy('a', { effect, resources, appliesTo: 'everyone' })]);

  test('a deny applies if any resource of the request matches, an allow if all match', () => {
    const asked = query({ resources: [model('phi-4'), model('llama')] });
    expect(denying(narrow('deny', 'models/phi-*'), asked)).toBeDefined();
    expect(allowing(narrow('allow', 'models/phi-*'), asked)).toBeUndefined();
    expect(allowing(narrow('allow', 'models/phi-*', 'models/llama'), asked)).toBeDefined();
  });

  test('a request without resources matches * only', () => {
    for (const effect of ['allow', 'deny'] as const) {
      const find = effect === 'deny' ? denying : allowing;
      expect(find(narrow(effect, 'models/*'), query())).toBeUndefined();
      expect(find(narrow(effect, '*'), query())).toBeDefined();
    }
  });

  test('an unnamed resource matches a deny of its kind, and an allow of * only', () => {
    const asked = query({ resources: [model(undefined)] });
    expect(denying(narrow('deny', 'models/secret'), asked)).toBeDefined();
    expect(denying(narrow('deny', 'collections/*'), asked)).toBeUndefined();
    expect(allowing(narrow('allow', 'models/*'), asked)).toBeUndefined();
    expect(allowing(narrow('allow', '*'), asked)).toBeDefined();
  });

  test('a deny on either of two permissions applies', () => {
    expect(denier([policy('a', { actions: ['rag:read'] })], query({ permissions: ['rag:query', 'rag:read'] }))).toBe(
      'a',
    );
  });

  test('a stored resource that cannot be read matches every request in a deny, and no request in an allow', () => {
    expect(denier([policy('a', { actions: ['cha*:read'] })], query())).toBe('a');
    expect(denying(narrow('deny', 'planets/mars'), query())).toBeDefined();
    expect(allowing(narrow('allow', 'planets/mars'), query({ resources: [model('m')] }))).toBeUndefined();
  });

  test('a resource pattern is a known kind and a glob', () => {
    expect(parseResourcePattern('models/meta/*')).toEqual({ kind: 'models', glob: 'meta/*' });
    for (const text of ['models/', 'models', '/x', 'planets/x', '']) expect(parseResourcePattern(text)).toBeUndefined();
  });
});
