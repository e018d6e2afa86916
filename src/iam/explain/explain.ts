/** Asks what would be decided about a request, and why: the same decision as the data plane's, with nothing counted. */

import { type Explanation, explain } from '../../decision/explain.ts';
import type { ExplainedLimit } from '../../decision/explain-steps.ts';
import type { Snapshot } from '../../decision/model.ts';
import { matchRoute } from '../../decision/routes.ts';
import { isAuthorized } from '../caller/authorize.ts';
import type { Caller } from '../caller/caller.ts';
import { limitCheck } from './limits.ts';
import {
  type ExplainParts,
  type ExplainRequest,
  type Requester,
  type ResolvedRequest,
  resolveExplainRequest,
} from './resolve.ts';

/**
 * Explains a request. A caller without `admin:policies`, which may ask about itself only, reads of the policies only those that match its
 * request: not which others exist, nor for which roles.
 * @throws Refusal of the decision about the caller; `invalid_field`; `not_found` for a subject that is not there or of a tenant that the
 * caller may not act in
 */
export async function explainRequest(
  parts: ExplainParts,
  requester: Requester,
  request: ExplainRequest,
): Promise<Explanation> {
  const explained = await explainer(parts, await resolveExplainRequest(parts, requester, request));
  const explanation = explained((snapshot) => snapshot);
  return requester.kind === 'operator' ? explanation : shownTo(requester.caller, explanation);
}

/**
 * Tells a caller that may not read policies of those that decide the request, and of no other: not which exist, nor for which roles. A caller
 * that may read neither policies nor usage is not told the usage of the whole tenant; its request is compared with it all the same.
 */
export function shownTo<T extends Explanation>(caller: Caller, explanation: T): T {
  if (isAuthorized(caller, 'admin:policies')) return explanation;
  const told = { ...explanation, policies: explanation.policies.filter(({ matched }) => matched) };
  return isAuthorized(caller, 'usage:read') ? told : { ...told, limits: explanation.limits.map(withoutUsage) };
}

function withoutUsage(limit: ExplainedLimit): ExplainedLimit {
  return limit.of === 'api_key' ? limit : { ...limit, used: null, reserved: null, remaining: null };
}

/** Explains a question in the snapshot that `change` makes of the current one. */
export type Explainer = (change: (snapshot: Snapshot) => Snapshot) => Explanation;

/** Reads what the explanations of one question share: the route and the state of the limits. */
export async function explainer(parts: ExplainParts, asked: ResolvedRequest): Promise<Explainer> {
  const { input, identity, snapshot, nowMs, requestedAtMs, unproved } = asked;
  const match = matchRoute(parts.routes, input);
  const limits = await limitCheck(parts, match, identity, snapshot?.effective, requestedAtMs);
  const circumstances = { unproved, ...(limits === undefined ? {} : { limits }) };
  return (change) => explain(match, input, identity, snapshot && change(snapshot), nowMs, circumstances);
}
