/** Statements on the policies of a tenant and on the global ones, which apply in every tenant. */

import type { PolicyName, RoleName, TenantId } from '../../domain/ids.ts';
import { type Page, type PageRows, pageWithinBytes, scopeBinding, type TenantScope } from '../../store/paging.ts';
import { countUpTo, runPrepared } from '../../store/prepared.ts';
import { type Queryable, writtenRow } from '../../store/queryable.ts';
import { type FilterConditions, filterConditions } from '../list/filters.ts';
import { columnsOf, updateOf } from '../schema/entity.ts';
import { type PolicyFilter, type PolicyRow, type PolicyValues, policy, switchesOf } from './entity.ts';

interface PolicyTable extends PolicyRow {
  readonly reports: boolean;
}

const policies = (q: Queryable) => q<PolicyTable>('policies');

/** SQL for the `enabled` of a policy in its mode. The column is false if the policy only reports. */
const ENABLED_IN_MODE = '(p.enabled or p.reports)';

const POLICY = `select ${columnsOf(policy)
  .map((name) => (name === 'enabled' ? `${ENABLED_IN_MODE} as enabled` : `p.${name}`))
  .join(', ')}, p.octets,
    array(select role_name from policy_roles where policy_id = p.id order by role_name collate "C") as attached_roles
  from policies p`;

const BY_NAME = 'name collate "C"';
const BY_NAME_AND_TENANT = `${BY_NAME}, coalesce(tenant_id, '') collate "C"`;

/** The policies of one tenant and the global ones, as the index has them. */
const VISIBLE = `coalesce(p.tenant_id, '') in (:tenant, '')`;

const ENABLED = {
  name: 'enabled_policies',
  text: `${POLICY} where coalesce(p.tenant_id, '') in ($1, '') and p.enabled order by p.id`,
};
const ENABLED_ALLOWS = {
  name: 'enabled_allow_policies',
  text: `${POLICY} where coalesce(p.tenant_id, '') in ($1, '') and p.effect = 'allow' and p.enabled order by p.id`,
};

/** SQL conditions on `policies p`. The bindings have the names of the filter's members. */
const CONDITIONS: FilterConditions<PolicyFilter> = {
  q: `position(lower(:q) in lower(p.name || E'\\n' || p.description)) > 0`,
  effect: 'p.effect = :effect',
  mode: 'p.mode = :mode',
  enabled: `${ENABLED_IN_MODE} = :enabled`,
  applies_to: 'p.applies_to = :applies_to',
  role: 'exists (select from policy_roles r where r.policy_id = p.id and r.role_name = :role)',
  global: '(p.tenant_id is null) = :global',
};

/** Returns conditions that each begin with `and`. */
function furtherConditions(filter: PolicyFilter): string {
  return ['', ...filterConditions(CONDITIONS, filter)].join(' and ');
}

/**
 * Lists a tenant's policies and the global ones, by name, then tenant. With the scope of every tenant, a filter reads
 * rows in order until the page is full.
 */
export async function listPolicies(
  q: Queryable,
  scope: TenantScope,
  filter: PolicyFilter,
  page: Page,
): Promise<PageRows<PolicyRow>> {
  const conditions = furtherConditions(filter);
  const [name = '', after = ''] = page.after ?? [];
  if (scope.kind === 'every') {
    const order = `p.name collate "C", coalesce(p.tenant_id, '') collate "C"`;
    const rows = `${POLICY} where (${order}) > (:name, :after)${conditions} order by ${order} limit :take`;
    return pageWithinBytes(q, { rows, order: BY_NAME_AND_TENANT }, { ...filter, name, after }, page);
  }
  // Names are unique among a tenant's and the global policies, so the page consists of the first rows of both.
  const of = (owner: string): string =>
    `(select p.id, p.name from policies p where coalesce(p.tenant_id, '') = ${owner} and p.name collate "C" > :name${conditions}
       order by p.name collate "C" limit :take)`;
  const rows = `${POLICY} where ${VISIBLE} and p.id = any(array(
       select id from (${of(':tenant')} union all ${of("''")}) first order by name collate "C" limit :take
     ))`;
  return pageWithinBytes(q, { rows, order: BY_NAME }, { ...scopeBinding(scope), ...filter, name }, page);
}

export async function countPolicies(
  q: Queryable,
  scope: TenantScope,
  filter: PolicyFilter,
  most: number,
): Promise<number> {
  const sql = `select from policies p where ${scope.kind === 'every' ? 'true' : VISIBLE}${furtherConditions(filter)}`;
  return countUpTo(q, { sql, bindings: { ...scopeBinding(scope), ...filter } }, most);
}

/** Finds a policy of the tenant or a global one. Their names are unique together. */
export async function findPolicy(q: Queryable, tenant: TenantId, name: PolicyName): Promise<PolicyRow | undefined> {
  const { rows } = await q.raw<{ rows: PolicyRow[] }>(
    `${POLICY} where ${VISIBLE} and p.name = :name order by p.tenant_id nulls first limit 1`,
    { tenant, name },
  );
  return rows[0];
}

export async function lockPolicy(q: Queryable, tenant: TenantId, name: PolicyName): Promise<void> {
  await q.raw(`select from policies p where ${VISIBLE} and p.name = :name for update`, { tenant, name });
}

