import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { inNetwork, parseAddress, parseNetwork } from '../../src/decision/address.ts';
import { effectiveRoles } from '../../src/decision/builtin-roles.ts';
import { minuteOfWeek } from '../../src/decision/clock.ts';
import { compilePolicies, compileTenant } from '../../src/decision/compile.ts';
import { decide } from '../../src/decision/decide.ts';
import { differenceInSteps, MAX_BOXES } from '../../src/decision/difference/difference.ts';
import type { Box, BoxRequest, Difference, ManagementAccess, NameRegion } from '../../src/decision/difference/model.ts';
import { decideManagement } from '../../src/decision/management.ts';
import type { CheckInput, Principal, Resource, Snapshot } from '../../src/decision/model.ts';
import type { Trace } from '../../src/decision/permitted.ts';
import { type Proposal, withProposal } from '../../src/decision/proposed.ts';
import { matchRoute } from '../../src/decision/routes.ts';
import { compileWeeklyHours, inWeeklyHours } from '../../src/decision/weekly-hours.ts';
import type { PolicyRecord, TenantSettings } from '../../src/domain/records.ts';
import { finish } from '../../src/domain/steps.ts';
import { builtinRoles } from '../support/builtin-roles.ts';
import { enough, runs } from '../support/properties.ts';
import { checkInput, roleName } from '../support/world.ts';
import { tableMatches } from './naive-glob.ts';
import {
  ADDRESSES,
  BUILTIN_TABLE,
  type ChangedRequest,
  policyNamed,
  type RuleChange,
  requests,
  routeNamed,
  ruleChanges,
  START_MS,
  TABLE,
  TENANT,
  userWith,
} from './rule-changes.ts';

const MANAGEMENT: readonly ManagementAccess[] = [
  { permission: 'admin:keys', self: false },
  { permission: 'admin:keys', self: true },
  { permission: 'admin:tenants', self: false },
  { permission: 'usage:read', self: false },
];

function differenceOf({ before, after, groups }: RuleChange, routes = TABLE): Difference {
  return finish(differenceInSteps({ before, after, groups, routes, management: MANAGEMENT, nowMs: START_MS }));
}

type Outcome = 'newlyAllowed' | 'newlyDenied' | 'same';

function outcomeOf(before: boolean, after: boolean): Outcome {
  if (before === after) return 'same';
  return after ? 'newlyAllowed' : 'newlyDenied';
}

function inNames({ sets, unnamed }: NameRegion, name: string | undefined): boolean {
  if (name === undefined) return unnamed;
  const matches = (pattern: string) => tableMatches(pattern, name);
  return sets.some(
    ({ patterns, except, also }) => patterns.some(matches) && also.every(matches) && !except.some(matches),
  );
}

function hasResources({ resources: regions }: Box, resources: readonly Resource[]): boolean {
  if (resources.some(({ kind }) => regions[kind] === undefined)) return false;
  return (['models', 'collections', 'agents'] as const).every((kind) => {
    const region = regions[kind];
    const names = resources.filter((one) => one.kind === kind).map(({ name }) => name);
    if (region === undefined || region === 'none') return names.length === 0;
    return (
      names.length > 0 &&
      names.every((name) => inNames(region.each, name)) &&
      region.some.every((some) => names.some((name) => inNames(some, name)))
    );
  });
}

function hasRoles({ roles }: Box, principal: Principal): boolean {
  const held = effectiveRoles(principal);
  const isAny = roles.any.length === 0 || roles.any.some((role) => held.includes(role));
  return isAny && !roles.none.some((role) => held.includes(role));
}

