/** Explains a decision: the same function decides, and records what it reads. */

import type { DenyCode } from '../domain/errors.ts';
import type { ResourceConstraints } from '../domain/records.ts';
import { readBody } from './body.ts';
import { zoneOf } from './condition-table.ts';
import { type Check, checkHolds } from './conditions.ts';
import { decide } from './decide.ts';
import {
  type ExplainedBudget,
  type ExplainedLimit,
  type ExplainedStep,
  endingOf,
  stepsOf,
  type Unproved,
} from './explain-steps.ts';
import { ruleWork } from './limits.ts';
import type { Allow, CheckInput, Decision, Identity, Resource, Snapshot } from './model.ts';
import { coversAny } from './permissions.ts';
import { type AccessQuery, type ConsideredGrant, permitted, type Trace } from './permitted.ts';
import { type CompiledPolicy, listedPolicies, type PolicyLists, policyAppliesTo, reaches } from './policies.ts';
import type { RouteMatch } from './routes.ts';

interface ExplainedGrant {
  readonly kind: 'role' | 'owner_role' | 'scopes';
  readonly name: string | null;
  readonly permissions: readonly string[];
  readonly resource_constraints: ResourceConstraints;
  readonly outcome: 'covers' | 'no_permission' | 'no_resources';
}

interface ExplainedCondition {
  readonly kind: string;
  readonly operator: string | null;
  readonly operand: readonly string[];
  /** The value of the comparison: the client's address, the time of day or the day; null if it is missing. */
  readonly value: string | null;
  /** The time zone of `value`; null if the condition does not use a clock. */
  readonly timezone: string | null;
  readonly matched: boolean;
  /** True if the condition's input is missing; it then holds for a deny and not for an allow. */
  readonly missing: boolean;
}

interface ExplainedPolicy {
  readonly name: string;
  readonly effect: 'allow' | 'deny';
  readonly global: boolean;
  /** `report`: the policy has no effect. */
  readonly mode: 'enforce' | 'report';
  /** All of the following together. */
  readonly matched: boolean;
  /** It applies to everyone or to a role of the principal. */
  readonly applies: boolean;
  readonly actions: boolean;
  readonly resources: boolean;
  readonly conditions: readonly ExplainedCondition[];
}

export interface DecisionExplanation {
  readonly decision: 'allow' | 'deny';
  readonly status: number;
  readonly code: 'allow' | DenyCode;
  readonly detail: string;
  readonly policy: string | null;
  /** The report-only policy that would have denied the request; null if none would, or if the request is denied. */
  readonly would_deny: string | null;
  /** The report-only policy that would have allowed the request; null if none would, or if the request is allowed. */
  readonly would_allow: string | null;
  readonly steps: readonly ExplainedStep[];
  /** Method and template of the route. */
  readonly route: string | null;
  readonly permission: string | null;
  /** `<kind>/<name>`; a kind without a name is one that the request does not name. */
  readonly resources: readonly string[];
  readonly grants: readonly ExplainedGrant[];
  readonly policies: readonly ExplainedPolicy[];
  /** The limits of steps 15 to 17; empty if an earlier step ended the decision. */
  readonly limits: readonly ExplainedLimit[];
  /** The budgets that count the request, by name; empty likewise. */
  readonly budgets: readonly ExplainedBudget[];
}

function explainGrant(considered: ConsideredGrant): ExplainedGrant {
  const { kind, name, grant, coversPermission, coversResources } = considered;
  const outcome = !coversPermission ? 'no_permission' : coversResources ? 'covers' : 'no_resources';
  return { kind, name: name ?? null, permissions: grant.patterns, resource_constraints: grant.constraints, outcome };
}

function explainCondition(check: Check, policy: CompiledPolicy, query: AccessQuery): ExplainedCondition {
  const { timezone } = policy.conditions;
  const holds = checkHolds(check, timezone, query.now);
  const matched = holds ?? policy.effect === 'deny';
  if (check.kind === 'unreadable') {
    return { kind: check.key, operator: null, operand: [], value: null, timezone: null, matched, missing: true };
  }
  const { key, operator, operand, condition } = check;
  return {
    kind: key,
    operator,
    operand,
    value: condition.shownInput(query.now, timezone) ?? null,
    timezone: condition.usesClock ? zoneOf(timezone, query.now) : null,
    matched,
    missing: holds === undefined,
  };
}

function explainPolicy({ policy, global, mode }: ListedPolicy, query: AccessQuery): ExplainedPolicy {
  const applies = policyAppliesTo(policy, query);
  const actions = coversAny(policy.actions, query.permissions);
  const resources = reaches(policy, query.resources, ruleWork());
  const conditions = policy.conditions.checks.map((check) => explainCondition(check, policy, query));
  const matched = applies && actions && resources && conditions.every((condition) => condition.matched);
  return { name: policy.name, effect: policy.effect, global, mode, matched, applies, actions, resources, conditions };
}

