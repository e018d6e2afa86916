import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { compileGrant, compilePolicies, compileTenant } from '../../src/decision/compile.ts';
import { compileConditions, conditionInputs, conditionsHold } from '../../src/decision/conditions.ts';
import {
  added,
  addedByPolicy,
  firstMissing,
  NO_PERMISSIONS,
  permissionsOfCaller,
  permissionsOfGrant,
  permissionsOfKey,
  permissionsOfPolicy,
  permissionsOfRole,
  permissionsOfUser,
} from '../../src/decision/escalation.ts';
import { grantCoversPermission, grantCoversResources } from '../../src/decision/grants.ts';
import { ruleWork } from '../../src/decision/limits.ts';
import type { Principal, Resource, TenantView } from '../../src/decision/model.ts';
import { compilePatterns, permissionOf } from '../../src/decision/permissions.ts';
import { makeId, parsePolicyName, parseTenantId } from '../../src/domain/ids.ts';
import type { PolicyRecord, ResourceConstraints, RoleRecord } from '../../src/domain/records.ts';
import { builtinRoles } from '../support/builtin-roles.ts';
import { runs } from '../support/properties.ts';
import { must, roleName } from '../support/world.ts';

const ACME = must(parseTenantId('acme'), 'acme');

function view(roles: RoleRecord[] = [], policies: PolicyRecord[] = []) {
  return compileTenant({ id: ACME, status: 'active', settings: {}, quotas: {}, roles, policies });
}

function role(name: string, permissions: string[], constraints: ResourceConstraints = {}): RoleRecord {
  return { name: roleName(name), permissions, constraints };
}

function allow(name: string, actions: string[], parts: Partial<PolicyRecord> = {}): PolicyRecord {
  return {
    name: must(parsePolicyName(name), name),
    effect: 'allow',
    actions,
    resources: ['*'],
    conditions: {},
    appliesTo: 'everyone',
    attachedRoles: [],
    enabled: true,
    ...parts,
  };
}

function user(...roles: string[]): Principal {
  const names = roles.map(roleName);
  const id = makeId('usr', 0, new Uint8Array(10));
  return {
    kind: 'user',
    id,
    tenantId: ACME,
    roles: names,
    platformAdmin: roles.includes('admin'),
    sessionId: undefined,
  };
}

function key(scopes: string[], constraints: ResourceConstraints = {}, ...ownerRoles: string[]): Principal {
  const owner =
    ownerRoles.length === 0 ? undefined : { id: makeId('usr', 0, new Uint8Array(10)), roles: ownerRoles.map(roleName) };
  const id = makeId('key', 0, new Uint8Array(10));
  return {
    kind: 'api_key',
    id,
    tenantId: ACME,
    grant: compileGrant(scopes, constraints),
    owner,
    rateLimitRpm: undefined,
  };
}

const none = compilePolicies([]);
const rules = (own: TenantView) => ({ own, global: none, builtinRoles });
const callerOf = (principal: Principal, own = view()) => permissionsOfCaller(principal, rules(own));

