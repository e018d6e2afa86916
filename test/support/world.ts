/**
 * The world of `test/cases/decisions.json` and the decisions demanded in it: read, and turned into what `decide()`
 * takes. Labels of the file (`ada`, `k-chat`) become ids here; a test against a running server has its own.
 */

import { readFileSync } from 'node:fs';
import { compileGrant, compilePolicies, compileTenant } from '../../src/decision/compile.ts';
import type { PolicyConditions } from '../../src/decision/condition-table.ts';
import { decide } from '../../src/decision/decide.ts';
import type {
  CheckInput,
  Decision,
  HeaderValue,
  Identity,
  KeyPrincipal,
  Snapshot,
  TenantView,
  UserPrincipal,
} from '../../src/decision/model.ts';
import type { PolicySet } from '../../src/decision/policies.ts';
import { buildRouteTable, matchRoute, type RouteTable } from '../../src/decision/routes.ts';
import { makeId, parsePolicyName, parseRoleName, parseTenantId, type RoleName } from '../../src/domain/ids.ts';
import type {
  PolicyRecord,
  ResourceConstraints,
  RoleRecord,
  TenantQuotas,
  TenantRecord,
  TenantSettings,
} from '../../src/domain/records.ts';
import { ADMIN } from '../../src/domain/roles.ts';
import { builtinRoles } from './builtin-roles.ts';

export interface CaseTenant {
  readonly id: string;
  readonly name: string;
  readonly status?: 'active' | 'suspended';
  readonly settings?: TenantSettings;
  readonly quotas?: TenantQuotas;
}

export interface CaseRole {
  readonly tenant_id: string;
  readonly name: string;
  readonly permissions: readonly string[];
  readonly resource_constraints?: ResourceConstraints;
}

export interface CasePolicy {
  /** null = global. */
  readonly tenant_id: string | null;
  readonly name: string;
  readonly effect: 'allow' | 'deny';
  readonly actions: readonly string[];
  readonly resources: readonly string[];
  readonly conditions: PolicyConditions;
  readonly attached_roles?: readonly string[];
}

export interface CaseUser {
  readonly id: string;
  readonly tenant_id: string;
  readonly roles: readonly string[];
  readonly status?: 'active' | 'deactivated';
}

export interface CaseKey {
  readonly id: string;
  readonly tenant_id: string;
  readonly user_id?: string;
  readonly scopes: readonly string[];
  readonly resource_constraints?: ResourceConstraints;
  readonly expires_at?: string;
  readonly revoked?: boolean;
}

export interface CaseWorld {
  readonly tenants: readonly CaseTenant[];
  readonly roles: readonly CaseRole[];
  readonly policies: readonly CasePolicy[];
  readonly users: readonly CaseUser[];
  readonly api_keys: readonly CaseKey[];
}

export interface DecisionCase {
  readonly name: string;
  /**
   * A user (by access token) or an API key; null: no credential; `raw:T`: Bearer T; `header:H`: the whole Authorization
   * header; `expired:U`: a token of user U past its expiry.
   */
  readonly as: string | null;
  readonly method: string;
  readonly path: string;
  readonly tenant?: string;
  readonly ip?: string;
  readonly time?: string;
  readonly body?: unknown;
  /** The body as it is, instead of `body`. */
  readonly raw_body?: string;
  /** Instead of application/json. */
  readonly content_type?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Set where Envoy, or what is behind it, would answer by itself. */
  readonly only?: 'direct';
  readonly expect: { readonly status: number; readonly code: string };
}

export interface CaseFile {
  /** The client address and the time of a case that names none. */
  readonly defaults: { readonly ip: string; readonly time: string };
  readonly world: CaseWorld;
  readonly cases: readonly DecisionCase[];
}

export function loadCases(): CaseFile {
  return JSON.parse(readFileSync(new URL('../cases/decisions.json', import.meta.url), 'utf8'));
}

/** A value that the file is known to hold. */
export function must<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new Error(`the world of the cases has no ${what}`);
  return value;
}

export function roleName(text: string): RoleName {
  return must(parseRoleName(text), `role name ${text}`);
}

function labelBytes(index: number): Uint8Array {
  return Uint8Array.from({ length: 10 }, (_, i) => (i === 9 ? index : 0));
}

export function roleRecord(role: CaseRole): RoleRecord {
  return { name: roleName(role.name), permissions: role.permissions, constraints: role.resource_constraints ?? {} };
}

/**
 * Who a policy applies to when it does not say: a deny to everyone, an allow to roles; roles where some are attached.
 */
export function policyRecord(policy: CasePolicy): PolicyRecord {
  const attachedRoles = (policy.attached_roles ?? []).map(roleName);
  return {
    name: must(parsePolicyName(policy.name), `policy name ${policy.name}`),
    effect: policy.effect,
    actions: policy.actions,
    resources: policy.resources,
    conditions: policy.conditions,
    appliesTo: attachedRoles.length > 0 || policy.effect === 'allow' ? 'roles' : 'everyone',
    attachedRoles,
    enabled: true,
  };
}

export function tenantRecord(world: CaseWorld, tenant: CaseTenant): TenantRecord {
  return {
    id: must(parseTenantId(tenant.id), `tenant ${tenant.id}`),
    status: tenant.status ?? 'active',
    settings: tenant.settings ?? {},
    quotas: tenant.quotas ?? {},
    roles: world.roles.filter((role) => role.tenant_id === tenant.id).map(roleRecord),
    policies: world.policies.filter((policy) => policy.tenant_id === tenant.id).map(policyRecord),
  };
}

