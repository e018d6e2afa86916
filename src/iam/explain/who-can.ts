/**
 * Asks who may do something in a tenant: its users, then, for platform administrators, those of other tenants, then its keys. Each is
 * asked of the decision itself (decision/effective-access.ts). A page looks at a bounded number of rows, so it may show fewer than asked for,
 * even none, while there are more.
 */

import { type Ability, parseResource, type Verdict } from '../../decision/effective-access.ts';
import { coveringPatterns, isPermission, permissionOf } from '../../decision/permissions.ts';
import type { Policy } from '../../decision/policies.ts';
import { isPlatformAdmin } from '../../decision/tenant.ts';
import type { KeyId, TenantId, UserId } from '../../domain/ids.ts';
import type { StoredConditions } from '../../domain/records.ts';
import { ADMIN } from '../../domain/roles.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { invalidField, tenantGone } from '../caller/refusals.ts';
import { cursorsOf, DEFAULT_LIMIT, jsonBytes, type ListQuery, MAX_PAGE_BYTES } from '../list/list.ts';
import { type AccessEvaluator, accessEvaluator, type GrantedAccess } from './access.ts';
import { gather, type Section, section } from './gather.ts';
import { type CandidateKey, type CandidateUser, scanHoldersElsewhere, scanKeys, scanUsers } from './who-can-queries.ts';

export interface WhoCanRequest {
  /** `<resource>:<action>`, without wildcards. */
  readonly permission: string;
  /** `<kind>/<name>`; `<kind>/` for one that the request does not name; absent: of a route that takes none. */
  readonly resource?: string;
}

export interface UserWithAccess extends GrantedAccess {
  readonly type: 'user';
  readonly id: UserId;
  readonly email: string | null;
  readonly name: string;
  readonly tenant_id: TenantId;
  readonly platform_admin: boolean;
  readonly roles: readonly string[];
}

export interface KeyWithAccess extends GrantedAccess {
  readonly type: 'api_key';
  readonly id: KeyId;
  readonly description: string;
  /** null for a key of the tenant itself. */
  readonly user_id: UserId | null;
  readonly expires_at: string | null;
}

export interface NamedPolicy {
  readonly name: string;
  readonly effect: 'allow' | 'deny';
  readonly global: boolean;
  readonly conditions: StoredConditions;
}

export interface WhoCan {
  readonly permission: string;
  readonly resource: string | null;
  readonly tenant_id: TenantId;
  readonly users: readonly UserWithAccess[];
  readonly keys: readonly KeyWithAccess[];
  /** Those that users and keys of this page name. */
  readonly policies: readonly NamedPolicy[];
  /** Whether platform administrators may; those of other tenants are listed for platform administrators alone. */
  readonly platform_administrators: Verdict;
  readonly has_more: boolean;
  readonly next_cursor: string | null;
}

/**
 * The right to ask has been checked.
 * @throws Refusal `invalid_field` for what is no concrete permission or resource, `invalid_parameter`
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
  const globals = new Set<Policy>([...global.denies.policies, ...global.allows.policies]);
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
  // A row that did not fit names policies, too.
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

/** The policies that a row names. */
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
  const ofUser = (user: CandidateUser) => ableUser(user, evaluator.user(user));
  const users = section('users', ofUser, (after, take) => scanUsers(db.knex, tenant, evaluator.suffices, after, take));
  const administrators = section('administrators', ofUser, (after, take) =>
    scanHoldersElsewhere(db.knex, ADMIN, tenant, after, take),
  );
  const keys = section(
    'keys',
    (key: CandidateKey) => ableKey(key, evaluator.key(key)),
    (after, take) => scanKeys(db.knex, tenant, coveringPatterns(permission), now, after, take),
  );
  return isPlatformAdmin(caller.principal) ? [users, administrators, keys] : [users, keys];
}

function ableUser(
  { id, email, name, tenantId, roles }: CandidateUser,
  able: GrantedAccess | undefined,
): UserWithAccess | undefined {
  if (able === undefined) return undefined;
  return { type: 'user', id, email, name, tenant_id: tenantId, platform_admin: roles.includes(ADMIN), roles, ...able };
}

function ableKey(
  { id, description, owner, expiresAt }: CandidateKey,
  able: GrantedAccess | undefined,
): KeyWithAccess | undefined {
  if (able === undefined) return undefined;
  const expires = expiresAt?.toISOString() ?? null;
  return { type: 'api_key', id, description, user_id: owner?.id ?? null, expires_at: expires, ...able };
}

function namedPolicy({ name, effect, record }: Policy, global: boolean): NamedPolicy {
  return { name, effect, global, conditions: record.conditions };
}