describe('giving', () => {
  test('a permission that one held pattern contains is held, and one that only several patterns together cover is not', () => {
    const tad = callerOf(user('tenant-admin'));
    expect(
      firstMissing(tad, permissionsOfGrant(['chat:write', 'rag:*', 'audit:read', 'secrets:read'], {})),
    ).toBeUndefined();
    expect(firstMissing(tad, permissionsOfGrant(['*:*'], {}))).toBe('*:*');
    expect(firstMissing(tad, permissionsOfGrant(['chat:write', 'secrets:write'], {}))).toBe('secrets:write');
    const both = callerOf(user('a', 'b'), view([role('a', ['chat:read']), role('b', ['chat:write'])]));
    expect(firstMissing(both, permissionsOfGrant(['chat:*'], {}))).toBe('chat:*');
  });

  test('a narrower constraint holds less', () => {
    const narrow = callerOf(user('phi'), view([role('phi', ['chat:*'], { models: ['phi-*', 'x'] })]));
    expect(
      firstMissing(narrow, permissionsOfGrant(['chat:write'], { models: ['phi-4', 'phi-*-mini'] })),
    ).toBeUndefined();
    expect(firstMissing(narrow, permissionsOfGrant(['chat:write'], { models: [] }))).toBeUndefined();
    expect(firstMissing(narrow, permissionsOfGrant(['chat:write'], { models: ['phi-4', 'llama'] }))).toBe('chat:write');
    expect(firstMissing(narrow, permissionsOfGrant(['chat:write'], { models: ['*'] }))).toBe('chat:write');
    expect(firstMissing(narrow, permissionsOfGrant(['chat:write'], {}))).toBe('chat:write');
    expect(firstMissing(narrow, permissionsOfGrant(['chat:write'], { collections: ['a'] }))).toBe('chat:write');
  });

  test('a constraint of * is none', () => {
    const all = callerOf(user('a'), view([role('a', ['chat:*'], { models: ['*'] })]));
    expect(firstMissing(all, permissionsOfGrant(['chat:write'], {}))).toBeUndefined();
  });

  test('only platform administrators can give the role admin', () => {
    const everything = callerOf(user('all'), view([role('all', ['*'])]));
    expect(firstMissing(everything, permissionsOfGrant(['*'], {}))).toBeUndefined();
    expect(firstMissing(everything, permissionsOfRole(roleName('admin'), rules(view())))).toBe('admin');
    expect(firstMissing(callerOf(user('admin')), permissionsOfRole(roleName('admin'), rules(view())))).toBeUndefined();
    expect(firstMissing(callerOf(key(['*'], {}, 'admin')), permissionsOfRole(roleName('admin'), rules(view())))).toBe(
      'admin',
    );
  });

  test('a narrowed session holds the permissions that both its scope and its principal have', () => {
    const narrow = (scope: string[], principal: Principal) => callerOf({ ...principal, scope: compilePatterns(scope) });
    for (const principal of [user('tenant-admin'), key(['*'], {}, 'tenant-admin'), key(['chat:*', 'audit:*'])]) {
      const caller = narrow(['chat:write', 'audit:*', 'secrets:write'], principal);
      expect(firstMissing(caller, permissionsOfGrant(['chat:write', 'audit:read'], {}))).toBeUndefined();
      expect(firstMissing(caller, permissionsOfGrant(['chat:read'], {}))).toBe('chat:read');
      expect(firstMissing(caller, permissionsOfGrant(['secrets:write'], {}))).toBe('secrets:write');
      expect(firstMissing(callerOf(principal), permissionsOfGrant(['chat:read'], {}))).toBeUndefined();
    }
    const limits = narrow(['*:write'], user('phi'));
    expect(firstMissing(limits, permissionsOfGrant(['chat:write'], {}))).toBe('chat:write');
  });

  test("the caller's unconditional allow policies count, its conditional ones do not", () => {
    const own = view(
      [],
      [allow('a', ['models:read']), allow('b', ['rag:read'], { conditions: { ip_address: { in: ['10.0.0.0/8'] } } })],
    );
    expect(firstMissing(callerOf(user(), own), permissionsOfGrant(['models:read'], {}))).toBeUndefined();
    expect(firstMissing(callerOf(user(), own), permissionsOfGrant(['rag:read'], {}))).toBe('rag:read');
  });

  test('an allow policy on resources gives permissions on these resources, and no role', () => {
    const phi = allow('a', ['chat:write'], { resources: ['models/phi-*'] });
    const caller = callerOf(user(), view([], [phi]));
    expect(
      firstMissing(caller, permissionsOfPolicy(allow('b', ['chat:write'], { resources: ['models/phi-4'] }))),
    ).toBeUndefined();
    expect(
      firstMissing(caller, permissionsOfPolicy(allow('b', ['chat:write'], { resources: ['collections/x'] }))),
    ).toBe('chat:write');
    expect(firstMissing(caller, permissionsOfPolicy(allow('b', ['chat:write'])))).toBe('chat:write');
    expect(firstMissing(caller, permissionsOfGrant(['chat:write'], { models: ['phi-4'] }))).toBe('chat:write');
    // Narrowed as far in every kind, a role still reaches requests without resources, which the policy does not.
    const asNarrow = { models: ['phi-4'], collections: [], agents: [] };
    expect(firstMissing(caller, permissionsOfGrant(['chat:write'], asNarrow))).toBe('chat:write');
  });

  test('a role carries its attached allow policies, the conditional ones too', () => {
    const attached = allow('a', ['secrets:read'], {
      appliesTo: 'roles',
      attachedRoles: [roleName('guest')],
      conditions: { day_of_week: { in: ['Mon'] } },
    });
    const own = view([role('guest', [])], [attached]);
    const power = permissionsOfRole(roleName('guest'), rules(own));
    expect(firstMissing(callerOf(user('developer'), own), power)).toBe('secrets:read');
    expect(firstMissing(callerOf(user('admin'), own), power)).toBeUndefined();
  });

  test('a deny gives nothing, nor does a disabled allow', () => {
    expect(permissionsOfPolicy(allow('a', ['*'], { effect: 'deny' }))).toEqual(NO_PERMISSIONS);
    expect(permissionsOfPolicy(allow('a', ['*'], { enabled: false }))).toEqual(NO_PERMISSIONS);
  });
});

