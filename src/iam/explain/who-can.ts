/**
 * Lists the users and keys that have a permission in a tenant: its users, then, for platform administrators, platform
 * administrators of other tenants, then its keys. `evaluateAccess` of the decision evaluates each. A page reads a
 * bounded number of rows, so it may show fewer than `limit` rows, or none, although there are more.
 */

import type { Ability } from '../../decision/effective-access.ts';
import { parseResource } from '../../decision/effective-access.ts';
import { coveringPatterns, isPermission, permissionOf } from '../../decision/permissions.ts';
import type { CompiledPolicy } from '../../decision/policies.ts';
import { isPlatformAdmin } from '../../decision/tenant.ts';
import { ADMIN } from '../../domain/roles.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { invalidField, tenantGone } from '../caller/refusals.ts';
import { cursorsOf, DEFAULT_LIMIT, jsonBytes, type ListQuery, MAX_PAGE_BYTES } from '../list/list.ts';
import { type AccessEvaluator, accessEvaluator } from './access.ts';
import { gather, type Section, section } from './gather.ts';
import type { GrantedAccess, KeyWithAccess, NamedPolicy, UserWithAccess, WhoCan, WhoCanRequest } from './schemas.ts';
import { type CandidateKey, type CandidateUser, scanHoldersElsewhere, scanKeys, scanUsers } from './who-can-queries.ts';

/**
 * Returns one page. The endpoint has checked the caller's permission.
 * @throws Refusal `invalid_field` unless the permission and the resource are without wildcards; `invalid_parameter`
 */
export async function whoCan(
  parts: Pick<AdminParts, 'db'>,
  caller: Caller,
  request: WhoCanRequest,
  page: ListQuery,
): Promise<WhoCan> {
  const ability = readAbility(request);
  const { effective, global } = caller.snapshot;
  if (effective === undefined) throw tenantGone();
  const evaluator = accessEvaluator(ability, effective, caller.snapshot);
  const cursors = cursorsOf(caller, 'who-can', { ...page, ...request });
  const globals = new Set<CompiledPolicy>([...global.denies.policies, ...global.allows.policies]);
  const counted = new Set<string>();
  const bytesOf = (one: UserWithAccess | KeyWithAccess): number => {
    const names = namesOf(one);
    const added = [...evaluator.named()].filter(({ name }) => names.has(name) && !counted.has(name));
    for (const { name } of added) counted.add(name);
    return jsonBytes(one) + added.reduce((sum, policy) => sum + jsonBytes(namedPolicy(policy, globals.has(policy))), 0);
  };
  const found = await gather(sectionsFor(parts, caller, ability, evaluator), {
    after: cursors.after,
    limit: page.limit ?? DEFAULT_LIMIT,
    spent: evaluator.spent,
    bytesOf,
    maxBytes: MAX_PAGE_BYTES,
  });
  // The evaluator also knows the policies of a row that did not fit.
  const named = new Set(found.shown.flatMap((one) => [...namesOf(one)]));
  return {
    permission: request.permission,
    resource: request.resource ?? null,
    tenant_id: effective.id,
    users: found.shown.filter((one) => one.type === 'user'),
    keys: found.shown.filter((one) => one.type === 'api_key'),
    policies: [...evaluator.named()]
      .filter(({ name }) => named.has(name))
      .map((policy) => namedPolicy(policy, globals.has(policy))),
    platform_administrators: evaluator.platformAdministrators,
    has_more: found.next !== undefined,
    next_cursor: found.next === undefined ? null : cursors.next(found.next),
  };
}

/** Returns the names of the policies that a row names. */
function namesOf({ why, conditions }: GrantedAccess): ReadonlySet<string> {
  return new Set([
    ...conditions,
    ...why.flatMap(({ kind, name }) => (kind === 'policy' && name !== null ? [name] : [])),
  ]);
}

function readAbility({ permission, resource }: WhoCanRequest): Ability {
  if (!isPermission(permission)) {
    throw invalidField('/permission', 'Must be one permission, <resource>:<action>, without wildcards.');
  }
  const named = resource === undefined ? undefined : parseResource(resource);
  if (resource !== undefined && named === undefined) {
    throw invalidField(
      '/resource',
      'Must be one resource, <kind>/<name> with kind models, collections or agents, without wildcards.',
    );
  }
  return { permission: permissionOf(permission), resources: named === undefined ? [] : [named] };
}

function sectionsFor(
  { db }: Pick<AdminParts, 'db'>,
  caller: Caller,
  { permission }: Ability,
  evaluator: AccessEvaluator,
): readonly Section<UserWithAccess | KeyWithAccess>[] {
  const { tenant } = caller;
  const now = new Date(caller.nowMs);
  const ofUser = (user: CandidateUser) => userWithAccess(user, evaluator.user(user));
  const users = section('users', ofUser, (after, take) => scanUsers(db.knex, tenant, evaluator.suffices, after, take));
  const administrators = section('administrators', ofUser, (after, take) =>
    scanHoldersElsewhere(db.knex, ADMIN, tenant, after, take),
  );
  const keys = section(
    'keys',
    (key: CandidateKey) => keyWithAccess(key, evaluator.key(key)),
    (after, take) => scanKeys(db.knex, tenant, coveringPatterns(permission), now, after, take),
  );
  return isPlatformAdmin(caller.principal) ? [users, administrators, keys] : [users, keys];
}

function userWithAccess(user: CandidateUser, access: GrantedAccess | undefined): UserWithAccess | undefined {
  return access && { type: 'user', ...user, platform_admin: user.roles.includes(ADMIN), ...access };
}

function keyWithAccess(key: CandidateKey, access: GrantedAccess | undefined): KeyWithAccess | undefined {
  const { id, description, user_id, expires_at } = key;
  return access && { type: 'api_key', id, description, user_id, expires_at, ...access };
}

function namedPolicy({ name, effect, record }: CompiledPolicy, global: boolean): NamedPolicy {
  return { name, effect, global, conditions: record.conditions };
}
