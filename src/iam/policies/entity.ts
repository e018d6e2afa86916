/** The definition of a policy. */

import { type Static, Type } from 'typebox';
import { CONDITION_KEYS } from '../../decision/condition-table.ts';
import type { PolicyName, RoleName, TenantId } from '../../domain/ids.ts';
import type { PolicyRecord } from '../../domain/records.ts';
import {
  changesComponent,
  column,
  derived,
  hidden,
  joined,
  newComponent,
  type ResourceOf,
  type RowOf,
  resourceOf,
  shownComponent,
} from '../schema/entity.ts';
import { aName, someConditions } from '../schema/grammar.ts';
import { asksAlso, flagOf, optionalText } from '../schema/keywords.ts';
import { Conditions, instant, notices, text, texts } from '../schema/resource-parts.ts';
import { description, oneOf, roleNames, searchText, somePatterns, someResourcePatterns } from '../schema/schemas.ts';

const effect = oneOf('allow', 'deny');
const appliesTo = oneOf('everyone', 'roles');
export const mode = oneOf('enforce', 'report');

/** The use case checks the members, and gives reasons. */
const conditions = Type.Unsafe<unknown>({
  type: ['object', 'null'],
  ...someConditions,
  description: `${CONDITION_KEYS.map((key) => `\`${key}\``).join(', ')} and \`timezone\`. All must hold. Absent or empty: the policy always applies.`,
});

const switchOf = { accepts: Type.Optional(Type.Boolean()), changes: true } as const;

export const policy = {
  id: hidden<number>(),
  name: column(Type.Unsafe<PolicyName>(Type.String()), {
    accepts: Type.String({ maxLength: 64, ...aName }),
    changes: false,
  }),
  description: column(text, { accepts: Type.Optional(description), changes: true }),
  effect: column(effect, { accepts: effect, changes: true }),
  actions: column(texts, { accepts: somePatterns, changes: true }),
  resources: column(texts, { accepts: someResourcePatterns, changes: true }),
  conditions: column(Conditions, { accepts: Type.Optional(conditions), changes: true }),
  applies_to: column(appliesTo, { accepts: Type.Optional(appliesTo), changes: true }),
  attached_roles: joined(Type.Unsafe<readonly RoleName[]>(texts), {
    accepts: Type.Optional(roleNames),
    changes: true,
  }),
  global: derived(Type.Boolean(), switchOf),
  mode: column(mode, { accepts: Type.Optional(mode), changes: true }),
  /** Of either mode. The table has a column for each, so that servers without report-only policies do not enforce them. */
  enabled: column(Type.Boolean(), switchOf),
  tenant_id: column(
    Type.Unsafe<TenantId | null>({ type: ['string', 'null'], description: 'Null for global policies.' }),
  ),
  created_at: column(instant),
  updated_at: column(instant),
};

export interface PolicyRow extends RowOf<typeof policy> {}
/** The columns that a change sets, with the attached roles. */
export type PolicyValues = Omit<PolicyRow, 'id' | 'created_at' | 'updated_at'>;
export type PolicyResource = ResourceOf<typeof policy>;

export const policyFilter = Type.Object({
  q: searchText('Any part of the name or description, in any case.'),
  effect: Type.Optional(effect),
  mode: Type.Optional(mode),
  enabled: Type.Optional(Type.Boolean()),
  applies_to: Type.Optional(appliesTo),
  role: optionalText(64, 'A role that the policy is attached to.'),
  global: Type.Optional(flagOf("`true`: only global policies. `false`: only the tenant's policies.")),
});
export type PolicyFilter = Static<typeof policyFilter>;

export const Policy = shownComponent('Policy', policy, notices);

/** `everyone` and attached roles exclude each other. */
const wholeAudience = asksAlso({
  not: {
    required: ['applies_to', 'attached_roles'],
    properties: { applies_to: { const: 'everyone' }, attached_roles: { minItems: 1 } },
  },
});

const OFFICE_HOURS = {
  name: 'office-hours',
  effect: 'deny',
  actions: ['chat:*'],
  resources: ['*'],
  conditions: { weekly_hours: { not_in: ['Mon-Fri 08:00-18:00'] }, timezone: 'Europe/Berlin' },
  enabled: false,
};

export const newPolicy = newComponent('NewPolicy', policy, { ...wholeAudience, examples: [OFFICE_HOURS] });
export type NewPolicy = Static<typeof newPolicy>;

export const policyChanges = changesComponent('PolicyChanges', policy, {
  ...wholeAudience,
  examples: [{ enabled: false }],
});
export type PolicyChanges = Static<typeof policyChanges>;

export function policyResource(row: PolicyRow): PolicyResource {
  return resourceOf(policy, row, { global: row.tenant_id === null });
}

/** Returns the part of a policy that decisions read. Only an enabled policy of mode `enforce` is in force. */
export function policyRecord(values: Omit<PolicyValues, 'tenant_id' | 'description'>): PolicyRecord {
  const { name, effect, actions, resources, conditions, applies_to, attached_roles } = values;
  return {
    name,
    effect,
    actions,
    resources,
    conditions,
    appliesTo: applies_to,
    attachedRoles: attached_roles,
    ...switchesOf(values),
  };
}

/** Returns the columns for `mode` and `enabled`: whether the policy is in force, and whether it only reports. */
export function switchesOf({ mode, enabled }: Pick<PolicyRow, 'mode' | 'enabled'>): {
  readonly enabled: boolean;
  readonly reports?: true;
} {
  return mode === 'report' && enabled ? { enabled: false, reports: true } : { enabled: mode === 'enforce' && enabled };
}
