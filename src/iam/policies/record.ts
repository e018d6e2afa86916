/** The part of a stored policy that deciding looks at. */

import type { PolicyRecord } from '../../domain/records.ts';
import type { NewPolicy } from './queries.ts';

export function recordOf(policy: NewPolicy): PolicyRecord {
  return {
    name: policy.name,
    effect: policy.effect,
    actions: policy.actions,
    resources: policy.resources,
    conditions: policy.conditions,
    appliesTo: policy.appliesTo,
    attachedRoles: policy.attachedRoles,
    enabled: policy.enabled,
  };
}
