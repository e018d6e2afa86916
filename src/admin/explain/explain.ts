/** Asks what would be decided about a request, and why: the same decision as the data plane's, with nothing counted. */

import { type Explanation, explain } from '../../decision/explain.ts';
import type { ExplainedLimit } from '../../decision/explain-steps.ts';
import type { Snapshot } from '../../decision/model.ts';
import { matchRoute } from '../../decision/routes.ts';
import { isAuthorized } from '../authorize.ts';
import { limitCheck } from './limits.ts';
import { type Asked, type Asker, type ExplainParts, type ExplainRequest, resolveQuestion } from './question.ts';

/**
 * Explains a request. A caller without `admin:policies`, which may ask about itself only, reads of the policies only those that match its
 * request: not which others exist, nor for which roles.
 * @throws Refusal of the decision about the caller; `invalid_field`; `not_found` for a subject that is not there or of a tenant that the
 * caller may not act in
 */
export async function explainRequest(parts: ExplainParts, asker: Asker, request: ExplainRequest): Promise<Explanation> {
  const explained = await explainer(parts, await resolveQuestion(parts, asker, request));
  const explanation = explained((snapshot) => snapshot);
  if (asker.kind === 'operator' || isAuthorized(asker.caller, 'admin:policies')) return explanation;
  const ofOneself = { ...explanation, policies: explanation.policies.filter(({ matched }) => matched) };
  return isAuthorized(asker.caller, 'usage:read') ? ofOneself : { ...ofOneself, limits: explanation.limits.map(withoutUsage) };
}

/** Hides the usage of the whole tenant from a caller that may read neither policies nor usage. The caller's request is compared all the same. */
function withoutUsage(limit: ExplainedLimit): ExplainedLimit {
  return limit.of === 'api_key' ? limit : { ...limit, used: null, reserved: null, remaining: null };
}

/** Explains a question in the snapshot that `change` makes of the current one. */
export type Explainer = (change: (snapshot: Snapshot) => Snapshot) => Explanation;

/** Reads what the explanations of one question share: the route and the state of the limits. */
export async function explainer(parts: ExplainParts, asked: Asked): Promise<Explainer> {
  const { input, identity, snapshot, nowMs, askedAtMs, unproved } = asked;
  const match = matchRoute(parts.routes, input);
  const limits = await limitCheck(parts, match, identity, snapshot?.effective, askedAtMs);
  const circumstances = { unproved, ...(limits === undefined ? {} : { limits }) };
  return (change) => explain(match, input, identity, snapshot && change(snapshot), nowMs, circumstances);
}
