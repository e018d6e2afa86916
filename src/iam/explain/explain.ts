/** Explains a decision with the function of the data plane. Nothing is counted. */

import { type DecisionExplanation, explainDecision } from '../../decision/explain.ts';
import type { ExplainedBudget, ExplainedLimit } from '../../decision/explain-steps.ts';
import type { Snapshot } from '../../decision/model.ts';
import { matchRoute } from '../../decision/routes.ts';
import { present } from '../../domain/objects.ts';
import { isAuthorized } from '../caller/authorize.ts';
import type { Caller } from '../caller/caller.ts';
import { budgetCheck } from './budgets.ts';
import { limitCheck } from './limits.ts';
import { type ExplainParts, type Requester, type ResolvedRequest, resolveExplainRequest } from './resolve.ts';
import type { ExplainRequest } from './schemas.ts';

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
