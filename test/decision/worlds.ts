/** Random worlds: tenants with roles and policies, principals and requests, small enough that they often meet. */

import fc from 'fast-check';
import { compileGrant, compilePolicies, compileTenant } from '../../src/decision/compile.ts';
import type { PolicyConditions } from '../../src/decision/condition-table.ts';
import type { Identity, Route, Snapshot, UserPrincipal } from '../../src/decision/model.ts';
import { narrowedUser } from '../../src/decision/narrowing.ts';
import { compilePatterns } from '../../src/decision/permissions.ts';
import { parseRoute, type RouteSpec } from '../../src/decision/routes.ts';
import { makeId, parsePolicyName, parseTenantId } from '../../src/domain/ids.ts';
import type { PolicyRecord, ResourceConstraints, RoleRecord, TenantRecord } from '../../src/domain/records.ts';
import { builtinRoles } from '../support/builtin-roles.ts';
import { must, roleName } from '../support/world.ts';
import type { NaiveRequest } from './naive-decision.ts';

const ACTIONS = [
  '*',
  '*:*',
  'chat:*',
  '*:read',
  'chat:write',
  'rag:read',
  'rag:query',
  'models:read',
  'agents:*',
  'admin:*',
  'admin:tenants',
];
/** Long enough to be indexed, and alike. */
const LONG = ['a'.repeat(40), `${'ab'.repeat(200)}c`, `${'aab'.repeat(60)}/${'b'.repeat(100)}`, `x/${'y'.repeat(510)}`];
const NAMES = ['a', 'b', 'ab', 'x/y', 'c', ...LONG];
const GLOBS = [
  '*',
  'a',
  'a*',
  '*b',
  'x/*',
  'c',
  '*a*b*',
  '*ba*ba*ba*ba*ba*ba*c',
  'a*aa*a*a*a*b*b*b',
  `*${'ab'.repeat(40)}*c*`,
  `*${'a'.repeat(30)}*`,
  '*ab*/*b*',
  '*/*y*y*y*y*y*y*y',
  '*bb*aab*',
];
const ROLES = ['admin', 'developer', 'analyst', 'mine', 'other', 'gone'];
export const TENANTS = ['home', 'away', 'frozen'];

const patterns = fc.uniqueArray(fc.constantFrom(...ACTIONS), { maxLength: 3 });
/** The patterns of grants: often wide enough that the decision reaches the steps after 13 and 14. */
export const granted = fc.oneof(
  { weight: 2, arbitrary: patterns },
  { weight: 1, arbitrary: fc.constantFrom(['*'], ['chat:*', '*:read']) },
);
const globs = fc.uniqueArray(fc.constantFrom(...GLOBS), { maxLength: 3 });
const constraints: fc.Arbitrary<ResourceConstraints> = fc.record(
  { models: globs, collections: globs, agents: globs },
  { requiredKeys: [] },
);
const resources = fc.uniqueArray(
  fc.oneof(
    fc.constant('*'),
    fc
      .tuple(fc.constantFrom('models', 'collections', 'agents'), fc.constantFrom(...GLOBS))
      .map(([kind, glob]) => `${kind}/${glob}`),
  ),
  { minLength: 1, maxLength: 2 },
);
/** Conditions that never hold, that always hold, and that depend on the request: enough to see their effect. */
const conditions: fc.Arbitrary<PolicyConditions> = fc.oneof(
  { weight: 3, arbitrary: fc.constant({}) },
  {
    weight: 1,
    arbitrary: fc.constantFrom({ ip_address: { in: ['10.0.0.0/8'] } }, { ip_address: { not_in: ['10.0.0.0/8'] } }),
  },
);

function policies(prefix: string, roles: readonly string[]): fc.Arbitrary<readonly PolicyRecord[]> {
  const one = fc.record({
    effect: fc.constantFrom('allow' as const, 'deny' as const),
    actions: patterns,
    resources,
    conditions,
    appliesTo: fc.constantFrom('everyone' as const, 'roles' as const),
    attachedRoles: fc.uniqueArray(fc.constantFrom(...roles), { maxLength: 2 }).map((names) => names.map(roleName)),
    state: fc.constantFrom('enforced', 'enforced', 'reported', 'disabled'),
  });
  return fc.array(one, { maxLength: 4 }).map((list) =>
    list.map(({ state, ...policy }, i) => ({
      ...policy,
      name: must(parsePolicyName(`${prefix}${(i * 7) % 5}`), 'policy name'),
      enabled: state === 'enforced',
      ...(state === 'reported' ? { reports: true } : {}),
    })),
  );
}

