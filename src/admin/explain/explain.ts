/** Asks what would be decided about a request, and why: the same decision as the data plane's, with nothing counted. */

import { type Explanation, explain } from '../../decision/explain.ts';
import type { Snapshot } from '../../decision/model.ts';
import { matchRoute } from '../../decision/routes.ts';
import { isAuthorized } from '../authorize.ts';
import { type Asked, type Asker, type ExplainParts, type ExplainRequest, resolveQuestion } from './question.ts';

/**
 * @throws Refusal of the decision about the caller; `invalid_field`; `not_found` for a subject that is not there or of a tenant that the
 * caller may not act in
 */
export async function explainRequest(parts: ExplainParts, asker: Asker, request: ExplainRequest): Promise<Explanation> {
  const asked = await resolveQuestion(parts, asker, request);
  const explanation = explainIn(parts, asked, asked.snapshot);
  return asker.kind === 'operator' || isAuthorized(asker.caller, 'admin:policies') ? explanation : ofOneself(explanation);
}

/** Tells a caller that may not read policies of those that decide its request, and of no other: not which exist, nor for which roles. */
function ofOneself(explanation: Explanation): Explanation {
  return { ...explanation, policies: explanation.policies.filter(({ matched }) => matched) };
}

/** Explains what is decided in a world. */
export function explainIn(parts: ExplainParts, asked: Asked, snapshot: Snapshot | undefined): Explanation {
  const { input, identity, nowMs } = asked;
  return explain(matchRoute(parts.routes, input), input, identity, snapshot, nowMs);
}
