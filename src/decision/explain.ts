/** Explains a decision: the same function decides, and records what it reads. */

import { readBody } from './body.ts';
import { zoneOf } from './condition-table.ts';
import { type Check, checkHolds } from './conditions.ts';
import { decide } from './decide.ts';
import { type ExplainedBudget, type ExplainedLimit, endingOf, stepsOf, type Unproved } from './explain-steps.ts';
import { ruleWork } from './limits.ts';
import type { Allow, CheckInput, Decision, Identity, Resource, Snapshot } from './model.ts';
import { coversAny } from './permissions.ts';
import { type AccessQuery, type ConsideredGrant, permitted, type Trace } from './permitted.ts';
import { type CompiledPolicy, listedPolicies, type PolicyLists, policyAppliesTo, reaches } from './policies.ts';
import type { RouteMatch } from './routes.ts';

/**
 * The explanation of a decision. The schema of `/v1/iam/explain` describes its members, which have the names of the API.
 */
export type DecisionExplanation = ReturnType<typeof explainDecision>;
type ExplainedPolicy = ReturnType<typeof explainPolicy>;

function explainGrant(considered: ConsideredGrant) {
  const { kind, name = null, grant, coversPermission, coversResources } = considered;
  const outcome = !coversPermission ? 'no_permission' : coversResources ? 'covers' : 'no_resources';
  return { kind, name, permissions: grant.patterns, resource_constraints: grant.constraints, outcome } as const;
}

function explainCondition(check: Check, policy: CompiledPolicy, query: AccessQuery) {
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

function explainPolicy({ policy, global, mode }: ListedPolicy, query: AccessQuery) {
  const applies = policyAppliesTo(policy, query);
  const actions = coversAny(policy.actions, query.permissions);
  const resources = reaches(policy, query.resources, ruleWork());
  const conditions = policy.conditions.checks.map((check) => explainCondition(check, policy, query));
  const matched = applies && actions && resources && conditions.every((condition) => condition.matched);
  return { name: policy.name, effect: policy.effect, global, mode, matched, applies, actions, resources, conditions };
}

interface ListedPolicy {
  readonly policy: CompiledPolicy;
  readonly global: boolean;
  /** `report`: the policy has no effect. */
  readonly mode: 'enforce' | 'report';
}

/** Policies of one explanation. Those that name the permission come before those that do not. */
const MAX_LISTED = 200;

/** Only listed policies are explained: a condition can have 1,000 operands, and a tenant thousands of policies. */
function explainPolicies(query: AccessQuery): readonly ExplainedPolicy[] {
  const listed = (lists: PolicyLists | undefined, global: boolean, mode: ListedPolicy['mode']) =>
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
) {
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
  } as const;
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
