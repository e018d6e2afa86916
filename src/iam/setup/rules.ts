/** The roles of a tenant, and the policies of a tenant or the global ones, in a setup file. */

import { CONDITION_KEYS, CONDITIONS } from '../../decision/condition-table.ts';
import type { PolicyName, RoleName, TenantId } from '../../domain/ids.ts';
import type { ResourceConstraints, StoredConditions } from '../../domain/records.ts';
import { brokenConstraint } from '../../store/faults.ts';
import { type PolicyRow, type PolicyValues, policyResource } from '../policies/entity.ts';
import { deletePolicyRow, insertPolicy, updatePolicyRow } from '../policies/queries.ts';
import { initialAudience } from '../policies/rules.ts';
import { type RoleRow, type RoleValues, roleResource } from '../roles/entity.ts';
import { deleteRoleRow, insertRole, updateRoleRow } from '../roles/queries.ts';
import { beingRemoved } from '../roles/write.ts';
import type { PlannedAction } from './action.ts';
import type { SetupMembers, View, Wanted } from './members.ts';
import type { SetupError } from './read.ts';
import { auditedResource, planResources, type SetupResource } from './resource-plan.ts';

type PolicyValuesOfFile = Omit<PolicyValues, 'tenant_id' | 'name'>;
export type WantedPolicy = Wanted<PolicyValuesOfFile, PolicyName>;
export type PolicyAction = PlannedAction<PolicyRow, PolicyValuesOfFile, PolicyName>;

export const POLICY_MEMBERS: SetupMembers<PolicyValuesOfFile> = {
  description: { empty: '' },
  effect: {},
  actions: {},
  resources: {},
  conditions: { empty: {}, view: conditionsView },
  applies_to: { initial: 'roles' },
  attached_roles: { empty: [], view: (roles) => roles.toSorted() },
  mode: { empty: 'enforce' },
  enabled: { initial: true },
};

function policyResources(owner: TenantId | null): SetupResource<PolicyRow, PolicyValuesOfFile, PolicyName> {
  const tenant = owner ?? undefined;
  return auditedResource({
    type: 'policy',
    tenant,
    members: POLICY_MEMBERS,
    keyOf: (row) => row.name,
    idOf: (row) => row.name,
    show: policyResource,
    insert: ({ trx }, name, values) => insertPolicy(trx, { tenant_id: owner, name, ...values }),
    update: ({ trx }, before, values) => updatePolicyRow(trx, before.id, { ...before, ...values }),
    remove: ({ trx }, row) => deletePolicyRow(trx, row.id),
  });
}

/**
 * @param owner null: the global policies
 * @param wanted undefined: the file does not state these policies
 */
export function planPolicies(
  owner: TenantId | null,
  wanted: readonly WantedPolicy[] | undefined,
  stored: readonly PolicyRow[],
  prune: boolean,
  errors: SetupError[],
): readonly PolicyAction[] {
  const known = new Set(stored.map((row) => row.name));
  const complete = wanted?.map((policy) => withAudience(policy, known.has(policy.key)));
  return planResources(policyResources(owner), complete, stored, prune, errors);
}

/** Completes the audience by the rules of the API. */
function withAudience(wanted: WantedPolicy, exists: boolean): WantedPolicy {
  const { effect, applies_to, attached_roles } = wanted;
  if (applies_to === 'everyone') return { ...wanted, attached_roles: [] };
  if (attached_roles !== undefined) return { ...wanted, applies_to: 'roles' };
  if (applies_to !== undefined || exists || effect === undefined) return wanted;
  return { ...wanted, applies_to: initialAudience(effect).applies_to };
}

const OPERATORS = [...new Set(Object.values(CONDITIONS).flatMap<string>(({ operators }) => operators))];

/** Members that this version reads come first. Others are included, and `apply` rejects them. */
function conditionsView(stored: StoredConditions): View {
  const { timezone, ...conditions }: View = { ...stored };
  return { ...ordered(conditions, CONDITION_KEYS, operatorsView), ...(timezone === undefined ? {} : { timezone }) };
}

function operatorsView(condition: unknown): unknown {
  return typeof condition === 'object' && condition !== null && !Array.isArray(condition)
    ? ordered({ ...condition }, OPERATORS, (operand) => operand)
    : condition;
}

function ordered(members: View, first: readonly string[], view: (value: unknown) => unknown): View {
  const present = Object.keys(members).filter((name) => members[name] !== undefined);
  const names = [...first.filter((name) => present.includes(name)), ...present.filter((name) => !first.includes(name))];
  return Object.fromEntries(names.map((name) => [name, view(members[name])]));
}

type RoleValuesOfFile = Omit<RoleValues, 'tenant_id' | 'name'>;
export type WantedRole = Wanted<RoleValuesOfFile, RoleName>;
export type RoleAction = PlannedAction<RoleRow, RoleValuesOfFile, RoleName>;

export const ROLE_MEMBERS: SetupMembers<RoleValuesOfFile> = {
  description: { empty: '' },
  permissions: {},
  resource_constraints: { empty: {}, view: constraintsView },
};

export function roleResources(tenant: TenantId): SetupResource<RoleRow, RoleValuesOfFile, RoleName> {
  return auditedResource({
    type: 'role',
    tenant,
    members: ROLE_MEMBERS,
    keyOf: (row) => row.name,
    idOf: (row) => row.name,
    show: roleResource,
    insert: ({ trx }, name, values) =>
      insertRole(trx, { tenant_id: tenant, name, ...values }).catch((error: unknown) => {
        throw brokenConstraint(error) === 'roles_deleted_name' ? beingRemoved(name) : error;
      }),
    update: ({ trx }, before, values) => updateRoleRow(trx, { ...before, ...values }),
    remove: ({ trx }, row) => deleteRoleRow(trx, tenant, row.name),
  });
}

/** Includes kinds that this version does not know, because a file without them would grant more when it is applied. */
function constraintsView({ models, collections, agents, ...others }: ResourceConstraints): View {
  const kinds = Object.entries({ models, collections, agents, ...others });
  return Object.fromEntries(kinds.filter(([, names]) => names !== undefined && names !== null));
}
