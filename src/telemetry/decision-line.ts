/** One decision as the members of a log line. Every text of a request is bounded. */

import { BODY_SETTING } from '../decision/body.ts';
import {
  type Decision,
  type InvalidReason,
  type Principal,
  type PublicAllow,
  REPEATED,
  type Resource,
  type Route,
} from '../decision/model.ts';
import { withoutQuery } from '../decision/paths.ts';
import type { BudgetId } from '../domain/ids.ts';
import {
  type CheckCode,
  type CheckOutcome,
  type OutcomeKind,
  outcomeKind,
  routeOf,
  tenantOf,
} from './check-outcome.ts';
import { type DescribedError, describeError } from './describe-error.ts';
import { MASKING_ROOM, maskText } from './masking.ts';

/** The members of a line, in their order; docs/decision-log.md explains each. */
export interface DecisionLine {
  readonly outcome: OutcomeKind;
  readonly code: CheckCode;
  readonly request_id?: string | undefined;
  readonly client_request_id?: string | undefined;
  readonly trace_id?: string | undefined;
  readonly method?: string | undefined;
  readonly path?: string | undefined;
  readonly route?: string | undefined;
  readonly client_ip?: string | undefined;
  readonly subject?: string | undefined;
  readonly subject_type?: Principal['kind'] | undefined;
  readonly tenant?: string | undefined;
  readonly asked_tenant?: string | undefined;
  readonly permission?: string | undefined;
  readonly resources?: readonly string[] | undefined;
  readonly model?: string | undefined;
  readonly policy?: string | undefined;
  readonly budget?: BudgetId | undefined;
  readonly would_deny?: string | undefined;
  readonly would_allow?: string | undefined;
  readonly reason?: InvalidReason | undefined;
  readonly detail?: string | undefined;
  readonly setting?: string | undefined;
  readonly took_ms?: number | undefined;
  readonly shadow?: true | undefined;
  readonly not_logged?: number | undefined;
  readonly err?: DescribedError | undefined;
}

const MAX_TEXT = 256;
const MAX_METHOD = 32;
const MAX_ADDRESS = 64;
const MAX_RESOURCES = 16;

export function lineOf(outcome: CheckOutcome): DecisionLine {
  const { decision, code, input } = outcome;
  const known = decision === undefined || decision.kind === 'public' ? undefined : decision;
  const denial = decision?.kind === 'deny' ? decision : undefined;
  const allow = decision?.kind === 'allow' ? decision : undefined;
  const route = routeOf(decision);
  return {
    outcome: outcomeKind(code),
    code,
    request_id: outcome.requestId,
    client_request_id: cut(outcome.clientRequestId, MAX_TEXT),
    trace_id: outcome.traceId,
    method: cut(input?.method, MAX_METHOD),
    path: input === undefined ? undefined : cut(withoutQuery(input.path), MAX_TEXT),
    route: route && nameOfRoute(route),
    client_ip: cut(input?.clientAddress, MAX_ADDRESS),
    subject: known?.principal?.id,
    subject_type: known?.principal?.kind,
    tenant: tenantOf(decision) || undefined,
    asked_tenant: input?.tenant === REPEATED ? undefined : cut(input?.tenant, MAX_TEXT),
    permission: denial?.permission ?? route?.permissions[0].text,
    resources: resourcesOf(known),
    model: cut(allow?.model, MAX_TEXT),
    policy: denial?.policy,
    budget: denial?.budgetId,
    would_deny: allow?.wouldDeny,
    would_allow: denial?.wouldAllow,
    reason: denial?.reason,
    detail: cut(denial?.detail, MAX_TEXT),
    setting: decision?.kind === 'fault' ? BODY_SETTING : undefined,
    took_ms: Math.round(outcome.tookMs * 1000) / 1000,
    shadow: outcome.shadow === true ? true : undefined,
    err: outcome.error === undefined ? undefined : describeError(outcome.error),
  };
}

/** Returns the members of the line for faults of one kind that have no line of their own. */
export function countedLine(error: unknown, count: number): DecisionLine {
  const err = error === undefined ? undefined : describeError(error);
  return { outcome: 'fault', code: 'unavailable', not_logged: count, err };
}

/** Masks a text before it is cut, because the rest of a secret may no longer look like one. */
function cut(text: string | undefined, max: number): string | undefined {
  if (text === undefined || text.length <= max) return text;
  return maskText(text.slice(0, max + MASKING_ROOM)).slice(0, max);
}

/** Cached for each route, because joining the texts takes longer than all other members of a line. */
const routeNames = new WeakMap<Route, string>();

function nameOfRoute(route: Route): string {
  let name = routeNames.get(route);
  if (name === undefined) {
    name = `${route.method} ${route.template}`;
    routeNames.set(route, name);
  }
  return name;
}

function resourcesOf(decision: Exclude<Decision, PublicAllow> | undefined): readonly string[] | undefined {
  const resources = decision?.resources;
  if (resources === undefined || resources.length === 0) return undefined;
  return resources.slice(0, MAX_RESOURCES).map(nameOf);
}

function nameOf({ kind, name }: Resource): string {
  return `${kind}/${cut(name, MAX_TEXT) ?? ''}`;
}
