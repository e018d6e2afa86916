/**
 * A thing as a set-up file writes it, without what says nothing. What is stored and what is wanted are both brought into this form: an
 * export writes it, and a plan is the difference of two. So a second run has nothing to do, and an export applied is the same again.
 */

import type { Conditions, ResourceConstraints } from '../../domain/records.ts';
import type { StoredPolicy } from '../../store/queries/policies.ts';
import type { StoredRole } from '../../store/queries/roles.ts';
import type { StoredTenant } from '../../store/queries/tenants.ts';
import type { StoredUser } from '../../store/queries/users.ts';
import { mergeQuotas, mergeSettings } from '../tenants/merge.ts';

/** Members in the order in which a file shows them; the name of the thing is not among them. */
export type View = Readonly<Record<string, unknown>>;

export function tenantView(tenant: Pick<StoredTenant, 'name' | 'status' | 'settings' | 'quotas'>): View {
  return {
    name: tenant.name,
    status: tenant.status,
    ...filled('settings', mergeSettings(tenant.settings, {})),
    ...filled('quotas', mergeQuotas(tenant.quotas, {})),
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

export function userView(user: Pick<StoredUser, 'name' | 'department' | 'roles' | 'status'>): View {
  return {
    name: user.name,
    ...(user.department === null ? {} : { department: user.department }),
    ...some('roles', user.roles.toSorted()),
    status: user.status,
  };
}

function constraintsView({ models, collections, agents }: ResourceConstraints): View {
  return present({ models, collections, agents });
}

function conditionsView({ ip_address, time, day_of_week, timezone }: Conditions): View {
  return present({
    ip_address: ip_address && present({ in: ip_address.in, not_in: ip_address.not_in }),
    time: time && present({ between: time.between, not_between: time.not_between }),
    day_of_week: day_of_week && present({ in: day_of_week.in, not_in: day_of_week.not_in }),
    timezone,
  });
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