describe('changing', () => {
  test('counts what is added', () => {
    const before = permissionsOfGrant(['secrets:*', 'chat:*'], {});
    const narrower = permissionsOfGrant(['secrets:read', 'rag:read'], {});
    expect(added(narrower, before).permissions.map((one) => one.pattern)).toEqual(['rag:read']);
  });

  test('a policy with the same conditions and principals adds only new actions and resources', () => {
    const before = allow('a', ['secrets:*'], { resources: ['models/a'] });
    expect(addedByPolicy(before, { ...before, actions: ['secrets:read'] }).permissions).toEqual([]);
    expect(addedByPolicy(before, { ...before, resources: ['models/a', 'models/b'] }).permissions).toHaveLength(1);
  });

  test('a policy with other conditions or more principals adds all of its permissions', () => {
    const before = allow('a', ['secrets:*'], {
      appliesTo: 'roles',
      attachedRoles: [roleName('one')],
      conditions: { day_of_week: { in: ['Mon'] } },
    });
    expect(addedByPolicy(before, { ...before, attachedRoles: [] }).permissions).toEqual([]);
    expect(
      addedByPolicy(before, { ...before, attachedRoles: [roleName('one'), roleName('two')] }).permissions,
    ).toHaveLength(1);
    expect(addedByPolicy(before, { ...before, appliesTo: 'everyone', attachedRoles: [] }).permissions).toHaveLength(1);
    expect(addedByPolicy(before, { ...before, conditions: {} }).permissions).toHaveLength(1);
    // A condition that this version cannot read is a circumstance as well.
    const newer = { ...before, conditions: { ...before.conditions, moon_phase: { in: ['full'] } } };
    expect(addedByPolicy(newer, before).permissions).toHaveLength(1);
    expect(
      addedByPolicy(newer, { ...newer, conditions: { moon_phase: { in: ['full'] }, ...before.conditions } })
        .permissions,
    ).toEqual([]);
    expect(addedByPolicy({ ...before, enabled: false }, before).permissions).toHaveLength(1);
    expect(addedByPolicy({ ...before, effect: 'deny' }, before).permissions).toHaveLength(1);
    expect(addedByPolicy(before, { ...before, enabled: false }).permissions).toEqual([]);
  });

  test('further conditions on a policy add none of its permissions, and changed ones add all', () => {
    const network = { ip_address: { in: ['10.0.0.0/8'] } };
    const night = { time: { between: ['22:00', '06:00'] } };
    const unread = { moon_phase: { in: ['full'] } };
    const addedPatterns = (before: object, after: object) =>
      addedByPolicy(
        allow('a', ['secrets:*'], { conditions: { ...before } }),
        allow('a', ['secrets:*'], { conditions: { ...after } }),
      ).permissions.map(({ pattern }) => pattern);
    for (const [before, after] of [
      [{}, network],
      [{}, { ...night, timezone: 'Europe/Berlin' }],
      [{ timezone: 'Europe/Berlin' }, night],
      [network, { ...night, ...network, timezone: 'Europe/Berlin' }],
      [network, { ip_address: { not_in: ['10.1.0.0/16'], ...network.ip_address } }],
      [
        { ...night, timezone: 'Europe/Berlin' },
        { ...night, ...network, timezone: 'europe/berlin' },
      ],
    ] as const)
      expect([before, after, addedPatterns(before, after)]).toEqual([before, after, []]);
    for (const [before, after] of [
      [network, {}],
      [network, night],
      [network, { ip_address: { in: ['10.0.0.0/8', '11.0.0.0/8'] } }],
      [network, { ip_address: { not_in: ['10.0.0.0/8'] } }],
      [night, { ...night, timezone: 'Europe/Berlin' }],
      [
        { ...night, timezone: 'Europe/Berlin' },
        { ...night, ...network },
      ],
      [
        { ...network, timezone: 'Mars/Olympus' },
        { ...network, ...night },
      ],
      [
        { ...network, ...unread },
        { ...network, ...unread, ...night },
      ],
    ] as const)
      expect([before, after, addedPatterns(before, after)]).toEqual([before, after, ['secrets:*']]);
  });

  test('a policy whose changed conditions add nothing holds at no further time', () => {
    const part = <T>(...values: T[]) => fc.option(fc.constantFrom(...values), { nil: undefined, freq: 1 });
    const operators = (first: string, second: string, ...values: string[][]) =>
      fc.option(
        fc.dictionary(fc.constantFrom(first, second), fc.constantFrom(...values), {
          minKeys: 1,
          noNullPrototype: true,
        }),
        { nil: undefined, freq: 1 },
      );
    const conditions = fc
      .record({
        ip_address: operators('in', 'not_in', ['10.0.0.0/8'], ['10.1.0.0/16', '11.0.0.0/8']),
        time: operators('between', 'not_between', ['08:00', '18:00'], ['22:00', '06:00']),
        day_of_week: operators('in', 'not_in', ['Mon'], ['Mon', 'Sun']),
        timezone: part('UTC', 'Asia/Kolkata', 'Mars/Olympus'),
        moon_phase: part(undefined, undefined, undefined, { in: ['full'] }),
      })
      .map((all) => Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)));
    const times = Array.from({ length: 56 }, (_, i) => i * 3 * 3_600_000);
    let narrower = 0;
    fc.assert(
      fc.property(conditions, conditions, fc.boolean(), (one, other, isMore) => {
        const next = isMore ? { ...one, ...other } : other;
        const policy = allow('a', ['chat:*'], { conditions: one });
        if (addedByPolicy(policy, { ...policy, conditions: next }).permissions.length > 0) return;
        narrower += 1;
        for (const address of ['10.0.0.1', '10.1.0.1', '11.0.0.1', '::1', undefined])
          for (const time of times) {
            const holds = (stored: object) =>
              conditionsHold(compileConditions({ ...stored }), 'allow', conditionInputs(time, address, undefined));
            if (holds(next)) expect([one, next, address, time, holds(one)]).toEqual([one, next, address, time, true]);
          }
      }),
      { numRuns: runs(300) },
    );
    expect(narrower).toBeGreaterThan(10);
  });
});