/** The world, compiled once for all cases. */
export interface CompiledWorld {
  readonly world: CaseWorld;
  readonly tenants: ReadonlyMap<string, TenantView>;
  readonly global: PolicySet;
  readonly routes: RouteTable;
}

export function compileWorld(world: CaseWorld): CompiledWorld {
  const built = buildRouteTable([]);
  if (built.kind === 'error') throw new Error(built.message);
  return {
    world,
    tenants: new Map(world.tenants.map((tenant) => [tenant.id, compileTenant(tenantRecord(world, tenant))])),
    global: compilePolicies(world.policies.filter((policy) => policy.tenant_id === null).map(policyRecord)),
    routes: built.table,
  };
}

export function userPrincipal(world: CaseWorld, label: string): UserPrincipal {
  const index = world.users.findIndex((user) => user.id === label);
  const user = must(world.users[index], `user ${label}`);
  const roles = user.roles.map(roleName);
  return {
    kind: 'user',
    id: makeId('usr', 0, labelBytes(index)),
    tenantId: must(parseTenantId(user.tenant_id), `tenant ${user.tenant_id}`),
    roles,
    platformAdmin: roles.includes(ADMIN),
    sessionId: undefined,
  };
}

export function keyPrincipal(world: CaseWorld, label: string): KeyPrincipal {
  const index = world.api_keys.findIndex((key) => key.id === label);
  const key = must(world.api_keys[index], `key ${label}`);
  const owner = key.user_id === undefined ? undefined : userPrincipal(world, key.user_id);
  return {
    kind: 'api_key',
    id: makeId('key', 0, labelBytes(index)),
    tenantId: must(parseTenantId(key.tenant_id), `tenant ${key.tenant_id}`),
    grant: compileGrant(key.scopes, key.resource_constraints ?? {}),
    owner: owner && { id: owner.id, roles: owner.roles },
    rateLimitRpm: undefined,
  };
}

function isActive(world: CaseWorld, user: string): boolean {
  return world.users.some((one) => one.id === user && one.status !== 'deactivated');
}

/** Returns the identity that a case's credential resolves to. */
export function identityOf(world: CaseWorld, as: string | null, nowMs: number): Identity {
  if (as === null) return { kind: 'missing' };
  if (as.startsWith('header:')) return { kind: 'invalid', reason: 'malformed' };
  if (as.startsWith('raw:')) return { kind: 'invalid', reason: 'unknown' };
  if (as.startsWith('expired:')) return { kind: 'expired' };
  const key = world.api_keys.find((one) => one.id === as);
  if (key === undefined) {
    if (!isActive(world, as)) return { kind: 'invalid', reason: 'user_deactivated' };
    return { kind: 'proved', principal: userPrincipal(world, as) };
  }
  if (key.revoked === true) return { kind: 'invalid', reason: 'revoked' };
  if (key.expires_at !== undefined && Date.parse(key.expires_at) <= nowMs)
    return { kind: 'invalid', reason: 'key_expired' };
  if (key.user_id !== undefined && !isActive(world, key.user_id))
    return { kind: 'invalid', reason: 'user_deactivated' };
  return { kind: 'proved', principal: keyPrincipal(world, as) };
}

/** The tenants that one decision looks at: the principal's own and, where the header names one, that. */
export function snapshotOf(compiled: CompiledWorld, identity: Identity, tenant: HeaderValue): Snapshot | undefined {
  if (identity.kind !== 'proved') return undefined;
  const own = compiled.tenants.get(identity.principal.tenantId);
  const effective = typeof tenant === 'string' ? compiled.tenants.get(tenant) : own;
  return { own, effective, global: compiled.global, builtinRoles };
}

/** A body's text: as it is, or as JSON; undefined where the case sends none. */
export function bodyOf(one: DecisionCase): string | undefined {
  return one.raw_body ?? (one.body === undefined ? undefined : JSON.stringify(one.body));
}

/** A request with the members that matter named, everything else plain. */
export function checkInput(parts: Partial<CheckInput>): CheckInput {
  return {
    method: 'GET',
    path: '/',
    authorization: undefined,
    tenant: undefined,
    upgrade: undefined,
    contentType: undefined,
    contentEncoding: undefined,
    body: new Uint8Array(),
    bodyPartial: false,
    bodyMissing: false,
    clientAddress: undefined,
    ...parts,
  };
}

export function inputOf(one: DecisionCase, defaults: CaseFile['defaults']): CheckInput {
  const body = bodyOf(one);
  return checkInput({
    method: one.method,
    path: one.path,
    tenant: one.tenant,
    upgrade: one.headers?.['upgrade'],
    contentType: body === undefined ? undefined : (one.content_type ?? 'application/json'),
    body: new TextEncoder().encode(body ?? ''),
    clientAddress: one.ip ?? defaults.ip,
  });
}

/** Returns the decision on a case. */
export function decideCase(compiled: CompiledWorld, one: DecisionCase, defaults: CaseFile['defaults']): Decision {
  const nowMs = Date.parse(one.time ?? defaults.time);
  const input = inputOf(one, defaults);
  const identity = identityOf(compiled.world, one.as, nowMs);
  const match = matchRoute(compiled.routes, input);
  return decide(match, input, identity, snapshotOf(compiled, identity, input.tenant), nowMs);
}

/** A decision in the words of the cases: `allow`, or the code of a denial. */
export function codeOf(decision: Decision): string {
  return decision.kind === 'deny' ? decision.code : 'allow';
}