/**
 * Locks a name until the transaction ends, in all tenants: no index can keep names unique among a tenant's and the
 * global policies.
 */
export async function reservePolicyName(q: Queryable, name: PolicyName): Promise<void> {
  await q.raw('select pg_advisory_xact_lock(726543481, hashtext(:name))', { name });
}

/**
 * Reports whether the name is taken: for a tenant by its own or a global policy, for a global policy by any policy.
 * @param tenant null: global
 */
export async function isPolicyNameTaken(q: Queryable, tenant: TenantId | null, name: PolicyName): Promise<boolean> {
  const { rows } = await q.raw<{ rows: unknown[] }>(
    `select from policies p where p.name = :name ${tenant === null ? '' : `and ${VISIBLE}`} limit 1`,
    tenant === null ? { name } : { name, tenant },
  );
  return rows.length > 0;
}

/** Returns the allow policies in force of a tenant and the global ones, including those with conditions. */
export function enabledAllowPolicies(q: Queryable, tenant: TenantId): Promise<readonly PolicyRow[]> {
  return runPrepared<PolicyRow>(q, ENABLED_ALLOWS, [tenant]);
}

/** Returns the policies in force of a tenant and the global ones. */
export function enabledPolicies(q: Queryable, tenant: TenantId): Promise<readonly PolicyRow[]> {
  return runPrepared<PolicyRow>(q, ENABLED, [tenant]);
}

/** Lists the policies of a tenant and the global ones that are attached to a role, by name. */
export async function policiesOfRole(
  q: Queryable,
  tenant: TenantId,
  role: RoleName,
  page: Page,
): Promise<PageRows<PolicyRow>> {
  const rows = `${POLICY} join policy_roles r on r.policy_id = p.id
     where ${VISIBLE} and r.role_name = :role and p.name collate "C" > :after
     order by p.name collate "C" limit :take`;
  return pageWithinBytes(q, { rows, order: BY_NAME }, { tenant, role, after: page.after?.[0] ?? '' }, page);
}

export async function countPoliciesOfRole(
  q: Queryable,
  tenant: TenantId,
  role: RoleName,
  most: number,
): Promise<number> {
  const sql = `select from policies p join policy_roles r on r.policy_id = p.id where ${VISIBLE} and r.role_name = :role`;
  return countUpTo(q, { sql, bindings: { tenant, role } }, most);
}

/**
 * Inserts a policy with its attached roles. Throws an error of the constraint `policies_by_name` if the name is taken.
 */
export async function insertPolicy(q: Queryable, { attached_roles, ...values }: PolicyValues): Promise<PolicyRow> {
  const { id } = writtenRow(await policies(q).insert({ ...values, ...columnsOfSwitches(values) }, ['id']));
  await setAttachedRoles(q, id, attached_roles);
  return policyById(q, id);
}

/** Updates a policy and its attached roles. Its name and its tenant never change. */
export async function updatePolicyRow(q: Queryable, id: number, values: PolicyValues): Promise<PolicyRow> {
  await policies(q)
    .where('id', id)
    .update({ ...updateOf(policy, values), ...columnsOfSwitches(values), updated_at: q.raw('clock_timestamp()') });
  await setAttachedRoles(q, id, values.attached_roles);
  return policyById(q, id);
}

function columnsOfSwitches(values: Pick<PolicyRow, 'mode' | 'enabled'>): Pick<PolicyTable, 'enabled' | 'reports'> {
  return { reports: false, ...switchesOf(values) };
}

async function setAttachedRoles(q: Queryable, id: number, roles: readonly RoleName[]): Promise<void> {
  await q('policy_roles')
    .where('policy_id', id)
    .whereNotIn('role_name', [...roles])
    .delete();
  if (roles.length === 0) return;
  const rows = roles.map((role_name) => ({ policy_id: id, role_name }));
  await q('policy_roles').insert(rows).onConflict(['policy_id', 'role_name']).ignore();
}

async function policyById(q: Queryable, id: number): Promise<PolicyRow> {
  const { rows } = await q.raw<{ rows: PolicyRow[] }>(`${POLICY} where p.id = :id`, { id });
  return writtenRow(rows);
}

export async function deletePolicyRow(q: Queryable, id: number): Promise<void> {
  await policies(q).where('id', id).delete();
}

/** Reports whether a policy of the tenant is attached to a role. Global policies attach to built-in roles only. */
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

/** Returns the owners of policies with this name; null for a global policy. */
export async function policyOwners(q: Queryable, name: PolicyName): Promise<readonly (TenantId | null)[]> {
  const rows = await policies(q).where('name', name).orderBy('tenant_id').limit(1000).select('tenant_id');
  return rows.map((row) => row.tenant_id);
}

/** Finds one owner's policy and locks it until the transaction ends. @param owner null: global */
export async function findPolicyOf(
  q: Queryable,
  owner: TenantId | null,
  name: PolicyName,
): Promise<PolicyRow | undefined> {
  const found = await policies(q).where({ tenant_id: owner, name }).forUpdate().first('id');
  return found && policyById(q, found.id);
}