/** Reports what the texts of a box say about a request, apart from its group. */
function isWritten(box: Box, request: BoxRequest): boolean {
  const address = request.clientAddress === undefined ? undefined : parseAddress(request.clientAddress);
  const inBlock = (text: string) => {
    const network = parseNetwork(text);
    return address === undefined ? text === 'missing' : network !== undefined && inNetwork(address, network);
  };
  const inWeek = ({ timezone, week }: Box['clocks'][number]) => {
    const hours = compileWeeklyHours(week);
    return hours !== undefined && inWeeklyHours(hours, minuteOfWeek(timezone, request.timeMs) ?? -1);
  };
  return (
    box.management === request.management &&
    box.self === request.self &&
    box.permissions.join() === request.permissions.join() &&
    hasResources(box, request.resources) &&
    (box.addresses?.some(inBlock) ?? true) &&
    box.clocks.every(inWeek)
  );
}

/** Returns the boxes' outcome of a request, and verifies that the texts of each box say the same. */
function boxed(difference: Difference, request: BoxRequest): Outcome {
  const inBoxes = (boxes: readonly Box[]) =>
    boxes.filter((box) => {
      const isIn = box.contains(request);
      const isMember = box.groups.includes(request.group);
      // An expectation costs far more than a comparison.
      if ((isMember && isWritten(box, request)) !== isIn) expect(box).toBe(`a text that agrees: ${isIn}`);
      return isIn;
    }).length;
  const allowed = inBoxes(difference.newlyAllowed);
  const denied = inBoxes(difference.newlyDenied);
  if (allowed + denied > 1) expect(allowed + denied).toBe(1);
  return allowed > 0 ? 'newlyAllowed' : denied > 0 ? 'newlyDenied' : 'same';
}

/** Decides a request under both versions. @returns undefined if no route matches */
function decided({ before, after }: RuleChange, principal: Principal, input: CheckInput, timeMs: number) {
  const match = matchRoute(TABLE, input);
  if (match.kind !== 'matched') return undefined;
  const trace: Trace = { grants: [] };
  const isAllowed = (snapshot: Snapshot) =>
    decide(match, input, { kind: 'proved', principal }, snapshot, timeMs, trace).kind === 'allow';
  const outcome = outcomeOf(isAllowed(before), isAllowed(after));
  return { outcome, route: match.route, resources: trace.query?.resources ?? [] };
}

function check(change: RuleChange, difference: Difference, request: ChangedRequest): Outcome | undefined {
  const principal = change.groups[request.group]?.principal;
  const found = principal && decided(change, principal, request.input, request.timeMs);
  if (found === undefined) return undefined;
  const written = boxed(difference, {
    group: request.group,
    permissions: found.route.permissions.map(({ text }) => text),
    management: false,
    self: false,
    resources: found.resources,
    clientAddress: request.input.clientAddress,
    timeMs: request.timeMs,
  });
  // An incomplete difference may leave changes out, but each of its boxes is right.
  if (written !== found.outcome && (difference.complete || written !== 'same')) expect(written).toBe(found.outcome);
  return found.outcome;
}

function managed(
  change: RuleChange,
  principal: Principal,
  access: ManagementAccess,
  address: string | undefined,
  timeMs: number,
) {
  const about = { ...access, self: access.self && principal.kind === 'user', principal, clientAddress: address };
  const isAllowed = (snapshot: Snapshot) => decideManagement({ ...about, snapshot, nowMs: timeMs }).kind === 'allow';
  return outcomeOf(isAllowed(change.before), isAllowed(change.after));
}

/** Decides a box's witness under both versions. */
function witnessed(change: RuleChange, { witness, permissions: [permission = ''], self }: Box): Outcome | undefined {
  const { principal, method, path, body, clientAddress, timeMs } = witness;
  if (method === undefined || path === undefined)
    return managed(change, principal, { permission, self }, clientAddress, timeMs);
  const input = checkInput({
    method,
    path,
    contentType: body === undefined ? undefined : 'application/json',
    body: new TextEncoder().encode(body ?? ''),
    clientAddress,
  });
  return decided(change, principal, input, timeMs)?.outcome;
}

