/** Random changes of rules: two versions of a tenant, its principals, and requests that often meet their constants. */

import fc from 'fast-check';
import { compilePolicies, compileTenant } from '../../src/decision/compile.ts';
import type { PrincipalGroup } from '../../src/decision/difference/model.ts';
import { makeGrant } from '../../src/decision/grants.ts';
import type { CheckInput, Principal, Route, Snapshot } from '../../src/decision/model.ts';
import { buildRouteTable, parseRoute, type RouteSpec, type RouteTable } from '../../src/decision/routes.ts';
import { parseTemplate } from '../../src/decision/templates.ts';
import { makeId, parsePolicyName, parseTenantId } from '../../src/domain/ids.ts';
import type { PolicyRecord, ResourceConstraints, RoleRecord, StoredConditions } from '../../src/domain/records.ts';
import { builtinRoles } from '../support/builtin-roles.ts';
import { checkInput, must, roleName } from '../support/world.ts';

/** Routes with every source of every kind, also those that no built-in route has. */
const EXTRA: readonly RouteSpec[] = [
  { method: 'POST', path: '/both/{collection}', permission: 'chat:write', model: 'body', collection: 'path' },
  { method: 'POST', path: '/twice/{model}', permission: 'models:write', model: 'body' },
  { method: 'POST', path: '/tenants', permission: ['admin:tenants', 'chat:write'] },
];

const routes: readonly Route[] = EXTRA.map((spec) => {
  const parsed = parseRoute(spec);
  if (parsed.kind === 'error') throw new Error(parsed.message);
  return parsed.route;
});
function tableWith(extra: readonly Route[]): RouteTable {
  const built = buildRouteTable(extra);
  if (built.kind === 'error') throw new Error(built.message);
  return built.table;
}

export const BUILTIN_TABLE = tableWith([]);
export const TABLE = tableWith(routes);

export function routeNamed(text: string): Route {
  return must(
    TABLE.routes.find((route) => `${route.method} ${route.template}` === text),
    text,
  );
}

/** The routes that requests come to: each source of a resource, and none. */
const ROUTES = [
  'POST /v1/chat/completions',
  'GET /v1/chat/**',
  'GET /v1/models',
  'GET /v1/models/{model+}',
  'POST /v1/rag/query',
  'POST /v1/rag/query',
  'GET /v1/rag/collections/{collection}/**',
  'POST /v1/images/edits',
  'GET /v1/agents/{agent}/**',
  'POST /both/{collection}',
  'POST /twice/{model}',
  'POST /tenants',
].map(routeNamed);

const ACTIONS = [
  '*',
  'chat:*',
  '*:read',
  'chat:write',
  'rag:*',
  'rag:query',
  'models:*',
  'images:write',
  'agents:read',
  'admin:*',
];
const GLOBS = ['*', 'a', 'b', 'ab', 'a*', '*b', 'a*b', '*ab*', 'ba*', 'a/*', '*/b', 'a*a*', 'c'];
const NAMES = ['a', 'b', 'ab', 'ba', 'aab', 'aba', 'bb', 'c', 'x', 'a/b', 'ax', 'xab', 'aXb'];
const ZONES = [undefined, 'UTC', 'Europe/Berlin', 'America/New_York'];
export const ROLES = ['one', 'two', 'gone', 'developer', 'admin'];

const subset = <T>(values: readonly T[], minLength: number, maxLength: number) =>
  fc.uniqueArray(fc.constantFrom(...values), { minLength, maxLength });

const constraints: fc.Arbitrary<ResourceConstraints> = fc.record(
  { models: subset(GLOBS, 0, 3), collections: subset(GLOBS, 0, 3), agents: subset(GLOBS, 1, 2) },
  { requiredKeys: [] },
);

const resources = fc.oneof(
  fc.constant(['*']),
  fc.uniqueArray(
    fc
      .tuple(fc.constantFrom('models', 'collections', 'collections', 'agents'), fc.constantFrom(...GLOBS))
      .map(([kind, glob]) => `${kind}/${glob}`),
    { minLength: 1, maxLength: 3 },
  ),
);

const networks = subset(['10.0.0.0/8', '10.1.0.0/16', '192.0.2.1', '0.0.0.0/0', '2001:db8::/32', '::/0'], 1, 2);
const inOrNot = <T>(operand: fc.Arbitrary<T>, names: readonly [string, string]) =>
  fc.tuple(fc.constantFrom(...names), operand).map(([operator, value]) => ({ [operator]: value }));

