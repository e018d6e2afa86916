/**
 * Lists the roles, users and keys with access in a tenant: to a permission, to a resource, or to both. The order is:
 * roles, the tenant's users, then, for platform administrators, platform administrators of other tenants, then keys.
 * `evaluateAccess` of the decision evaluates each. A page reads a bounded number of rows, so it may show fewer than
 * `limit` rows, or none, although there are more.
 */

import { type Ability, parseResource } from '../../decision/effective-access.ts';
import type { Resource, ResourceSource, Route, TenantView } from '../../decision/model.ts';
import { coveringPatterns, isPermission, permissionOf } from '../../decision/permissions.ts';
import type { CompiledPolicy } from '../../decision/policies.ts';
import type { RouteTable } from '../../decision/routes.ts';
import { isPlatformAdmin } from '../../decision/tenant.ts';
import { Refusal } from '../../domain/errors.ts';
import type { RoleName } from '../../domain/ids.ts';
import { ADMIN, BUILTIN_ROLES, isBuiltinRole } from '../../domain/roles.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { invalidField, tenantGone } from '../caller/refusals.ts';
import { cursorsOf, DEFAULT_LIMIT, jsonBytes, type ListQuery, MAX_PAGE_BYTES } from '../list/list.ts';
import { type AccessEvaluator, accessEvaluator } from './access.ts';
import { type Gathered, gather, type PageOf, type Section, section } from './gather.ts';
import type {
  GrantedAccess,
  KeyWithAccess,
  NamedPolicy,
  RoleWithAccess,
  UserWithAccess,
  WhoCan,
  WhoCanRequest,
} from './schemas.ts';
import { type CandidateKey, type CandidateUser, scanHoldersElsewhere, scanKeys, scanUsers } from './who-can-queries.ts';

export interface WhoCanParts extends Pick<AdminParts, 'db'> {
  readonly routes: RouteTable;
}

export type AccessRow = UserWithAccess | KeyWithAccess | RoleWithAccess;

/** The principals that a list shows. */
export type Listed = 'principals' | 'roles_and_principals';

/** The abilities of a request. A principal is listed if it has one of them. */
type Abilities = readonly Ability[];

/**
 * Returns one page. The endpoint has checked the caller's permission.
 * @throws Refusal `invalid_parameter` for the cursor of another list
 */
export async function whoCan(
  parts: WhoCanParts,
  caller: Caller,
  request: WhoCanRequest,
  abilities: Abilities,
  listed: Listed,
  page: ListQuery,
): Promise<WhoCan> {
  const cursors = cursorsOf(caller, listedName(listed), { ...page, ...request });
  const limit = page.limit ?? DEFAULT_LIMIT;
  const { found, evaluator, isGlobal, tenant } = await gatherAccess(parts, caller, abilities, listed, {
    after: cursors.after,
    limit,
    maxBytes: MAX_PAGE_BYTES,
  });
  const { shown, next } = found;
  // The evaluator also knows the policies of a row that did not fit.
  const named = new Set(shown.flatMap((one) => [...namesOf(one)]));
  return {
    permission: request.permission ?? null,
    resource: request.resource ?? null,
    tenant_id: tenant.id,
    users: shown.filter((one) => one.type === 'user'),
    keys: shown.filter((one) => one.type === 'api_key'),
    ...(listed === 'principals' ? {} : { roles: shown.filter((one) => one.type === 'role') }),
    policies: [...evaluator.named()]
      .filter(({ name }) => named.has(name))
      .map((policy) => namedPolicy(policy, isGlobal(policy))),
    platform_administrators: evaluator.platformAdministrators,
    has_more: next !== undefined,
    next_cursor: next === undefined ? null : cursors.next(next),
  };
}

/** The name of the list for its cursors. */
export function listedName(listed: Listed): string {
  return listed === 'principals' ? 'who-can' : 'who-can with roles';
}

interface FoundAccess {
  readonly found: Gathered<AccessRow>;
  readonly evaluator: AccessEvaluator;
  readonly isGlobal: (policy: CompiledPolicy) => boolean;
  readonly tenant: TenantView;
}

/** Gathers the rows of one page, with the policies that they name. */
export async function gatherAccess(
  parts: Pick<AdminParts, 'db'>,
  caller: Caller,
  abilities: Abilities,
  listed: Listed,
  page: Omit<PageOf<AccessRow>, 'spent' | 'bytesOf'>,
): Promise<FoundAccess> {
  const { effective, global } = caller.snapshot;
  if (effective === undefined) throw tenantGone();
  const evaluator = accessEvaluator(abilities, effective, caller.snapshot);
  const globals = new Set<CompiledPolicy>([...global.denies.policies, ...global.allows.policies]);
  const isGlobal = (policy: CompiledPolicy): boolean => globals.has(policy);
  const counted = new Set<string>();
  const bytesOf = (one: AccessRow): number => {
    const names = namesOf(one);
    const added = [...evaluator.named()].filter(({ name }) => names.has(name) && !counted.has(name));
    for (const { name } of added) counted.add(name);
    return jsonBytes(one) + added.reduce((sum, policy) => sum + jsonBytes(namedPolicy(policy, isGlobal(policy))), 0);
  };
  const principals = sectionsFor(parts, caller, abilities, evaluator);
  const sections = listed === 'principals' ? principals : [rolesSection(effective, evaluator), ...principals];
  return {
    found: await gather(sections, { ...page, spent: evaluator.spent, bytesOf }),
    evaluator,
    isGlobal,
    tenant: effective,
  };
}