function checkBoxes(change: RuleChange, difference: Difference): void {
  for (const direction of ['newlyAllowed', 'newlyDenied'] as const) {
    for (const box of difference[direction]) {
      expect(witnessed(change, box)).toBe(direction);
      const count = (kind: Principal['kind']) =>
        box.groups.reduce((sum, group) => {
          const one = change.groups[group];
          return sum + (one?.principal.kind === kind ? one.count : 0);
        }, 0);
      expect([box.users, box.keys]).toEqual([count('user'), count('api_key')]);
      const kind = box.users > 0 ? 'user' : 'api_key';
      for (const [group, { principal }] of change.groups.entries()) {
        if (principal.kind === kind && !box.roles.inexact)
          expect(hasRoles(box, principal)).toBe(box.groups.includes(group));
      }
    }
  }
  const boxes = difference.newlyAllowed.length + difference.newlyDenied.length;
  expect(difference.unchanged).toBe(difference.complete && boxes === 0);
  expect(difference.reason === undefined).toBe(difference.complete);
  // Only a route that names a model twice has regions of which no request is known, and such a region is no change.
  if (!difference.complete)
    expect(difference.reason).toMatch(/^(No request was found .* of models:write|There are more)/);
}

describe('the difference of two random versions of the rules', () => {
  test('contains a random request exactly if the decision about it changes, and the witness of each box changes', () => {
    const seen = { newlyAllowed: 0, newlyDenied: 0, same: 0, complete: 0 };
    fc.assert(
      fc.property(ruleChanges, fc.array(requests, { minLength: 100, maxLength: 100 }), (change, asked) => {
        const difference = differenceOf(change);
        checkBoxes(change, difference);
        for (const request of asked) {
          const outcome = check(change, difference, request);
          if (outcome !== undefined) seen[outcome]++;
        }
        if (difference.complete) seen.complete++;
      }),
      { numRuns: runs(1000) },
    );
    // Changes that no request meets would prove little, and so would differences that give up.
    for (const count of [seen.newlyAllowed, seen.newlyDenied]) expect(count).toBeGreaterThanOrEqual(enough(1000));
    expect(seen.complete).toBeGreaterThanOrEqual(enough(900));
  });

  test('equals an enumeration of all requests over a small alphabet', () => {
    const names = ['a', 'b', 'c', 'x', 'ab', 'ba', 'bb', 'a/', '/b', 'xa', 'aba', 'bab'];
    const times = [0, 8, 18, 23, 50, 98].map((hours) => START_MS + hours * 3_600_000);
    const addresses = ['10.1.2.3', '192.0.2.2', '2001:db8::1', undefined];
    const chat = routeNamed('POST /v1/chat/completions');
    const query = routeNamed('POST /v1/rag/query');
    fc.assert(
      fc.property(ruleChanges, (change) => {
        const difference = differenceOf(change);
        const asked = (body: object, route: typeof chat, address: string | undefined) =>
          checkInput({
            method: route.method,
            path: route.template,
            contentType: 'application/json',
            body: new TextEncoder().encode(JSON.stringify(body)),
            clientAddress: address,
          });
        for (const group of [...change.groups.keys()].slice(0, 2)) {
          for (const timeMs of times) {
            for (const address of addresses) {
              for (const model of [undefined, ...names])
                check(change, difference, { group, timeMs, input: asked({ model }, chat, address) });
              for (const one of names.slice(0, 4)) {
                for (const other of names.slice(2))
                  check(change, difference, {
                    group,
                    timeMs,
                    input: asked({ collections: [one, other] }, query, address),
                  });
              }
            }
          }
        }
      }),
      { numRuns: runs(60) },
    );
  });

  test('contains a management request exactly if the decision about it changes', () => {
    fc.assert(
      fc.property(ruleChanges, (change) => {
        const difference = differenceOf(change);
        for (const [group, { principal }] of change.groups.entries()) {
          for (const access of MANAGEMENT) {
            if (access.self && principal.kind !== 'user') continue;
            for (const hours of [0, 9, 20, 60, 105]) {
              const timeMs = START_MS + hours * 3_600_000;
              for (const clientAddress of ADDRESSES) {
                const { permission, self } = access;
                const request = {
                  group,
                  permissions: [permission],
                  management: true,
                  self,
                  resources: [],
                  clientAddress,
                  timeMs,
                };
                const written = boxed(difference, request);
                const outcome = managed(change, principal, access, clientAddress, timeMs);
                if (written !== outcome && (difference.complete || written !== 'same')) expect(written).toBe(outcome);
              }
            }
          }
        }
      }),
      { numRuns: runs(500) },
    );
  });
});