const conditions: fc.Arbitrary<StoredConditions> = fc.oneof(
  { weight: 2, arbitrary: fc.constant({}) },
  {
    weight: 3,
    arbitrary: fc
      .record(
        {
          ip_address: inOrNot(networks, ['in', 'not_in']),
          time: inOrNot(fc.constantFrom(['08:00', '18:00'], ['22:00', '06:00'], ['12:00', '24:00']), [
            'between',
            'not_between',
          ]),
          day_of_week: inOrNot(subset(['Mon', 'Tue', 'Sat', 'Sun'], 1, 2), ['in', 'not_in']),
          weekly_hours: inOrNot(subset(['Mon-Fri 08:00-18:00', 'Sat 22:00-02:00', 'Sun 20:00-24:00'], 1, 2), [
            'in',
            'not_in',
          ]),
          timezone: fc.constantFrom(...ZONES.slice(1)),
        },
        { requiredKeys: [] },
      )
      .map(({ timezone, ...all }) => {
        // Few conditions at a time, so that they often hold.
        const kept = Object.fromEntries(Object.entries(all).slice(0, 2));
        return timezone === undefined ? kept : { ...kept, timezone };
      }),
  },
  { weight: 1, arbitrary: fc.constant({ weather: { in: ['rain'] } }) },
);

type PolicyParts = Omit<PolicyRecord, 'name'>;

const policyParts: fc.Arbitrary<PolicyParts> = fc
  .record({
    effect: fc.constantFrom('allow' as const, 'deny' as const),
    actions: subset(ACTIONS, 1, 2),
    resources,
    conditions,
    everyone: fc.boolean(),
    attached: subset(ROLES.slice(0, 4), 0, 2),
    enabled: fc.constantFrom(true, true, true, false),
  })
  .map(({ everyone, attached, ...rest }) => ({
    ...rest,
    appliesTo: everyone ? 'everyone' : 'roles',
    attachedRoles: everyone ? [] : attached.map(roleName),
  }));

const roleParts: fc.Arbitrary<Omit<RoleRecord, 'name'>> = fc.record({
  permissions: subset(ACTIONS, 1, 2),
  constraints,
});

/** A rule of the first version and of the second: undefined where the version has none of that name. */
function versions<T>(one: fc.Arbitrary<T>): fc.Arbitrary<readonly [T | undefined, T | undefined]> {
  return fc.oneof(
    { weight: 3, arbitrary: one.map((rule) => [rule, rule] as const) },
    { weight: 1, arbitrary: fc.tuple(one, one) },
    { weight: 1, arbitrary: one.map((rule) => [rule, undefined] as const) },
    { weight: 1, arbitrary: one.map((rule) => [undefined, rule] as const) },
  );
}

/** A policy with defaults that deny chat requests of everyone. */
export function policyNamed(name: string, parts: Partial<PolicyParts> = {}): PolicyRecord {
  return {
    name: must(parsePolicyName(name), name),
    effect: 'deny',
    actions: ['chat:*'],
    resources: ['*'],
    conditions: {},
    appliesTo: 'everyone',
    attachedRoles: [],
    enabled: true,
    ...parts,
  };
}

export interface RuleChange {
  readonly before: Snapshot;
  readonly after: Snapshot;
  readonly groups: readonly PrincipalGroup[];
}

export const TENANT = must(parseTenantId('acme'), 'acme');
const idBytes = (n: number) => Uint8Array.from([0, 0, 0, 0, 0, 0, 0, 0, 0, n]);

export function userWith(roles: readonly string[], n: number): Principal {
  return {
    kind: 'user',
    id: makeId('usr', 0, idBytes(n)),
    tenantId: TENANT,
    roles: roles.map(roleName),
    platformAdmin: roles.includes('admin'),
    sessionId: undefined,
  };
}

const principal: fc.Arbitrary<(n: number) => Principal> = fc.oneof(
  { weight: 2, arbitrary: subset(ROLES, 0, 2).map((roles) => (n: number) => userWith(roles, n)) },
  {
    weight: 1,
    arbitrary: fc.tuple(subset(ACTIONS, 1, 2), constraints, fc.option(subset(ROLES, 0, 2), { nil: undefined })).map(
      ([scopes, limits, owner]) =>
        (n: number): Principal => ({
          kind: 'api_key',
          id: makeId('key', 0, idBytes(n)),
          tenantId: TENANT,
          grant: makeGrant(scopes, limits),
          owner: owner && { id: makeId('usr', 0, idBytes(n)), roles: owner.map(roleName) },
          rateLimitRpm: undefined,
        }),
    ),
  },
);

