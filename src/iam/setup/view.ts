/**
 * A thing as a set-up file writes it, without what says nothing. What is stored and what is wanted are both brought into this form: an
 * export writes it, and a plan is the difference of two. So a second run has nothing to do, and an export applied is the same again.
 */

import { CONDITION_KEYS, CONDITIONS } from '../../decision/condition-table.ts';
import type { Metadata, ResourceConstraints, StoredConditions } from '../../domain/records.ts';
import type { StoredPolicy } from '../policies/queries.ts';
import type { StoredRole } from '../roles/queries.ts';
import { mergeQuotas, mergeSettings } from '../tenants/merge.ts';
import type { StoredTenant } from '../tenants/queries.ts';
import type { StoredUser } from '../users/queries.ts';

/** Members in the order in which a file shows them; the name of the thing is not among them. */
export type View = Readonly<Record<string, unknown>>;

export function tenantView(tenant: Pick<StoredTenant, 'name' | 'status' | 'settings' | 'quotas' | 'metadata'>): View {
  return {
    name: tenant.name,
    status: tenant.status,
    ...filled('settings', mergeSettings(tenant.settings, {})),
    ...filled('quotas', mergeQuotas(tenant.quotas, {})),
    ...filled('metadata', metadataView(tenant.metadata)),
  };
}

export function roleView(role: Pick<StoredRole, 'description' | 'permissions' | 'constraints'>): View {
  return {
    ...text('description', role.description),
    permissions: role.permissions,
    ...filled('resource_constraints', constraintsView(role.constraints)),
  };
}

type PolicyParts = Omit<StoredPolicy, 'number' | 'tenantId' | 'name' | 'createdAt' | 'updatedAt'>;

export function policyView(policy: PolicyParts): View {
  return {
    ...text('description', policy.description),
    effect: policy.effect,
    actions: policy.actions,
    resources: policy.resources,
    ...filled('conditions', conditionsView(policy.conditions)),
    applies_to: policy.appliesTo,
    ...some('attached_roles', policy.attachedRoles.toSorted()),
    enabled: policy.enabled,
  };
}

export function userView(user: Pick<StoredUser, 'name' | 'department' | 'metadata' | 'roles' | 'status'>): View {
  return {
    name: user.name,
    ...(user.department === null ? {} : { department: user.department }),
    ...filled('metadata', metadataView(user.metadata)),
    ...some('roles', user.roles.toSorted()),
    status: user.status,
  };
}

/** Kinds that this version does not know are written too: a file without them would give more when it is applied. */
function constraintsView({ models, collections, agents, ...others }: ResourceConstraints): View {
  return present({ models, collections, agents, ...others });
}

const OPERATORS = [...new Set(Object.values(CONDITIONS).flatMap<string>(({ operators }) => operators))];

/** As stored, with what this version reads first. A condition that it cannot read is written too, and `apply` refuses it. */
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

/** By key, in the order of bytes: PostgreSQL stores shorter keys first. */
function metadataView(metadata: Metadata): View {
  return Object.fromEntries(Object.entries(metadata).toSorted(([left], [right]) => (left < right ? -1 : 1)));
}

function present(members: View): View {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined && value !== null));
}

function filled(name: string, members: object): View {
  return Object.keys(members).length === 0 ? {} : { [name]: members };
}

function some(name: string, list: readonly string[]): View {
  return list.length === 0 ? {} : { [name]: list };
}

function text(name: string, value: string): View {
  return value === '' ? {} : { [name]: value };
}