test('a permission that only platform administrators can have hides no change from the other principals', () => {
  const wide = (actions: readonly string[]) =>
    policyNamed('wide', { effect: 'allow', appliesTo: 'everyone', actions, resources: ['*'] });
  const tenant = compileTenant({
    ...{ id: TENANT, status: 'active', settings: {}, quotas: {}, roles: [] },
    policies: [wide(['admin:*'])],
  });
  const before: Snapshot = { own: tenant, effective: tenant, global: compilePolicies([]), builtinRoles };
  const after = withProposal(before, { roles: [], policies: [wide(['*'])], globalPolicies: [] });
  const groups = [
    { principal: userWith(['admin'], 1), count: 1 },
    { principal: userWith([], 2), count: 1 },
  ];
  const change: RuleChange = { before, after, groups };
  // The route needs admin:tenants or chat:write.
  const input = checkInput({ method: 'POST', path: '/tenants' });
  expect(check(change, differenceOf(change), { group: 1, input, timeMs: START_MS })).toBe('newlyAllowed');
});

test('the witness of a box names its resources, although a path loses a slash at its end', () => {
  const policies = [
    policyNamed('under', { effect: 'allow', appliesTo: 'everyone', actions: ['*'], resources: ['models/a/*'] }),
  ];
  const two = { name: roleName('two'), permissions: ['*'], constraints: { models: ['a'] } };
  const none = { id: TENANT, status: 'active', settings: {}, quotas: {} } as const;
  const [old, changed] = [
    compileTenant({ ...none, roles: [two], policies: [] }),
    compileTenant({ ...none, roles: [], policies }),
  ];
  const versions = { global: compilePolicies([]), builtinRoles };
  const change: RuleChange = {
    before: { own: old, effective: old, ...versions },
    after: { own: changed, effective: changed, ...versions },
    groups: [{ principal: userWith(['two'], 1), count: 1 }],
  };
  const difference = differenceOf(change);
  expect(difference.newlyAllowed).not.toEqual([]);
  checkBoxes(change, difference);
});

describe('a route that names one collection in its path and others in its body', () => {
  const tenant = compileTenant({ id: TENANT, status: 'active', settings: {}, quotas: {}, roles: [], policies: [] });
  const before: Snapshot = { own: tenant, effective: tenant, global: compilePolicies([]), builtinRoles };
  const changeBy = (policy: PolicyRecord): RuleChange => ({
    before,
    after: withProposal(before, { roles: [], policies: [policy], globalPolicies: [] }),
    groups: [{ principal: userWith(policy.effect === 'deny' ? ['developer'] : [], 1), count: 1 }],
  });

  test('shows a change of names that only the body can have by a request with another name in the path', () => {
    const change = changeBy(policyNamed('deep', { resources: ['collections/a/*'] }));
    const difference = differenceOf(change);
    expect(difference).toMatchObject({
      complete: true,
      newlyDenied: [
        { witness: { path: expect.stringMatching(/^\/both\/[^/]+$/), body: expect.stringContaining('"a/') } },
      ],
    });
    checkBoxes(change, difference);
  });

  test('is not changed by a rule for names of which no path can have one', () => {
    const allowed = (glob: string) => {
      const resources = ['models/*', `collections/${glob}`];
      const { complete, newlyAllowed } = differenceOf(changeBy(policyNamed('deep', { effect: 'allow', resources })));
      return [complete, newlyAllowed.filter((box) => typeof box.resources.collections === 'object').length];
    };
    expect(allowed('a/*')).toEqual([true, 0]);
    expect(allowed('a*')).toEqual([true, 1]);
  });
});