export const ruleChanges: fc.Arbitrary<RuleChange> = fc
  .record({
    roles: fc.tuple(versions(roleParts), versions(roleParts)),
    policies: fc.array(versions(policyParts), { minLength: 1, maxLength: 5 }),
    globals: fc.array(versions(policyParts), { maxLength: 1 }),
    timezone: fc.constantFrom(...ZONES),
    defaultModel: fc.constantFrom(undefined, undefined, 'ab'),
    principals: fc.array(principal, { minLength: 1, maxLength: 4 }),
  })
  .map(({ roles, policies, globals, timezone, defaultModel, principals }) => {
    const policiesOf = (prefix: string, list: typeof policies, side: 0 | 1) =>
      list.flatMap((pair, index): PolicyRecord[] => {
        const parts = pair[side];
        const attached =
          prefix === 'g' ? parts?.attachedRoles.filter((role) => role === 'developer') : parts?.attachedRoles;
        return parts === undefined
          ? []
          : [policyNamed(`${prefix}${index}`, { ...parts, attachedRoles: attached ?? [] })];
      });
    const snapshot = (side: 0 | 1): Snapshot => {
      const tenant = compileTenant({
        id: TENANT,
        status: 'active',
        settings: { ...(timezone && { timezone }), ...(defaultModel && { default_model: defaultModel }) },
        quotas: {},
        roles: roles.flatMap((pair, index) => {
          const parts = pair[side];
          return parts === undefined ? [] : [{ ...parts, name: roleName(ROLES[index] ?? '') }];
        }),
        policies: policiesOf('t', policies, side),
      });
      return { own: tenant, effective: tenant, global: compilePolicies(policiesOf('g', globals, side)), builtinRoles };
    };
    const groups = principals.map((make, n) => ({ principal: make(n), count: n + 1 }));
    return { before: snapshot(0), after: snapshot(1), groups };
  });

export interface ChangedRequest {
  readonly group: number;
  readonly input: CheckInput;
  readonly timeMs: number;
}

const name = fc.constantFrom(...NAMES);
export const START_MS = Date.parse('2026-11-26T00:00:00Z');
const MINUTE_MS = 60_000;
/** Within a year, more often at a full hour. */
const time = fc.oneof(
  fc.integer({ min: 0, max: 366 * 24 }).map((hours) => START_MS + hours * 60 * MINUTE_MS),
  fc.integer({ min: 0, max: 366 * 24 * 60 }).map((minutes) => START_MS + minutes * MINUTE_MS - 1),
);

export const ADDRESSES = [
  '10.0.0.1',
  '10.1.2.3',
  '192.0.2.1',
  '192.0.2.2',
  '2001:db8::1',
  '::1',
  '::ffff:10.0.0.9',
  undefined,
];

/** Requests of the groups 0 to 3: a test passes over those whose group does not exist. */
export const requests: fc.Arbitrary<ChangedRequest> = fc
  .record({
    group: fc.nat({ max: 3 }),
    route: fc.constantFrom(...ROUTES),
    names: fc.tuple(name, name, name),
    model: fc.option(name, { nil: undefined }),
    collections: fc.array(name, { maxLength: 3 }),
    address: fc.constantFrom(...ADDRESSES),
    timeMs: time,
  })
  .map(({ group, route, names, model, collections, address, timeMs }) => {
    const input = inputOf(route, names, { model, collections }, address);
    return { group, input, timeMs };
  });

function inputOf(
  route: Route,
  names: readonly string[],
  { model, collections }: { readonly model: string | undefined; readonly collections: readonly string[] },
  address: string | undefined,
): CheckInput {
  const template = parseTemplate(route.template);
  if (template.kind === 'error') throw new Error(template.message);
  const open = [...names];
  const segments = template.parts.map((part) => {
    if (part.kind === 'literal') return part.text;
    return part.kind === 'rest' ? 'r' : (open.pop() ?? 'x');
  });
  const body = {
    ...(route.model === 'body' && model !== undefined ? { model } : {}),
    ...(route.collection === 'body' ? { collections } : {}),
  };
  return checkInput({
    method: route.method,
    path: `/${segments.join('/')}`,
    contentType: route.readsBody ? 'application/json' : undefined,
    body: new TextEncoder().encode(route.readsBody ? JSON.stringify(body) : ''),
    clientAddress: address,
  });
}