interface ListedPolicy extends Pick<ExplainedPolicy, 'global' | 'mode'> {
  readonly policy: CompiledPolicy;
}

/** Policies of one explanation. Those that name the permission come before those that do not. */
const MAX_LISTED = 200;

/** Only listed policies are explained: a condition can have 1,000 operands, and a tenant thousands of policies. */
function explainPolicies(query: AccessQuery): readonly ExplainedPolicy[] {
  const listed = (lists: PolicyLists | undefined, global: boolean, mode: ExplainedPolicy['mode']) =>
    listedPolicies(lists).map((policy): ListedPolicy => ({ policy, global, mode }));
  const { globalPolicies, tenantPolicies } = query;
  const all = [
    ...listed(globalPolicies, true, 'enforce'),
    ...listed(tenantPolicies, false, 'enforce'),
    ...listed(globalPolicies.reports, true, 'report'),
    ...listed(tenantPolicies?.reports, false, 'report'),
  ];
  const [naming, others] = [true, false].map((names) =>
    all.filter(({ policy }) => coversAny(policy.actions, query.permissions) === names),
  );
  return [...(naming ?? []), ...(others ?? [])].slice(0, MAX_LISTED).map((one) => explainPolicy(one, query));
}

function resourceText(resource: Resource): string {
  return `${resource.kind}/${resource.name ?? ''}`;
}

/** The parts of an explanation that do not come from the decision. */
interface ExplainOptions {
  /** Returns the limits of steps 16 and 17, in the order of their checks. Absent: no limit is read. */
  readonly limits?: (allow: Allow) => readonly ExplainedLimit[];
  /** Returns the budgets of step 17. Absent: no budget is read. */
  readonly budgets?: (allow: Allow) => readonly ExplainedBudget[];
  /** Why the credential proves no principal. Absent: the caller may not know. */
  readonly unproved?: Unproved | undefined;
}

/** Explains the result of `decide` for the same arguments, and the limits after it. */
export function explainDecision(
  match: RouteMatch,
  input: CheckInput,
  identity: Identity,
  snapshot: Snapshot | undefined,
  nowMs: number,
  { limits, budgets, unproved }: ExplainOptions = {},
): DecisionExplanation {
  const trace: Trace = { grants: [] };
  const decision = decide(match, input, identity, snapshot, nowMs, trace);
  const query = trace.query;
  // A deny policy ends the decision before the grants. The explanation lists them, because the deny may not be the only
  // obstacle.
  if (query !== undefined && trace.grants.length === 0) permitted({ ...query, work: ruleWork() }, trace);
  const checked = [
    ...tokenLimit(decision, input, snapshot),
    ...(decision.kind === 'allow' && limits !== undefined ? limits(decision) : []),
  ];
  const counting = decision.kind === 'allow' && budgets !== undefined ? budgets(decision) : [];
  const ending = endingOf(decision, checked, counting);
  const route = match.kind === 'matched' ? match.route : undefined;
  return {
    decision: ending.outcome === 'allowed' ? 'allow' : 'deny',
    status: ending.status,
    code: ending.code,
    detail: ending.detail,
    policy: decision.kind === 'deny' ? (decision.policy ?? null) : null,
    would_deny: decision.kind === 'allow' && ending.outcome === 'allowed' ? (decision.wouldDeny ?? null) : null,
    would_allow: decision.kind === 'deny' ? (decision.wouldAllow ?? null) : null,
    steps: stepsOf(ending, unproved),
    route: route === undefined ? null : `${route.method} ${route.template}`,
    permission: route?.permissions[0].text ?? null,
    resources: (query?.resources ?? (match.kind === 'matched' ? match.resources : [])).map(resourceText),
    grants: trace.grants.map(explainGrant),
    policies: query === undefined ? [] : explainPolicies(query),
    limits: checked,
    budgets: counting,
  };
}

/**
 * Returns the limit of step 15 if the decision reached it. The body is read again, because the decision keeps only what
 * it needs.
 */
function tokenLimit(decision: Decision, input: CheckInput, snapshot: Snapshot | undefined): readonly ExplainedLimit[] {
  const exceeded = decision.kind === 'deny' && decision.code === 'max_tokens_exceeded';
  const reached =
    decision.kind === 'allow' || exceeded || (decision.kind === 'deny' && decision.code === 'usage_required');
  const route = reached ? decision.route : undefined;
  if (route === undefined) return [];
  const body = route.tokens ? readBody(input, route.readsPrompts) : undefined;
  return [
    {
      name: 'max_tokens_per_request',
      of: 'tenant',
      line: 15,
      applies: route.tokens,
      limit: snapshot?.effective?.settings.max_tokens_per_request ?? null,
      used: null,
      reserved: null,
      remaining: null,
      resets_at: null,
      needed: body?.kind === 'body' ? (body.largestLimit ?? null) : null,
      exceeded,
    },
  ];
}
