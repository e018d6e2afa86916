/** The edited values of a policy, and the errors that the form finds before the request. */

import type { NewPolicy, Policy, PolicyConditions } from '../../../../client/index.ts';
import { globFault, isPattern, RESOURCE_KINDS } from '../../api/permissions.ts';
import { policies as text } from '../../text/en/policies.ts';
import { CONDITION_KINDS, CONDITIONS, type ConditionKind } from './condition-kinds.ts';

export interface PolicyFields {
  readonly description: string;
  readonly effect: 'allow' | 'deny';
  readonly actions: readonly string[];
  readonly resources: readonly string[];
  readonly conditions: PolicyConditions;
  readonly applies_to: 'everyone' | 'roles';
  readonly attached_roles: readonly string[];
  readonly mode: 'enforce' | 'report';
  readonly enabled: boolean;
}

export const EMPTY_POLICY: PolicyFields = {
  description: '',
  effect: 'deny',
  actions: [],
  resources: ['*'],
  conditions: {},
  applies_to: 'everyone',
  attached_roles: [],
  mode: 'enforce',
  enabled: true,
};

export function fieldsOf(policy: Policy): PolicyFields {
  const { description, effect, actions, resources, conditions, applies_to, attached_roles, mode, enabled } = policy;
  return {
    description,
    effect,
    actions,
    resources,
    conditions: orderedConditions(conditions),
    applies_to,
    attached_roles,
    mode,
    enabled,
  };
}

/** The policy whole, as it is made, and as a comparison takes it. */
export function newPolicyOf(name: string, fields: PolicyFields, isGlobal: boolean): NewPolicy {
  const { attached_roles: roles, ...rest } = fields;
  return {
    name,
    ...rest,
    ...(fields.applies_to === 'roles' ? { attached_roles: roles } : {}),
    ...(isGlobal ? { global: true } : {}),
  };
}

/** The part of a policy that decisions depend on, as one text. */
export function ruleOf({ description: _, ...rule }: PolicyFields): string {
  return JSON.stringify(rule);
}

/** One operator of one condition. `is`: the value must be in the operand. */
export interface Clause {
  readonly kind: ConditionKind;
  readonly is: boolean;
  readonly operand: readonly string[];
}

/**
 * Returns the clauses of conditions in the order in which they are shown. Members that this console does not know are
 * not among them.
 */
export function clausesOf(conditions: PolicyConditions): readonly Clause[] {
  return CONDITION_KINDS.flatMap((kind) => {
    const operators = operatorsOf(conditions, kind);
    return [true, false].flatMap((is) => {
      const operand = is ? operators.is : operators.isNot;
      return operand === undefined ? [] : [{ kind, is, operand }];
    });
  });
}

function operatorsOf(
  conditions: PolicyConditions,
  kind: ConditionKind,
): Readonly<Record<'is' | 'isNot', readonly string[] | undefined>> {
  const operators: Readonly<Record<string, readonly string[] | undefined>> = conditions[kind] ?? {};
  const { is, isNot } = CONDITIONS[kind];
  return { is: operators[is], isNot: operators[isNot] };
}

/** The JSON member of a clause's operator. */
export function operatorOf({ kind, is }: Pick<Clause, 'kind' | 'is'>): string {
  return CONDITIONS[kind][is ? 'is' : 'isNot'];
}

/**
 * Returns conditions of clauses, with the zone if a clause needs a clock; in one order, so that equal conditions are
 * equal as JSON.
 */
export function conditionsOf(clauses: readonly Clause[], timezone: string | undefined): PolicyConditions {
  const entries = CONDITION_KINDS.flatMap((kind) => {
    const own = clauses
      .filter((clause) => clause.kind === kind)
      .sort((left, right) => Number(right.is) - Number(left.is));
    return own.length === 0
      ? []
      : [[kind, Object.fromEntries(own.map((clause) => [operatorOf(clause), clause.operand]))]];
  });
  return { ...Object.fromEntries(entries), ...(timezone === undefined ? {} : { timezone }) };
}

export function orderedConditions(conditions: PolicyConditions): PolicyConditions {
  return conditionsOf(clausesOf(conditions), conditions.timezone);
}

export function needsClock(clauses: readonly Clause[]): boolean {
  return clauses.some(({ kind }) => CONDITIONS[kind].usesClock);
}

/** Reports whether the zone is one that this browser knows. Offsets such as `+01:00` are none. */
export function isTimezone(name: string): boolean {
  if (!/^[A-Za-z]/.test(name)) return false;
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

/** Says what is wrong with a pattern of `resources`; undefined: nothing. */
export function resourceFault(pattern: string): string | undefined {
  if (pattern === '*') return undefined;
  const slash = pattern.indexOf('/');
  const kind = RESOURCE_KINDS.find((known) => known === pattern.slice(0, Math.max(0, slash)));
  if (kind === undefined) return text.faults.resource;
  const fault = globFault(pattern.slice(slash + 1));
  return fault === undefined ? undefined : text.globFaults[fault];
}

/** Says what is wrong with a clause; undefined: nothing. */
export function clauseFault({ kind, operand }: Clause): string | undefined {
  if (operand.length === 0) return text.faults.none[kind];
  const { fault, entryFault } = CONDITIONS[kind];
  return (
    fault(operand) ?? operand.map((entry, index) => entryFault(entry, index === 1)).find((found) => found !== undefined)
  );
}

/** Returns the first thing that keeps the policy from being saved; undefined: nothing is known against it. */
export function faultOf({ actions, resources, conditions }: PolicyFields): string | undefined {
  if (actions.length === 0) return text.faults.noActions;
  if (!actions.every(isPattern)) return text.faults.action;
  if (resources.length === 0) return text.faults.noResources;
  const zone = conditions.timezone;
  return (
    resources.map(resourceFault).find((fault) => fault !== undefined) ??
    clausesOf(conditions)
      .map(clauseFault)
      .find((fault) => fault !== undefined) ??
    (zone === undefined || isTimezone(zone) ? undefined : text.faults.timezone)
  );
}