/** Returns the names of the policies that a row names. */
function namesOf({ why, conditions }: GrantedAccess): ReadonlySet<string> {
  return new Set([
    ...conditions,
    ...why.flatMap(({ kind, name }) => (kind === 'policy' && name !== null ? [name] : [])),
  ]);
}

/**
 * Reads the body of a request.
 * @throws Refusal `invalid_field` unless the permission and the resource are without wildcards
 */
export function abilitiesInBody({ routes }: WhoCanParts, request: WhoCanRequest): Abilities {
  return readAbilities(routes, request, (name, message) => invalidField(`/${name}`, message));
}

/**
 * Reads the query of a request.
 * @throws Refusal `invalid_parameter` without a permission and a resource, and for one with wildcards
 */
export function abilitiesInQuery({ routes }: WhoCanParts, request: WhoCanRequest): Abilities {
  return readAbilities(
    routes,
    request,
    (param, message) => new Refusal('invalid_parameter', `${param}: ${message}`, { param }),
  );
}

type Invalid = (name: 'permission' | 'resource', message: string) => Refusal;

function readAbilities(routes: RouteTable, { permission, resource }: WhoCanRequest, invalid: Invalid): Abilities {
  if (permission !== undefined && !isPermission(permission)) {
    throw invalid('permission', 'Must be one permission, <resource>:<action>, without wildcards.');
  }
  const named = resource === undefined ? undefined : parseResource(resource);
  if (resource !== undefined && named === undefined) {
    throw invalid(
      'resource',
      'Must be one resource, <kind>/<name> with kind models, collections or agents, without wildcards.',
    );
  }
  const resources = named === undefined ? [] : [named];
  if (permission !== undefined) return [{ permissions: [permissionOf(permission)], resources }];
  if (named === undefined) throw invalid('permission', 'Name a permission, a resource, or both.');
  return permissionsFor(routes, named).map((permissions) => ({ permissions, resources }));
}

const SOURCES = { models: 'model', collections: 'collection', agents: 'agent' } as const;

/** Returns the different permissions of the routes whose requests may name the resource, or leave it unnamed. */
function permissionsFor({ routes }: RouteTable, { kind, name }: Resource): readonly Route['permissions'][] {
  const sources: readonly ResourceSource[] = name === undefined ? ['body', 'unknown'] : ['path', 'body'];
  const named = routes.filter((route) => sources.includes(route[SOURCES[kind]]));
  return [
    ...new Map(
      named.map(({ permissions }) => [permissions.map(({ text }) => text).join(' '), permissions] as const),
    ).values(),
  ];
}

function sectionsFor(
  { db }: Pick<AdminParts, 'db'>,
  caller: Caller,
  abilities: Abilities,
  evaluator: AccessEvaluator,
): readonly Section<AccessRow>[] {
  const { tenant } = caller;
  const now = new Date(caller.nowMs);
  const scopes = [...new Set(abilities.flatMap(({ permissions }) => permissions.flatMap(coveringPatterns)))];
  const ofUser = (user: CandidateUser) => userWithAccess(user, evaluator.user(user));
  const users = section('users', ofUser, (after, take) => scanUsers(db.knex, tenant, evaluator.suffices, after, take));
  const administrators = section('administrators', ofUser, (after, take) =>
    scanHoldersElsewhere(db.knex, ADMIN, tenant, after, take),
  );
  const keys = section(
    'keys',
    (key: CandidateKey) => keyWithAccess(key, evaluator.key(key)),
    (after, take) => scanKeys(db.knex, tenant, scopes, now, after, take),
  );
  return isPlatformAdmin(caller.principal) ? [users, administrators, keys] : [users, keys];
}

/** The built-in and custom roles of the tenant, in the order of their names. */
function rolesSection({ roles }: TenantView, evaluator: AccessEvaluator): Section<AccessRow> {
  const names = [...BUILTIN_ROLES.map((role) => role.name), ...roles.keys()].toSorted((a, b) => (a < b ? -1 : 1));
  return section(
    'roles',
    ({ id }: { readonly id: RoleName }) => roleWithAccess(id, evaluator.role(id)),
    async (after, take) => {
      const following = names.filter((name) => name > after).slice(0, take);
      return {
        candidates: following.map((id) => ({ id })),
        lastId: following.at(-1),
        passed: following.length,
        exhausted: following.length < take,
      };
    },
  );
}

function userWithAccess(user: CandidateUser, access: GrantedAccess | undefined): UserWithAccess | undefined {
  return access && { type: 'user', ...user, platform_admin: user.roles.includes(ADMIN), ...access };
}

function keyWithAccess(key: CandidateKey, access: GrantedAccess | undefined): KeyWithAccess | undefined {
  const { id, description, user_id, expires_at } = key;
  return access && { type: 'api_key', id, description, user_id, expires_at, ...access };
}

function roleWithAccess(name: RoleName, access: GrantedAccess | undefined): RoleWithAccess | undefined {
  return access && { type: 'role', name, builtin: isBuiltinRole(name), ...access };
}

function namedPolicy({ name, effect, record }: CompiledPolicy, global: boolean): NamedPolicy {
  return { name, effect, global, conditions: record.conditions };
}