describe('an action on a user or a key', () => {
  test('is rejected if the target has a permission that the caller lacks, also by a conditional policy', () => {
    const office = allow('a', ['secrets:read'], {
      appliesTo: 'roles',
      attachedRoles: [roleName('guest')],
      conditions: { ip_address: { in: ['10.0.0.0/8'] } },
    });
    const own = view([role('guest', [])], [office]);
    const tad = callerOf(user('tenant-admin'), view());
    expect(firstMissing(tad, permissionsOfUser([roleName('developer')], rules(own)))).toBeUndefined();
    expect(firstMissing(callerOf(user('developer'), own), permissionsOfUser([roleName('guest')], rules(own)))).toBe(
      'secrets:read',
    );
    expect(firstMissing(tad, permissionsOfUser([roleName('admin')], rules(own)))).toBe('admin');
  });

  test("a key is worth its scopes within its owner's", () => {
    const own = view();
    const grant = compileGrant(['chat:*', 'models:*'], {});
    const dev = callerOf(user('developer'));
    expect(firstMissing(dev, permissionsOfKey(grant, undefined, rules(own)))).toBe('models:*');
    expect(firstMissing(dev, permissionsOfKey(grant, [roleName('developer')], rules(own)))).toBeUndefined();
  });

  test("a key holds its scopes within its owner's, under the constraints of both", () => {
    const own = view([role('phi', ['chat:*'], { models: ['phi-*'] })]);
    const caller = callerOf(key(['*:write'], { models: ['phi-4', 'llama'] }, 'phi'), own);
    expect(firstMissing(caller, permissionsOfGrant(['chat:write'], { models: ['phi-4'] }))).toBeUndefined();
    expect(firstMissing(caller, permissionsOfGrant(['chat:write'], { models: ['llama'] }))).toBe('chat:write');
    expect(firstMissing(caller, permissionsOfGrant(['chat:write'], { models: ['phi-5'] }))).toBe('chat:write');
    expect(firstMissing(caller, permissionsOfGrant(['chat:read'], { models: ['phi-4'] }))).toBe('chat:read');
  });
});

