/** Policies of one tenant and the global ones, which are in force in every tenant. */

import type { PolicyName, RoleName, TenantId } from '../../domain/ids.ts';
import type { StoredConditions } from '../../domain/records.ts';
import {
  type BoundedRow,
  bytesBinding,
  type Page,
  type PageRows,
  pageRows,
  scopeBinding,
  storedPolicy,
  storedRole,
  storedTenant,
  type TenantScope,
  withinBytes,
} from '../../store/paging.ts';
import { countUpTo, runPrepared } from '../../store/prepared.ts';
import type { Queryable } from '../../store/queryable.ts';

/** The row's own number; it never leaves the store's and the use cases' hands. */
export type PolicyNumber = string;

export interface StoredPolicy {
  readonly number: PolicyNumber;
  /** Undefined = global. */
  readonly tenantId: TenantId | undefined;
  readonly name: PolicyName;
  readonly description: string;
  readonly effect: 'allow' | 'deny';
  readonly actions: readonly string[];
  readonly resources: readonly string[];
  readonly conditions: StoredConditions;
  readonly appliesTo: 'everyone' | 'roles';
  readonly attachedRoles: readonly RoleName[];
  readonly enabled: boolean;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

interface PolicyRow {
  readonly number: string;
  readonly tenant_id: string | null;
  readonly name: string;
  readonly description: string;
  readonly effect: 'allow' | 'deny';
  readonly actions: readonly string[];
  readonly resources: readonly string[];
  readonly conditions: StoredConditions;
  readonly applies_to: 'everyone' | 'roles';
  readonly attached_roles: readonly string[];
  readonly enabled: boolean;
  readonly created_at: Date;
  readonly updated_at: Date;
}

const POLICY = `select p.id::text as number, p.tenant_id, p.name, p.description, p.effect, p.actions, p.resources, p.conditions,
    p.applies_to, p.enabled, p.created_at, p.updated_at, p.octets,
    array(select role_name from policy_roles where policy_id = p.id order by role_name collate "C") as attached_roles
  from policies p`;

const BY_NAME = 'name collate "C"';
const BY_NAME_AND_TENANT = `${BY_NAME}, coalesce(tenant_id, '') collate "C"`;

/** Of one tenant or global, in the words of the index. */
const VISIBLE = `coalesce(p.tenant_id, '') in (:tenant, '')`;

const ENABLED_ALLOWS = {
  name: 'enabled_allow_policies',
  text: `${POLICY} where coalesce(p.tenant_id, '') in ($1, '') and p.effect = 'allow' and p.enabled order by p.id`,
};

const ENABLED = {
  name: 'enabled_policies',
  text: `${POLICY} where coalesce(p.tenant_id, '') in ($1, '') and p.enabled order by p.id`,
};

function toPolicy(row: PolicyRow): StoredPolicy {
  return {
    number: row.number,
    tenantId: row.tenant_id === null ? undefined : storedTenant(row.tenant_id),
    name: storedPolicy(row.name),
    description: row.description,
    effect: row.effect,
    actions: row.actions,
    resources: row.resources,
    conditions: row.conditions,
    appliesTo: row.applies_to,
    attachedRoles: row.attached_roles.map(storedRole),
    enabled: row.enabled,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

export interface PolicyFilter {
  /** Any part of name or description, whatever its case. */
  readonly q?: string;
  readonly effect?: 'allow' | 'deny';
  readonly enabled?: boolean;
  readonly applies_to?: 'everyone' | 'roles';
  /** A role that the policy is attached to. */
  readonly role?: string;
  readonly global?: boolean;
}

/** SQL conditions on `policies p`, with the bindings of the filter's own names. */
const CONDITIONS: Readonly<Record<keyof PolicyFilter, string>> = {
  q: `position(lower(:q) in lower(p.name || E'\\n' || p.description)) > 0`,
  effect: 'p.effect = :effect',
  enabled: 'p.enabled = :enabled',
  applies_to: 'p.applies_to = :applies_to',
  role: 'exists (select from policy_roles r where r.policy_id = p.id and r.role_name = :role)',
  global: '(p.tenant_id is null) = :global',
};

function isFilter(name: string): name is keyof PolicyFilter {
  return name in CONDITIONS;
}

/** Begins with `and`; empty without a filter. */
function filterConditions(filter: PolicyFilter): string {
  const names = Object.keys(filter).filter(isFilter);
  return names.map((name) => ` and ${CONDITIONS[name]}`).join('');
}

/**
 * A tenant's policies together with the global ones; by name, then tenant. A tenant's policies are bounded; of every tenant, a filter reads rows
 * in order until the page is full.
 */
export async function listPolicies(
  q: Queryable,
  scope: TenantScope,
  filter: PolicyFilter,
  page: Page,
): Promise<PageRows<StoredPolicy>> {
  const conditions = filterConditions(filter);
  const [name = '', after = ''] = page.after ?? [];
  if (scope.kind === 'every') {
    const order = `p.name collate "C", coalesce(p.tenant_id, '') collate "C"`;
    const every = `${POLICY} where (${order}) > (:name, :after)${conditions} order by ${order} limit :take`;
    const { rows } = await q.raw<{ rows: (PolicyRow & BoundedRow)[] }>(withinBytes(every, BY_NAME_AND_TENANT), {
      ...filter,
      name,
      after,
      ...bytesBinding(page),
      take: page.take,
    });
    return pageRows(rows, page, toPolicy);
  }
  // A name is one policy's, of the tenant or global: the first of either make the page.
  const of = (owner: string): string =>
    `(select p.id, p.name from policies p where coalesce(p.tenant_id, '') = ${owner} and p.name collate "C" > :name${conditions}
       order by p.name collate "C" limit :take)`;
  const visible = `${POLICY} where ${VISIBLE} and p.id = any(array(
       select id from (${of(':tenant')} union all ${of("''")}) first order by name collate "C" limit :take
     ))`;
  const { rows } = await q.raw<{ rows: (PolicyRow & BoundedRow)[] }>(withinBytes(visible, BY_NAME), {
    ...scopeBinding(scope),
    ...filter,
    name,
    ...bytesBinding(page),
    take: page.take,
  });
  return pageRows(rows, page, toPolicy);
}

/** Counts the policies of a list, up to `most`. */
export async function countPolicies(
  q: Queryable,
  scope: TenantScope,
  filter: PolicyFilter,
  most: number,
): Promise<number> {
  const sql = `select from policies p where ${scope.kind === 'every' ? 'true' : VISIBLE}${filterConditions(filter)}`;
  return countUpTo(q, { sql, bindings: { ...scopeBinding(scope), ...filter } }, most);
}

/** Among a tenant's own and the global ones; a name is only one of them. */
export async function findPolicy(q: Queryable, tenant: TenantId, name: PolicyName): Promise<StoredPolicy | undefined> {
  const { rows } = await q.raw<{ rows: PolicyRow[] }>(
    `${POLICY} where ${VISIBLE} and p.name = :name order by p.tenant_id nulls first limit 1`,
    { tenant, name },
  );
  return rows[0] && toPolicy(rows[0]);
}

/** Holds the row until the transaction ends. */
export async function lockPolicy(q: Queryable, tenant: TenantId, name: PolicyName): Promise<void> {
  await q.raw(`select from policies p where ${VISIBLE} and p.name = :name for update`, { tenant, name });
}

/**
 * Serves the makers of policies of one name one after the other, whatever their tenants, until the transaction ends: no index can
 * hold a name unique across a tenant and the global ones.
 */
export async function reservePolicyName(q: Queryable, name: PolicyName): Promise<void> {
  await q.raw('select pg_advisory_xact_lock(726543481, hashtext(:name))', { name });
}

/** Whether the name is taken for this owner: by its own or a global policy; for a global one, by any policy at all. */
export async function isPolicyNameTaken(
  q: Queryable,
  tenant: TenantId | undefined,
  name: PolicyName,
): Promise<boolean> {
  const { rows } = await q.raw<{ rows: unknown[] }>(
    `select from policies p where p.name = :name ${tenant === undefined ? '' : `and ${VISIBLE}`} limit 1`,
    tenant === undefined ? { name } : { name, tenant },
  );
  return rows.length > 0;
}

/** The enabled allow policies that bind somebody in a tenant: its own and the global ones, conditional ones too. */
export async function enabledAllowPolicies(q: Queryable, tenant: TenantId): Promise<readonly StoredPolicy[]> {
  const rows = await runPrepared<PolicyRow>(q, ENABLED_ALLOWS, [tenant]);
  return rows.map(toPolicy);
}

/** The enabled policies of a tenant and the global ones, of either effect. */
export async function enabledPolicies(q: Queryable, tenant: TenantId): Promise<readonly StoredPolicy[]> {
  const rows = await runPrepared<PolicyRow>(q, ENABLED, [tenant]);
  return rows.map(toPolicy);
}

/** The policies of a tenant and the global ones that are attached to a role, by name. */
export async function policiesOfRole(
  q: Queryable,
  tenant: TenantId,
  role: RoleName,
  page: Page,
): Promise<PageRows<StoredPolicy>> {
  const attached = `${POLICY} join policy_roles r on r.policy_id = p.id
     where ${VISIBLE} and r.role_name = :role and p.name collate "C" > :after
     order by p.name collate "C" limit :take`;
  const { rows } = await q.raw<{ rows: (PolicyRow & BoundedRow)[] }>(withinBytes(attached, BY_NAME), {
    tenant,
    role,
    after: page.after?.[0] ?? '',
    ...bytesBinding(page),
    take: page.take,
  });
  return pageRows(rows, page, toPolicy);
}

/** Counts the policies that are attached to a role, up to `most`. */
export async function countPoliciesOfRole(
  q: Queryable,
  tenant: TenantId,
  role: RoleName,
  most: number,
): Promise<number> {
  const sql = `select from policies p join policy_roles r on r.policy_id = p.id where ${VISIBLE} and r.role_name = :role`;
  return countUpTo(q, { sql, bindings: { tenant, role } }, most);
}

export type NewPolicy = Omit<StoredPolicy, 'number' | 'createdAt' | 'updatedAt'>;

/** Its roles are attached apart. Fails with a broken `policies_by_name` when the name is taken. */
export async function insertPolicy(q: Queryable, policy: NewPolicy): Promise<PolicyNumber> {
  const { rows } = await q.raw<{ rows: { number: string }[] }>(
    `insert into policies (tenant_id, name, description, effect, actions, resources, conditions, applies_to, enabled)
     values (:tenant, :name, :description, :effect, cast(:actions as text[]), cast(:resources as text[]), cast(:conditions as jsonb), :appliesTo, :enabled)
     returning id::text as number`,
    bindings(policy),
  );
  return rows[0]?.number ?? '';
}

/** Its name and its owner never change. */
export async function updatePolicy(q: Queryable, number: PolicyNumber, policy: NewPolicy): Promise<void> {
  await q.raw(
    `update policies set description = :description, effect = :effect, actions = cast(:actions as text[]), resources = cast(:resources as text[]),
       conditions = cast(:conditions as jsonb), applies_to = :appliesTo, enabled = :enabled, updated_at = clock_timestamp()
     where id = :number`,
    { ...bindings(policy), number },
  );
}

/** Makes the attached roles exactly these. */
export async function setAttachedRoles(q: Queryable, number: PolicyNumber, roles: readonly RoleName[]): Promise<void> {
  await q.raw('delete from policy_roles where policy_id = :number and role_name <> all(cast(:roles as text[]))', {
    number,
    roles,
  });
  await q.raw(
    'insert into policy_roles (policy_id, role_name) select :number, unnest(cast(:roles as text[])) on conflict do nothing',
    { number, roles },
  );
}

export async function deletePolicy(q: Queryable, number: PolicyNumber): Promise<void> {
  await q.raw('delete from policies where id = :number', { number });
}

/** Whether any policy of the tenant is attached to a role. Global ones attach to built-in roles alone. */
export async function isRoleAttached(q: Queryable, tenant: TenantId, role: RoleName): Promise<boolean> {
  const { rows } = await q.raw<{ rows: unknown[] }>(
    `select from policy_roles r join policies p on p.id = r.policy_id where coalesce(p.tenant_id, '') = :tenant and r.role_name = :role limit 1`,
    { tenant, role },
  );
  return rows.length > 0;
}

export async function detachRoleFromAll(q: Queryable, tenant: TenantId, role: RoleName): Promise<void> {
  await q.raw(
    `delete from policy_roles r using policies p where p.id = r.policy_id and coalesce(p.tenant_id, '') = :tenant and r.role_name = :role`,
    { tenant, role },
  );
}

function bindings(policy: NewPolicy) {
  return {
    tenant: policy.tenantId ?? null,
    name: policy.name,
    description: policy.description,
    effect: policy.effect,
    actions: policy.actions,
    resources: policy.resources,
    conditions: JSON.stringify(policy.conditions),
    appliesTo: policy.appliesTo,
    enabled: policy.enabled,
  };
}

/** Who has a policy of that name: tenants, and undefined for a global one. */
export async function policyOwners(q: Queryable, name: PolicyName): Promise<readonly (TenantId | undefined)[]> {
  const { rows } = await q.raw<{ rows: { tenant_id: TenantId | null }[] }>(
    'select tenant_id from policies where name = :name order by tenant_id limit 1000',
    { name },
  );
  return rows.map((row) => row.tenant_id ?? undefined);
}

/** One owner's policy, held until the transaction ends; undefined as owner = global. */
export async function findPolicyOf(
  q: Queryable,
  owner: TenantId | undefined,
  name: PolicyName,
): Promise<StoredPolicy | undefined> {
  await q.raw('select from policies where tenant_id is not distinct from :owner and name = :name for update', {
    owner: owner ?? null,
    name,
  });
  const { rows } = await q.raw<{ rows: PolicyRow[] }>(
    `${POLICY} where p.tenant_id is not distinct from :owner and p.name = :name`,
    { owner: owner ?? null, name },
  );
  return rows[0] && toPolicy(rows[0]);
}
