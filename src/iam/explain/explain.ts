/**
 * Explains a decision with the function of the data plane, by the current roles and policies or as if proposed ones were
 * in force. Nothing is counted, saved or recorded.
 */

import { type DecisionExplanation, explainDecision } from '../../decision/explain.ts';
import type { ExplainedBudget, ExplainedLimit } from '../../decision/explain-steps.ts';
import type { Snapshot, TenantView } from '../../decision/model.ts';
import { withProposal } from '../../decision/proposed.ts';
import { matchRoute } from '../../decision/routes.ts';
import { present } from '../../domain/objects.ts';
import { isAuthorized } from '../caller/authorize.ts';
import type { Caller } from '../caller/caller.ts';
import { invalidField } from '../caller/refusals.ts';
import { mayWriteOwner } from '../policies/rules.ts';
import { budgetCheck, limitCheck } from './limits.ts';
import { proposedNames, readProposal } from './proposal.ts';
import { type ExplainParts, type Requester, type ResolvedRequest, resolveExplainRequest } from './resolve.ts';
import { type ExplainRequest, MAX_PROPOSAL_BYTES, type ProposalRequest, type SimulateRequest } from './schemas.ts';
import { policiesNamed } from './who-can-queries.ts';

/**
 * Explains a request.
 * @throws Refusal of the decision about the caller; `invalid_field`; `not_found` for a subject that does not exist or
 *   belongs to a tenant that the caller may not act in
 */
export async function explain(
  parts: ExplainParts,
  requester: Requester,
  request: ExplainRequest,
): Promise<DecisionExplanation> {
  const explained = await explainer(parts, await resolveExplainRequest(parts, requester, request));
  const explanation = explained((snapshot) => snapshot);
  return requester.kind === 'operator' ? explanation : shownTo(requester.caller, explanation);
}

/**
 * Returns the part of an explanation that the caller may see. Without `admin:policies`, a caller sees only the policies
 * that match its request and are in force. Without `usage:read` as well, it does not see the usage of the tenant.
 */
export function shownTo<T extends DecisionExplanation>(caller: Caller, explanation: T): T {
  if (isAuthorized(caller, 'admin:policies')) return explanation;
  const policies = explanation.policies.filter(({ matched, mode }) => matched && mode === 'enforce');
  const visible = { ...explanation, would_deny: null, would_allow: null, policies };
  if (isAuthorized(caller, 'usage:read')) return visible;
  const budgets = explanation.budgets.map((budget) => (isOwnAmount(caller, budget) ? budget : withoutAmounts(budget)));
  return { ...visible, limits: explanation.limits.map(withoutUsage), budgets };
}

/** Reports whether the amount is that of the caller alone. */
function isOwnAmount({ principal }: Caller, { caller }: ExplainedBudget): boolean {
  return (
    caller !== null && (caller === principal.id || (principal.kind === 'api_key' && caller === principal.owner?.id))
  );
}

function withoutAmounts(budget: ExplainedBudget): ExplainedBudget {
  return { ...budget, limit: null, spent: null, reserved: null };
}

function withoutUsage(limit: ExplainedLimit): ExplainedLimit {
  return limit.of === 'api_key' ? limit : { ...limit, used: null, reserved: null, remaining: null };
}

/** Explains a request with the snapshot that `change` returns for the current one. */
type Explainer = (change: (snapshot: Snapshot) => Snapshot) => DecisionExplanation;

/** Reads the route and the state of the limits once, for several explanations of one request. */
export async function explainer(parts: ExplainParts, request: ResolvedRequest): Promise<Explainer> {
  const { input, identity, snapshot, nowMs, requestedAtMs, unproved } = request;
  const match = matchRoute(parts.routes, input);
  const limits = await limitCheck(parts, match, identity, snapshot?.effective, requestedAtMs);
  const budgets = await budgetCheck(parts, match, identity, snapshot?.effective, requestedAtMs);
  const context = { unproved, ...present({ limits, budgets }) };
  return (change) => explainDecision(match, input, identity, snapshot && change(snapshot), nowMs, context);
}

interface SimulatedExplanation extends DecisionExplanation {
  /** The decision without the proposal. */
  readonly current: Pick<DecisionExplanation, 'decision' | 'status' | 'code' | 'detail' | 'policy'>;
}

/**
 * Explains a request under a proposal for the tenant that the request acts in. The endpoint requires `admin:policies`,
 * also for a request about the caller itself, because the compilation of a proposal costs more than an explanation.
 * @throws Refusal like an explanation; `invalid_field` for a proposal that could not be saved or is too large;
 *   `escalation` for a global policy unless the caller may write one
 */
export async function simulate(
  parts: ExplainParts,
  caller: Caller,
  request: SimulateRequest,
): Promise<SimulatedExplanation> {
  refuseLargeProposal(request);
  const resolved = await resolveExplainRequest(parts, { kind: 'caller', caller }, request);
  const tenant = tenantOf(resolved.snapshot, caller);
  const taken = await policiesNamed(parts.db.knex, tenant.id, proposedNames(request));
  const proposal = readProposal(request, { tenant, taken, mayWriteOwner: (owner) => mayWriteOwner(caller, owner) });
  const explained = await explainer(parts, resolved);
  const { decision, status, code, detail, policy } = explained((snapshot) => snapshot);
  return {
    ...explained((snapshot) => withProposal(snapshot, proposal)),
    current: { decision, status, code, detail, policy },
  };
}

export function refuseLargeProposal({ policies, roles }: ProposalRequest): void {
  const size = (proposed: unknown): number =>
    proposed === undefined ? 0 : Buffer.byteLength(JSON.stringify(proposed));
  if (size(policies) + size(roles) <= MAX_PROPOSAL_BYTES) return;
  const message = `Proposed policies and roles must be at most ${MAX_PROPOSAL_BYTES / 1024} KiB in total.`;
  throw invalidField(policies === undefined ? '/roles' : '/policies', message);
}

const NO_ROLES: TenantView['roles'] = new Map();

/** Returns the tenant of the proposal. Without a proved principal in its tenant, it is the caller's tenant. */
function tenantOf(snapshot: Snapshot | undefined, caller: Caller): Pick<TenantView, 'id' | 'roles'> {
  return snapshot?.effective ?? caller.snapshot.effective ?? { id: caller.tenant, roles: NO_ROLES };
}
