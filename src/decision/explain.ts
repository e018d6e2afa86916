/** A decision that explains itself: the same function decides, and what it looked at is listed. */

import { type DenyCode, ERRORS } from '../domain/errors.ts';
import type { ResourceConstraints } from '../domain/records.ts';
import { type Check, checkHolds, lookedAt, zoneOf } from './conditions.ts';
import { decideTraced } from './decide.ts';
import { ruleWork } from './limits.ts';
import type { CheckInput, Decision, Deny, Identity, Resource, Snapshot } from './model.ts';
import { coversAny } from './permissions.ts';
import { type ConsideredGrant, permitted, type Question, type Trace } from './permitted.ts';
import { binds, type Policy, type PolicySet, reaches } from './policies.ts';
import type { RouteMatch } from './routes.ts';

export interface ExplainedStep {
  /** The number of the step in the order of evaluation. */
  readonly line: number;
  readonly name: string;
  readonly outcome: 'passed' | 'denied' | 'allowed';
  readonly detail: string;
}

export interface ExplainedGrant {
  readonly kind: 'role' | 'owner_role' | 'scopes';
  readonly name: string | null;
  readonly permissions: readonly string[];
  readonly resource_constraints: ResourceConstraints;
  readonly outcome: 'covers' | 'no_permission' | 'no_resources';
}

export interface ExplainedCondition {
  readonly kind: string;
  readonly operator: string | null;
  readonly operand: readonly string[];
  /** What it was compared with: the client's address, the time of day or the day; null when that is missing. */
  readonly value: string | null;
  /** Whose clock shows `value`; null where no clock is looked at. */
  readonly timezone: string | null;
  readonly matched: boolean;
  /** True when what the condition looks at is not known; it then holds for a deny and not for an allow. */
  readonly missing: boolean;
}

export interface ExplainedPolicy {
  readonly name: string;
  readonly effect: 'allow' | 'deny';
  readonly global: boolean;
  /** All of the following together. */
  readonly matched: boolean;
  /** It applies to everyone or to a role that is held. */
  readonly applies: boolean;
  readonly actions: boolean;
  readonly resources: boolean;
  readonly conditions: readonly ExplainedCondition[];
}

export interface Explanation {
  readonly decision: 'allow' | 'deny';
  readonly status: number;
  readonly code: 'allow' | DenyCode;
  readonly detail: string;
  /** The policy that denies. */
  readonly policy: string | null;
  readonly steps: readonly ExplainedStep[];
  /** Method and template of the route. */
  readonly route: string | null;
  readonly permission: string | null;
  /** `<kind>/<name>`; a kind with nothing after the slash is one that the request does not name. */
  readonly resources: readonly string[];
  readonly grants: readonly ExplainedGrant[];
  readonly policies: readonly ExplainedPolicy[];
}

interface Line {
  readonly line: number;
  readonly name: string;
  readonly codes: readonly DenyCode[];
  readonly passed: string;
}

const LINES: readonly Line[] = [
  { line: 1, name: 'request', codes: [], passed: 'The request could be read.' },
  { line: 2, name: 'path', codes: ['malformed_path'], passed: 'The path is in normal form.' },
  { line: 3, name: 'public', codes: [], passed: 'The path is not public.' },
  { line: 4, name: 'route', codes: ['no_route'], passed: 'A route matches.' },
  { line: 5, name: 'credential', codes: ['missing_credential'], passed: 'A credential was sent.' },
  { line: 6, name: 'credential_form', codes: [], passed: 'It is one credential of a known form.' },
  { line: 7, name: 'token_lifetime', codes: ['token_expired'], passed: 'It is not an expired token.' },
  { line: 8, name: 'identity', codes: ['invalid_credential'], passed: 'The credential proves somebody.' },
  { line: 9, name: 'tenant', codes: ['invalid_tenant', 'tenant_mismatch'], passed: 'The principal may act in the tenant.' },
  { line: 10, name: 'tenant_status', codes: ['tenant_suspended'], passed: 'The tenant is active.' },
  {
    line: 11,
    name: 'body',
    codes: ['malformed_body', 'body_too_large'],
    passed: 'The body is as the route asks, or not asked for.',
  },
  { line: 12, name: 'deny_policies', codes: ['denied_by_policy'], passed: 'No policy in force denies.' },
  { line: 13, name: 'permission', codes: ['insufficient_permission'], passed: 'The permission is given.' },
  { line: 14, name: 'resources', codes: ['resource_not_permitted'], passed: 'All resources of the request are reached.' },
  { line: 15, name: 'token_limit', codes: ['max_tokens_exceeded'], passed: "The request keeps to the tenant's token limit." },
];

function endsAt(line: Line, decision: Deny): boolean {
  if (decision.reason === 'malformed') return line.line === 6;
  return line.codes.includes(decision.code);
}