const role: fc.Arbitrary<RoleRecord> = fc.record({
  name: fc.constantFrom('mine', 'other').map(roleName),
  permissions: granted,
  constraints,
});

function tenant(id: string): fc.Arbitrary<TenantRecord> {
  return fc.record({
    id: fc.constant(must(parseTenantId(id), id)),
    status: fc.constant(id === 'frozen' ? ('suspended' as const) : ('active' as const)),
    settings: fc.record(
      {
        default_model: fc.constantFrom('a', 'c'),
        max_tokens_per_request: fc.constantFrom(0, 10),
        require_stream_usage: fc.constantFrom(true, true, false),
      },
      { requiredKeys: [] },
    ),
    quotas: fc.constant({}),
    roles: fc.uniqueArray(role, { maxLength: 2, selector: (one) => one.name }),
    policies: policies('t', ROLES),
  });
}

export interface RandomWorld {
  readonly tenants: readonly TenantRecord[];
  readonly globals: readonly PolicyRecord[];
}

export const worldArbitrary: fc.Arbitrary<RandomWorld> = fc.record({
  tenants: fc.tuple(...TENANTS.map(tenant)),
  globals: policies('g', ['admin', 'developer', 'analyst']),
});

export const principalArbitrary = fc.record({
  tenant: fc.constantFrom('home', 'home', 'home', 'away', 'frozen'),
  roles: fc.uniqueArray(fc.constantFrom(...ROLES), { maxLength: 3 }).map((names) => names.map(roleName)),
  key: fc.option(fc.record({ permissions: granted, constraints, owned: fc.boolean() }), { nil: undefined }),
  /** The scope of the session; undefined: it is not narrowed. */
  scope: fc.option(granted, { nil: undefined, freq: 2 }),
  id: fc.constant(makeId('usr', 0, new Uint8Array(10))),
});

export type RandomPrincipal = typeof principalArbitrary extends fc.Arbitrary<infer T> ? T : never;

/** The principal of a valid credential. */
export function randomIdentity(principal: RandomPrincipal): Identity {
  const tenantId = must(parseTenantId(principal.tenant), principal.tenant);
  const { key, roles, id } = principal;
  const scope = principal.scope && compilePatterns(principal.scope);
  if (key === undefined) {
    const platformAdmin = roles.some((one) => one === 'admin');
    const user: UserPrincipal = { kind: 'user', id, tenantId, roles, platformAdmin, sessionId: undefined };
    return { kind: 'proved', principal: scope === undefined ? user : narrowedUser(user, scope) };
  }
  const owner = key.owned ? { id, roles } : undefined;
  const grant = compileGrant(key.permissions, key.constraints);
  const keyId = makeId('key', 0, new Uint8Array(10));
  return {
    kind: 'proved',
    principal: { kind: 'api_key', id: keyId, tenantId, grant, owner, rateLimitRpm: undefined, scope },
  };
}

export function randomSnapshot(
  world: RandomWorld,
  principal: RandomPrincipal,
  request: Pick<RandomRequest, 'header'>,
): Snapshot {
  const view = (id: string) => {
    const record = world.tenants.find((tenant) => tenant.id === id);
    return record && compileTenant(record);
  };
  return {
    own: view(principal.tenant),
    effective: view(request.header ?? principal.tenant),
    global: compilePolicies(world.globals),
    builtinRoles,
  };
}

/** The world with every policy as `change` returns it. */
export function withPolicies(world: RandomWorld, change: (policy: PolicyRecord) => PolicyRecord): RandomWorld {
  const tenants = world.tenants.map((tenant) => ({ ...tenant, policies: tenant.policies.map(change) }));
  return { tenants, globals: world.globals.map(change) };
}

export function withoutReports(world: RandomWorld): RandomWorld {
  return withPolicies(world, (policy) => ({ ...policy, reports: false }));
}

/** Worlds in which report-only policies often matter: in half of them every policy is wide and only reports. */
export const reportingWorldArbitrary: fc.Arbitrary<RandomWorld> = fc.oneof(
  worldArbitrary,
  worldArbitrary.map((world) =>
    withPolicies(world, (policy) => ({
      ...policy,
      ...{ actions: ['*'], resources: ['*'], conditions: {}, appliesTo: 'everyone', attachedRoles: [] },
      ...{ enabled: false, reports: true },
    })),
  ),
);

/**
 * Routes of the configuration, for what no built-in one asks: a permission of platform administrators, alone and beside
 * another.
 */
