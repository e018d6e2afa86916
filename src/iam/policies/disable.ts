/** Switches a policy off for whoever runs the server: the way back in when it locked its author out. No caller is asked. */

import { Refusal } from '../../domain/errors.ts';
import type { TenantId } from '../../domain/ids.ts';
import type { AdminParts } from '../caller/caller.ts';
import { notFound } from '../caller/refusals.ts';
import { OPERATOR } from '../change/audit-row.ts';
import { changeAsSystem } from '../change/change.ts';
import { findPolicyOf, policyOwners, updatePolicy } from './queries.ts';
import { policyNameOf } from './read.ts';
import { policyResource } from './resource.ts';

/**
 * @param tenant whose policy; undefined where the name says it alone. A global policy is found by its name in any case.
 * @returns the tenant it belongs to; undefined = global
 * @throws Refusal `not_found`; `invalid_parameter` when several tenants have a policy of that name and none was given
 */
export async function disablePolicy(
  parts: Pick<AdminParts, 'db' | 'feed' | 'flush'>,
  text: string,
  tenant: TenantId | undefined,
): Promise<TenantId | undefined> {
  const target = { type: 'policy', id: text } as const;
  return changeAsSystem(parts, OPERATOR, { action: 'policy.disable', target }, async (trx, audit) => {
    const name = policyNameOf(text);
    const owners = (await policyOwners(trx, name)).filter(
      (owner) => tenant === undefined || owner === undefined || owner === tenant,
    );
    if (owners.length === 0) throw notFound('policy');
    if (owners.length > 1) {
      const tenants = owners.slice(0, 10).join(', ');
      throw new Refusal(
        'invalid_parameter',
        `${owners.length} tenants have a policy ${name} (${tenants}). Name one of them with --tenant.`,
      );
    }
    const owner = owners[0];
    const policy = await findPolicyOf(trx, owner, name);
    if (policy === undefined) throw notFound('policy');
    await updatePolicy(trx, policy.number, { ...policy, enabled: false });
    audit.tenant = owner;
    audit.before = policyResource(policy);
    audit.after = policyResource({ ...policy, enabled: false });
    return owner;
  });
}