function stepsOf(decision: Decision): readonly ExplainedStep[] {
  const steps: ExplainedStep[] = [];
  for (const line of LINES) {
    const { line: number, name, passed } = line;
    if (decision.kind === 'public' && name === 'public') {
      return [...steps, { line: number, name, outcome: 'allowed', detail: 'Postern answers this path by itself.' }];
    }
    if (decision.kind === 'deny' && endsAt(line, decision)) {
      return [...steps, { line: number, name, outcome: 'denied', detail: decision.detail }];
    }
    steps.push({ line: number, name, outcome: 'passed', detail: passed });
  }
  return [...steps, { line: 18, name: 'allow', outcome: 'allowed', detail: 'Nothing is against it.' }];
}

function explainGrant(considered: ConsideredGrant): ExplainedGrant {
  const { kind, name, grant, coversPermission, coversResources } = considered;
  const outcome = !coversPermission ? 'no_permission' : coversResources ? 'covers' : 'no_resources';
  return { kind, name: name ?? null, permissions: grant.patterns, resource_constraints: grant.constraints, outcome };
}

function operatorOf(check: Check): string | null {
  switch (check.kind) {
    case 'ip_address':
    case 'day_of_week':
    case 'weekly_hours':
      return check.negated ? 'not_in' : 'in';
    case 'time':
      return check.negated ? 'not_between' : 'between';
    case 'unreadable':
      return null;
    default:
      return check satisfies never;
  }
}

function looksAtClock(check: Check): boolean {
  return check.kind !== 'unreadable' && check.kind !== 'ip_address';
}

function explainCondition(check: Check, policy: Policy, asked: Question): ExplainedCondition {
  const holds = checkHolds(check, policy.conditions.timezone, asked.now);
  return {
    kind: check.kind === 'unreadable' ? check.key : check.kind,
    operator: operatorOf(check),
    operand: check.kind === 'unreadable' ? [] : check.operand,
    value: lookedAt(check, policy.conditions.timezone, asked.now) ?? null,
    timezone: looksAtClock(check) ? zoneOf(policy.conditions.timezone, asked.now) : null,
    matched: holds ?? policy.effect === 'deny',
    missing: holds === undefined,
  };
}

function explainPolicy(policy: Policy, global: boolean, asked: Question): ExplainedPolicy {
  const applies = binds(policy, asked);
  const actions = coversAny(policy.actions, asked.permissions);
  const resources = reaches(policy, asked.resources, ruleWork());
  const conditions = policy.conditions.checks.map((check) => explainCondition(check, policy, asked));
  const matched = applies && actions && resources && conditions.every((condition) => condition.matched);
  return { name: policy.name, effect: policy.effect, global, matched, applies, actions, resources, conditions };
}

/** Policies of one explanation. Those that name the permission come before those that do not. */
const MAX_LISTED = 200;

/** Only the policies that are listed are explained: a condition can have 1,000 operands, and a tenant thousands of policies. */
function explainPolicies(asked: Question): readonly ExplainedPolicy[] {
  const listed = (set: PolicySet | undefined, global: boolean) =>
    [...(set?.denies.policies ?? []), ...(set?.allows.policies ?? [])].map((policy) => ({ policy, global }));
  const all = [...listed(asked.globalPolicies, true), ...listed(asked.tenantPolicies, false)];
  const [naming, others] = [true, false].map((names) =>
    all.filter(({ policy }) => coversAny(policy.actions, asked.permissions) === names),
  );
  return [...(naming ?? []), ...(others ?? [])]
    .slice(0, MAX_LISTED)
    .map(({ policy, global }) => explainPolicy(policy, global, asked));
}

function resourceText(resource: Resource): string {
  return `${resource.kind}/${resource.name ?? ''}`;
}

/** Explains what `decide` answers to the same arguments. */
export function explain(
  match: RouteMatch,
  input: CheckInput,
  identity: Identity,
  snapshot: Snapshot | undefined,
  nowMs: number,
): Explanation {
  const trace: Trace = { grants: [] };
  const decision = decideTraced(match, input, identity, snapshot, nowMs, trace);
  const asked = trace.question;
  // Where a policy denies, nobody has looked at the grants; the reader wants to know whether it is all that is in the way.
  if (asked !== undefined && trace.grants.length === 0) permitted({ ...asked, work: ruleWork() }, trace);
  const denies = decision.kind === 'deny' ? decision : undefined;
  const line = match.kind === 'matched' ? match.line : undefined;
  const steps = stepsOf(decision);
  return {
    decision: denies === undefined ? 'allow' : 'deny',
    status: denies === undefined ? 200 : ERRORS[denies.code].status,
    code: denies === undefined ? 'allow' : denies.code,
    detail: steps.at(-1)?.detail ?? '',
    policy: denies?.policy ?? null,
    steps,
    route: line === undefined ? null : `${line.method} ${line.template}`,
    permission: line?.permissions[0].text ?? null,
    resources: (asked?.resources ?? (match.kind === 'matched' ? match.resources : [])).map(resourceText),
    grants: trace.grants.map(explainGrant),
    policies: asked === undefined ? [] : explainPolicies(asked),
  };
}
