/**
 * Disables a policy for the operator, for example if the policy locks its author out. There is no caller whose
 * permissions count.
 */

import type { TenantId } from '../../domain/ids.ts';
import type { AdminParts } from '../caller/caller.ts';
import { onlyOneNamed, orNotFound } from '../caller/refusals.ts';
import { OPERATOR } from '../change/audit-row.ts';
import { changeAsSystem } from '../change/change.ts';
import { policyResource } from './entity.ts';
import { findPolicyOf, policyOwners, updatePolicyRow } from './queries.ts';
import { policyNameOf } from './read.ts';

/**
 * @param tenant the tenant of the policy; undefined if its name is unique. A global policy is found with any tenant.
 * @returns the policy's tenant; null for a global policy
 * @throws Refusal `not_found`; `invalid_parameter` if several tenants have a policy with that name and no tenant is
 *   named
 */
export async function disablePolicy(
  parts: Pick<AdminParts, 'db' | 'feed' | 'flush'>,
  text: string,
  tenant: TenantId | undefined,
): Promise<TenantId | null> {
  const target = { type: 'policy', id: text } as const;
  return changeAsSystem(parts, OPERATOR, { action: 'policy.disable', target }, async (trx, audit) => {
    const name = policyNameOf(text);
    const owners = (await policyOwners(trx, name)).map((tenant_id) => ({ tenant_id }));
    const { tenant_id: owner } = onlyOneNamed(owners, 'policy', name, tenant);
    const policy = orNotFound(await findPolicyOf(trx, owner, name), 'policy');
    const updated = await updatePolicyRow(trx, policy.id, { ...policy, enabled: false });
    audit.tenant = owner ?? undefined;
    audit.before = policyResource(policy);
    audit.after = policyResource(updated);
    return owner;
  });
}