const EXTRA: readonly RouteSpec[] = [
  { method: 'POST', path: '/extra/{collection}', permission: ['admin:tenants', 'chat:write'], collection: 'path' },
  { method: 'POST', path: '/tenants', permission: 'admin:tenants' },
];

export function extraLines(): readonly Route[] {
  return EXTRA.map((spec) => {
    const parsed = parseRoute(spec);
    if (parsed.kind === 'error') throw new Error(parsed.message);
    return parsed.route;
  });
}

export interface AskedResource {
  readonly kind: 'models' | 'collections' | 'agents';
  /** Undefined: not named. */
  readonly name: string | undefined;
  /** True if the effective tenant's default model replaces a missing model. */
  readonly orDefault: boolean;
}

function resource(kind: AskedResource['kind'], name: string | undefined, orDefault = false): AskedResource {
  return { kind, name, orDefault };
}

export interface RandomRequest extends Omit<NaiveRequest, 'resources'> {
  readonly method: string;
  readonly path: string;
  readonly body: string | undefined;
  readonly address: string | undefined;
  readonly resources: readonly AskedResource[];
}

type Asked = Pick<
  RandomRequest,
  'method' | 'path' | 'body' | 'permissions' | 'resources' | 'metered' | 'limits' | 'hidesUsage'
>;

const name = fc.constantFrom(...NAMES);
const nothing = { body: undefined, limits: [], metered: false, hidesUsage: false };

/** Members of a body about streams, and whether the answer is a stream without usage. */
const streams = fc.constantFrom<{ readonly members: object; readonly isSilent: boolean }>(
  { members: {}, isSilent: false },
  { members: { stream: false }, isSilent: false },
  { members: { stream: true, stream_options: { include_usage: true } }, isSilent: false },
  { members: { stream: true }, isSilent: true },
  { members: { stream: true, stream_options: null }, isSilent: true },
  { members: { stream: true, stream_options: { include_usage: false } }, isSilent: true },
);

/** Routes whose streams report their usage only on request, and routes whose streams always report it. */
const paths = fc.constantFrom(
  '/v1/chat/completions',
  '/v1/chat/completions',
  '/v1/completions',
  '/v1/responses',
  '/v1/messages',
);

const chat: fc.Arbitrary<Asked> = fc
  .tuple(
    fc.option(name, { nil: undefined }),
    fc.option(fc.constantFrom(0, 5, 11, 11), { nil: undefined }),
    streams,
    paths,
  )
  .map(([model, limit, { members, isSilent }, path]) => ({
    method: 'POST',
    path,
    body: JSON.stringify({ model, max_tokens: limit, ...members }),
    permissions: ['chat:write'],
    resources: [resource('models', model, model === undefined)],
    metered: true,
    limits: limit === undefined ? [] : [limit],
    hidesUsage: isSilent && path.endsWith('completions'),
  }));

const asked: fc.Arbitrary<Asked> = fc.oneof(
  chat,
  chat,
  fc.uniqueArray(name, { maxLength: 3 }).map((names) => ({
    ...nothing,
    method: 'POST',
    path: '/v1/rag/query',
    body: JSON.stringify({ collections: names }),
    permissions: ['rag:query', 'rag:read'],
    resources:
      names.length === 0 ? [resource('collections', undefined)] : names.map((one) => resource('collections', one)),
  })),
  name.map((model) => ({
    ...nothing,
    method: 'GET',
    path: `/v1/models/${model}`,
    permissions: ['models:read'],
    resources: [resource('models', model)],
  })),
  fc.constant({ ...nothing, method: 'GET', path: '/v1/models', permissions: ['models:read'], resources: [] }),
  fc.constant({
    ...nothing,
    method: 'POST',
    path: '/v1/agents/a/runs',
    permissions: ['agents:run'],
    resources: [resource('agents', 'a')],
  }),
  fc.constant({ ...nothing, method: 'POST', path: '/tenants', permissions: ['admin:tenants'], resources: [] }),
  fc.constant({
    ...nothing,
    method: 'POST',
    path: '/extra/ab',
    permissions: ['admin:tenants', 'chat:write'],
    resources: [resource('collections', 'ab')],
  }),
);

export const requestArbitrary: fc.Arbitrary<RandomRequest> = fc
  .tuple(
    asked,
    fc.constantFrom(undefined, undefined, undefined, undefined, undefined, undefined, ...TENANTS, 'nowhere', 'No!'),
    fc.constantFrom('10.0.0.1', '192.0.2.1', undefined),
  )
  .map(([one, header, address]) => ({ ...one, header, address }));
