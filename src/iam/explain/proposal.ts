/** Reads proposed roles and policies by the rules for their creation and update. */

import type { TenantView } from '../../decision/model.ts';
import type { Proposal } from '../../decision/proposed.ts';
import { Refusal } from '../../domain/errors.ts';
import { type PolicyName, parsePolicyName, parseRoleName, type RoleName, type TenantId } from '../../domain/ids.ts';
import type { FieldError } from '../../domain/problem-details.ts';
import type { RoleRecord } from '../../domain/records.ts';
import { BUILTIN_ROLES, isBuiltinRole } from '../../domain/roles.ts';
import { invalidField, invalidFields, throwIfInvalid } from '../caller/refusals.ts';
import { type NewPolicy, policyRecord } from '../policies/entity.ts';
import { readNewPolicy } from '../policies/write.ts';
import { type NewRole, roleRecord } from '../roles/entity.ts';
import { readNewRole } from '../roles/write.ts';
import type { ProposalRequest } from './schemas.ts';

/** The tenant of a proposal, and the permissions of its author. */
interface ProposalPlace {
  /** Its custom roles may be attached, as well as proposed and built-in roles. */
  readonly tenant: Pick<TenantView, 'id' | 'roles'>;
  /** The proposed names that a policy already has. */
  readonly taken: ReadonlyMap<PolicyName, 'global' | 'tenant'>;
  /** @throws Refusal `escalation` for null (global) unless the author may write global policies */
  readonly mayWriteOwner: (owner: TenantId | null) => void;
}

const BUILTIN = BUILTIN_ROLES.map((role) => role.name);

/** Returns the valid names of the policies that are proposed or removed. */
export function proposedNames({ policies = [], remove }: ProposalRequest): readonly PolicyName[] {
  const names = [...policies.map(({ name }) => name), ...(remove?.policies ?? [])];
  return names.flatMap((name) => parsePolicyName(name) ?? []);
}

/** @throws Refusal `invalid_field`, with paths that begin at the list: `/policies/0/conditions/time`; `escalation` */
export function readProposal(request: ProposalRequest, place: ProposalPlace): Proposal {
  const { policies = [], roles = [], remove = {} } = request;
  const removed = readRemoved(remove, place);
  const proposedRoles = roles.map((role, i) => within(`/roles/${i}`, () => readRole(role)));
  refuseRepeats('/roles', proposedRoles);
  const read = policies.map((policy, i) =>
    within(`/policies/${i}`, () => readPolicy(policy, place, proposedRoles, removed.roles)),
  );
  refuseRepeats(
    '/policies',
    read.map(({ record }) => record),
  );
  const recordsOf = (global: boolean) => read.filter((one) => one.global === global).map(({ record }) => record);
  return { roles: proposedRoles, policies: recordsOf(false), globalPolicies: recordsOf(true), removed };
}

/** The rules that a proposal removes must exist, because a name with a mistake would remove nothing. */
function readRemoved({ policies = [], roles = [] }: NonNullable<ProposalRequest['remove']>, place: ProposalPlace) {
  const errors: FieldError[] = [];
  const removedPolicies = policies.flatMap((text, i): readonly PolicyName[] => {
    const name = parsePolicyName(text);
    const owner = name && place.taken.get(name);
    if (name === undefined || owner === undefined) {
      errors.push({ path: `/remove/policies/${i}`, message: 'This policy does not exist.' });
      return [];
    }
    place.mayWriteOwner(owner === 'global' ? null : place.tenant.id);
    return [name];
  });
  const removedRoles = roles.flatMap((text, i): readonly RoleName[] => {
    if (isBuiltinRole(text)) {
      errors.push({ path: `/remove/roles/${i}`, message: 'Built-in roles cannot be deleted.' });
      return [];
    }
    const name = parseRoleName(text);
    if (name !== undefined && place.tenant.roles.has(name)) return [name];
    errors.push({ path: `/remove/roles/${i}`, message: 'This role does not exist in the tenant.' });
    return [];
  });
  throwIfInvalid(errors);
  return { policies: new Set(removedPolicies), roles: new Set(removedRoles) };
}

function readRole(request: NewRole): RoleRecord {
  if (isBuiltinRole(request.name)) throw invalidField('/name', 'Built-in roles cannot be changed.');
  return roleRecord(readNewRole(request));
}

function readPolicy(
  request: NewPolicy,
  place: ProposalPlace,
  proposed: readonly RoleRecord[],
  removed: ReadonlySet<RoleName>,
) {
  const { audience, ...values } = readNewPolicy(request);
  const global = isGlobal(values.name, request.global, place);
  const attachable = [
    ...BUILTIN,
    ...(global
      ? []
      : [...[...place.tenant.roles.keys()].filter((role) => !removed.has(role)), ...proposed.map((role) => role.name)]),
  ];
  const attachedRoles = audience.attached_roles.map((role) => attachable.find((one) => one === role));
  const message = global
    ? 'Only built-in roles may be attached to a global policy.'
    : 'This role does not exist in the tenant.';
  throwIfInvalid(
    attachedRoles.flatMap((role, i) => (role === undefined ? [{ path: `/attached_roles/${i}`, message }] : [])),
  );
  const record = policyRecord({
    ...values,
    applies_to: audience.applies_to,
    attached_roles: [...new Set(attachedRoles.filter((role) => role !== undefined))],
  });
  return { global, record };
}

/**
 * Reports whether a proposed policy is global. With the name of an existing policy, it replaces that policy and must
 * keep its scope.
 */
function isGlobal(
  name: PolicyName,
  requested: boolean | undefined,
  { taken, mayWriteOwner, tenant }: ProposalPlace,
): boolean {
  const owner = taken.get(name);
  const global = requested ?? owner === 'global';
  if (global || owner === 'global') mayWriteOwner(null);
  else mayWriteOwner(tenant.id);
  if (owner !== undefined && global !== (owner === 'global')) {
    throw invalidField(
      '/global',
      'A policy with this name exists, and a policy cannot change between global and tenant scope.',
    );
  }
  return global;
}

function refuseRepeats(path: string, named: readonly { readonly name: string }[]): void {
  const names = named.map(({ name }) => name);
  const repeated: FieldError[] = names.flatMap((name, i) =>
    names.indexOf(name) === i
      ? []
      : [{ path: `${path}/${i}/name`, message: 'This name appears twice in the proposal.' }],
  );
  throwIfInvalid(repeated);
}

/** Adds the member's path to the paths of its errors. */
function within<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof Refusal) || error.code !== 'invalid_field') throw error;
    throw invalidFields(
      (error.extras.errors ?? []).map((one) => ({ path: `${path}${one.path}`, message: one.message })),
    );
  }
}
