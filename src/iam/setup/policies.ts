/** The actions that make the policies of a tenant, or the global ones, be as a set-up says. */

import { Fault } from '../../domain/errors.ts';
import type { PolicyName, TenantId } from '../../domain/ids.ts';
import {
  deletePolicy,
  findPolicyOf,
  insertPolicy,
  type NewPolicy,
  type StoredPolicy,
  setAttachedRoles,
  updatePolicy,
} from '../policies/queries.ts';
import { policyResource } from '../policies/resource.ts';
import type { ApplyContext, PlannedAction } from './action.ts';
import { difference } from './difference.ts';
import type { SetupError } from './read.ts';
import type { WantedPolicy } from './setup.ts';
import { policyView } from './view.ts';

/** A action for a policy, with the policy as it will be; undefined = deleted. */
export interface PolicyAction extends PlannedAction {
  readonly policy: NewPolicy | undefined;
}

/**
 * @param tenant undefined = the global ones
 * @param wanted undefined = not the set-up's business
 */
export function policyActions(
  tenant: TenantId | undefined,
  wanted: readonly WantedPolicy[] | undefined,
  stored: readonly StoredPolicy[],
  prune: boolean,
  errors: SetupError[],
): readonly PolicyAction[] {
  if (wanted === undefined) return [];
  const before = new Map(stored.map((policy) => [policy.name, policy]));
  const named = new Set(wanted.map((policy) => policy.name));
  const gone = prune ? stored.filter((policy) => !named.has(policy.name)) : [];
  return [
    ...wanted.flatMap((policy) => writing(tenant, policy, before.get(policy.name), errors)),
    ...gone.map(deletion),
  ];
}

/** The policies that there will be after these actions. */
export function policiesAfter(stored: readonly StoredPolicy[], actions: readonly PolicyAction[]): readonly NewPolicy[] {
  const after = new Map<PolicyName, NewPolicy>(stored.map((policy) => [policy.name, policy]));
  const gone = new Set<string>();
  for (const { name, policy } of actions) {
    if (policy === undefined) gone.add(name);
    else after.set(policy.name, policy);
  }
  return [...after.values()].filter((policy) => !gone.has(policy.name));
}

function writing(
  tenantId: TenantId | undefined,
  wanted: WantedPolicy,
  before: StoredPolicy | undefined,
  errors: SetupError[],
): readonly PolicyAction[] {
  const effect = wanted.effect ?? before?.effect;
  const actions = wanted.actions ?? before?.actions;
  const resources = wanted.resources ?? before?.resources;
  if (effect === undefined || actions === undefined || resources === undefined) {
    for (const [member, value] of Object.entries({ effect, actions, resources }))
      if (value === undefined)
        errors.push({ path: `${wanted.at}/${member}`, message: 'This member is required for a new policy.' });
    return [];
  }
  const policy: NewPolicy = {
    tenantId,
    name: wanted.name,
    description: wanted.description ?? before?.description ?? '',
    effect,
    actions,
    resources,
    conditions: wanted.conditions ?? before?.conditions ?? {},
    ...audienceOf(wanted, before, effect),
    enabled: wanted.enabled ?? before?.enabled ?? true,
  };
  const changes = difference(before === undefined ? {} : policyView(before), policyView(policy));
  const about = {
    type: 'policy',
    tenant: tenantId,
    name: policy.name,
    changes,
    stage: 'write policies',
    policy,
  } as const;
  if (before === undefined) return [{ ...about, verb: 'create', run: (to) => create(to, policy) }];
  return changes.length === 0 ? [] : [{ ...about, verb: 'change', run: (to) => change(to, before, policy) }];
}

/** As the API has it: a new deny is for everyone and a new allow for roles, unless it says otherwise; naming roles means `roles`. */
function audienceOf(
  { appliesTo, attachedRoles }: WantedPolicy,
  before: StoredPolicy | undefined,
  effect: NewPolicy['effect'],
): Pick<NewPolicy, 'appliesTo' | 'attachedRoles'> {
  if (appliesTo === 'everyone') return { appliesTo, attachedRoles: [] };
  const initial = before?.appliesTo ?? (effect === 'deny' ? 'everyone' : 'roles');
  return {
    appliesTo: attachedRoles === undefined ? (appliesTo ?? initial) : 'roles',
    attachedRoles: attachedRoles ?? before?.attachedRoles ?? [],
  };
}

function deletion(policy: StoredPolicy): PolicyAction {
  return {
    verb: 'delete',
    type: 'policy',
    tenant: policy.tenantId,
    name: policy.name,
    changes: [],
    policy: undefined,
    stage: 'delete policies',
    run: async (to) => {
      await deletePolicy(to.trx, policy.number);
      await audit(to, 'policy.delete', policy, { before: policyResource(policy) });
    },
  };
}

async function create(to: ApplyContext, policy: NewPolicy): Promise<void> {
  await setAttachedRoles(to.trx, await insertPolicy(to.trx, policy), policy.attachedRoles);
  await audit(to, 'policy.create', policy, { after: policyResource(await written(to, policy)) });
}

async function change(to: ApplyContext, before: StoredPolicy, policy: NewPolicy): Promise<void> {
  await updatePolicy(to.trx, before.number, policy);
  await setAttachedRoles(to.trx, before.number, policy.attachedRoles);
  const now = await written(to, policy);
  await audit(to, 'policy.update', policy, { before: policyResource(before), after: policyResource(now) });
}

async function written({ trx }: ApplyContext, { tenantId, name }: NewPolicy): Promise<StoredPolicy> {
  const policy = await findPolicyOf(trx, tenantId, name);
  if (policy === undefined) throw new Fault('a policy that was just written no longer exists');
  return policy;
}

function audit(
  to: ApplyContext,
  action: string,
  policy: NewPolicy,
  states: { before?: unknown; after?: unknown },
): Promise<void> {
  return to.audit({ action, target: { type: 'policy', id: policy.name }, tenant: policy.tenantId, ...states });
}