interface Example {
  readonly name: string;
  readonly stored?: Pick<Partial<Proposal>, 'policies' | 'roles'>;
  readonly settings?: TenantSettings;
  readonly proposal: Partial<Proposal>;
  /** The permissions of interest. */
  readonly permission?: string;
  readonly denied?: readonly object[];
  readonly allowed?: readonly object[];
}

/** Compares a proposal with the stored rules, for two developers and one analyst. */
function differenceOfExample({ stored = {}, settings = {}, proposal }: Example): Difference {
  const { roles = [], policies = [] } = stored;
  const tenant = compileTenant({ id: TENANT, status: 'active', settings, quotas: {}, roles, policies });
  const before: Snapshot = { own: tenant, effective: tenant, global: compilePolicies([]), builtinRoles };
  const after = withProposal(before, { roles: [], policies: [], globalPolicies: [], ...proposal });
  const groups = [
    { principal: userWith(['developer'], 1), count: 2 },
    { principal: userWith(['analyst'], 2), count: 1 },
  ];
  return differenceOf({ before, after, groups }, BUILTIN_TABLE);
}

const names = (patterns: readonly string[], except: readonly string[] = [], unnamed = false) => ({
  each: { sets: [{ patterns, except, also: [] }], unnamed },
  some: [],
});

const EXAMPLES: readonly Example[] = [
  {
    name: 'a new deny with an exception that another deny already makes',
    stored: { policies: [policyNamed('guard', { resources: ['models/llama-guard'] })] },
    proposal: { policies: [policyNamed('no-llama', { resources: ['models/llama-*'] })] },
    permission: 'chat:write',
    denied: [
      {
        by: { kind: 'policy', name: 'no-llama' },
        roles: { any: ['developer'], none: [], inexact: false },
        users: 2,
        resources: { models: names(['llama-*'], ['llama-guard']) },
        addresses: undefined,
        clocks: [],
      },
    ],
  },
  {
    name: 'shorter office hours, in the time zone of the tenant',
    settings: { timezone: 'Europe/Berlin', default_model: 'phi-3' },
    stored: {
      policies: [policyNamed('hours', { conditions: { weekly_hours: { not_in: ['Mon-Fri 08:00-20:00'] } } })],
    },
    proposal: {
      policies: [policyNamed('hours', { conditions: { weekly_hours: { not_in: ['Mon-Fri 08:00-18:00'] } } })],
    },
    permission: 'chat:write',
    denied: [
      { resources: { models: names(['*']) }, clocks: [{ timezone: 'Europe/Berlin', week: ['Mon-Fri 18:00-20:00'] }] },
      { resources: { models: 'none' }, clocks: [{ timezone: 'Europe/Berlin', week: ['Mon-Fri 18:00-20:00'] }] },
    ],
  },
  {
    name: 'the removal of an allow, whose addresses no longer suffice',
    stored: {
      policies: [
        policyNamed('partners', {
          effect: 'allow',
          actions: ['agents:run'],
          resources: ['agents/*'],
          conditions: { ip_address: { in: ['192.0.2.0/24', '2001:db8::/32'] } },
          appliesTo: 'roles',
          attachedRoles: [roleName('analyst')],
        }),
      ],
    },
    proposal: { removed: { roles: new Set(), policies: new Set([policyNamed('partners').name]) } },
    permission: 'agents:run',
    denied: [
      {
        by: { kind: 'policy', name: 'partners' },
        roles: { any: ['analyst'], none: [], inexact: false },
        resources: { agents: names(['*']) },
        addresses: ['192.0.2.0/24', '2001:db8::/32'],
      },
    ],
  },
  {
    name: 'a new allow of several collections that no role covers together',
    stored: {
      policies: [
        policyNamed('hr', { effect: 'allow', actions: ['rag:query'], resources: ['collections/hr-*'] }),
        policyNamed('law', { effect: 'allow', actions: ['rag:query'], resources: ['collections/law-*'] }),
        policyNamed('analysts', {
          actions: ['rag:*'],
          resources: ['collections/*'],
          attachedRoles: [roleName('developer')],
          appliesTo: 'roles',
        }),
      ],
    },
    proposal: {
      policies: [
        policyNamed('both', {
          effect: 'allow',
          actions: ['rag:write'],
          resources: ['collections/hr-*', 'collections/law-*'],
        }),
      ],
    },
    permission: 'rag:write',
    allowed: [{ users: 1, resources: { collections: names(['hr-*', 'law-*']) } }],
  },
];

