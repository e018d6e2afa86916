/** What the API shows of a policy. */

import type { StoredConditions } from '../../domain/records.ts';
import type { StoredPolicy } from './queries.ts';

export interface PolicyResource {
  readonly name: string;
  readonly description: string;
  readonly effect: 'allow' | 'deny';
  readonly actions: readonly string[];
  readonly resources: readonly string[];
  readonly conditions: StoredConditions;
  readonly applies_to: 'everyone' | 'roles';
  readonly attached_roles: readonly string[];
  readonly global: boolean;
  readonly enabled: boolean;
  /** null for global policies. */
  readonly tenant_id: string | null;
  readonly created_at: string;
  readonly updated_at: string;
}

export function policyResource(policy: StoredPolicy): PolicyResource {
  return {
    name: policy.name,
    description: policy.description,
    effect: policy.effect,
    actions: policy.actions,
    resources: policy.resources,
    conditions: policy.conditions,
    applies_to: policy.appliesTo,
    attached_roles: policy.attachedRoles,
    global: policy.tenantId === undefined,
    enabled: policy.enabled,
    tenant_id: policy.tenantId ?? null,
    created_at: policy.createdAt.toISOString(),
    updated_at: policy.updatedAt.toISOString(),
  };
}