describe('holding', () => {
  const list = fc.option(fc.uniqueArray(fc.constantFrom('*', 'a', 'a*', '*b', 'ab', 'b'), { maxLength: 3 }), {
    nil: undefined,
  });
  const constraints = fc.record({ models: list, collections: list }).map(
    ({ models, collections }): ResourceConstraints => ({
      ...(models && { models }),
      ...(collections && { collections }),
    }),
  );
  const patterns = fc.uniqueArray(fc.constantFrom('*', 'chat:*', '*:read', 'chat:read', 'rag:read', 'rag:*'), {
    maxLength: 2,
  });
  const requests = ['chat:read', 'chat:write', 'rag:read', 'x:y'].flatMap((permission) =>
    [[], ['a'], ['b'], ['ab'], ['axb'], ['c'], [undefined]].flatMap((models) =>
      [[], ['a'], ['xb'], [undefined]].map((collections) => ({
        permission: permissionOf(permission),
        resources: [
          ...models.map((name): Resource => ({ kind: 'models', name })),
          ...collections.map((name): Resource => ({ kind: 'collections', name })),
        ],
      })),
    ),
  );

  test('a principal that has every permission of a grant can do everything that the grant permits', () => {
    fc.assert(
      fc.property(patterns, constraints, patterns, constraints, (held, heldUnder, given, givenUnder) => {
        if (firstMissing(permissionsOfGrant(held, heldUnder), permissionsOfGrant(given, givenUnder)) !== undefined)
          return;
        const [holder, receiver] = [compileGrant(held, heldUnder), compileGrant(given, givenUnder)];
        for (const { permission, resources } of requests) {
          const can = (grant: typeof holder) =>
            grantCoversPermission(grant, [permission]) && grantCoversResources(grant, resources, ruleWork());
          if (can(receiver))
            expect([permission.text, resources, can(holder)]).toEqual([permission.text, resources, true]);
        }
      }),
      { numRuns: runs(2000) },
    );
  });
});

test('the names of two rules are compared once, for any number of patterns and of their repeats', () => {
  const patterns = (each: (i: number) => string) => Array.from({ length: 50 }, (_, i) => each(i));
  const before = { models: [...patterns((i) => `m${i}*z`), 'q*'] };
  const after = { models: [...patterns((i) => `qm${i}*z`), 'zz'] };
  const search = vi.spyOn(String.prototype, 'startsWith');
  try {
    for (const each of [(i: number) => `chat:a${i}`, () => 'chat:write']) {
      search.mockClear();
      const given = permissionsOfGrant(patterns(each), after);
      expect(added(given, permissionsOfGrant(patterns(each), before)).permissions).toEqual(given.permissions);
      expect(search.mock.calls.length).toBeGreaterThan(0);
      expect(search.mock.calls.length).toBeLessThanOrEqual(51 * 51);
    }
  } finally {
    search.mockRestore();
  }
});

test('permissions whose names are too many to compare count as added, so that a change is refused', () => {
  const limited = (n: number) => permissionsOfGrant([`chat:a${n}`], { models: [`a${n}-*`, `b${n}-*`] });
  const merged = (sets: readonly ReturnType<typeof limited>[]) => ({
    platformAdmin: false,
    permissions: sets.flatMap(({ permissions }) => permissions),
  });
  const ten = Array.from({ length: 10 }, (_, n) => n);
  const [given, held] = [merged(ten.map(limited)), merged(ten.map(limited))];
  expect(added(given, held, { left: 20 }).permissions.map(({ pattern }) => pattern)).toEqual(
    ten.slice(5).map((n) => `chat:a${n}`),
  );
  expect(added(given, held).permissions).toEqual([]);
});