describe('the boxes of a change', () => {
  test.each(EXAMPLES)('describe $name', (example) => {
    const difference = differenceOfExample(example);
    const about = (boxes: readonly Box[]) => boxes.filter(({ permissions }) => permissions[0] === example.permission);
    expect(about(difference.newlyDenied)).toEqual((example.denied ?? []).map((box) => expect.objectContaining(box)));
    expect(about(difference.newlyAllowed)).toEqual((example.allowed ?? []).map((box) => expect.objectContaining(box)));
    expect(difference.complete).toBe(true);
  });

  test('are none for a policy that is rewritten with the same effect', () => {
    const stored = [policyNamed('p', { resources: ['models/a*', 'models/b'] })];
    const rewritten = [
      policyNamed('p', { resources: ['models/b', 'models/ab', 'models/a*'], actions: ['chat:write', 'chat:*'] }),
    ];
    expect(differenceOfExample({ name: '', stored: { policies: stored }, proposal: { policies: rewritten } })).toEqual({
      newlyAllowed: [],
      newlyDenied: [],
      complete: true,
      reason: undefined,
      unchanged: true,
      affected: { users: 0, keys: 0 },
    });
  });

  test('count each principal once', () => {
    const example = { name: '', proposal: { policies: [policyNamed('all', { actions: ['*'] })] } };
    expect(differenceOfExample(example)).toMatchObject({ affected: { users: 3, keys: 0 }, complete: true });
  });

  test('are incomplete with a reason beyond their greatest number, and each of them is right', () => {
    const policies = Array.from({ length: MAX_BOXES + 1 }, (_, i) =>
      policyNamed(`p${i}`, { actions: ['chat:write'], resources: [`models/m${i}`] }),
    );
    const difference = differenceOfExample({ name: '', proposal: { policies } });
    expect(difference).toMatchObject({ complete: false, unchanged: false });
    expect(difference.reason).toContain('more than 200 boxes');
    expect(difference.newlyDenied).toHaveLength(MAX_BOXES);
  });

  test('are incomplete with a reason if the globs have too many common states', () => {
    const globs = Array.from({ length: 60 }, (_, i) => `models/*${i}a*b${i}*c*d*`);
    const difference = differenceOfExample({
      name: '',
      proposal: { policies: [policyNamed('p', { resources: globs })] },
    });
    expect(difference).toMatchObject({ complete: false, unchanged: false });
    expect(difference.reason).toContain('too many');
  });

  test('are not found in the hours of two zones that never meet', () => {
    const berlin = { time: { between: ['12:00', '13:00'] }, timezone: 'Europe/Berlin' };
    const tokyo = { time: { between: ['12:00', '13:00'] }, timezone: 'Asia/Tokyo' };
    const allow: Partial<PolicyRecord> = { effect: 'allow', actions: ['files:read'], conditions: tokyo };
    const stored = { policies: [policyNamed('a', allow)] };
    const proposal = { policies: [policyNamed('d', { actions: ['files:write', 'files:read'], conditions: berlin })] };
    const difference = differenceOfExample({ name: '', stored, proposal });
    expect(difference.unchanged).toBe(false);
    expect(difference.newlyDenied.filter(({ clocks }) => clocks.length > 1)).toEqual([]);
  });
});
