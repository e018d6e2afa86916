/** One decision as the members of a log line. */

import { BODY_SETTING } from '../decision/body.ts';
import type { Principal } from '../decision/model.ts';
import { type CheckOutcome, outcomeKind, routeOf } from './check-outcome.ts';

const MAX_TEXT = 256;

/** Returns the members of an outcome's line; text from a request is cut to 256 characters. */
export function lineOf(outcome: CheckOutcome): Record<string, unknown> {
  const { decision, code } = outcome;
  const route = routeOf(decision);
  const principal = decision === undefined || decision.kind === 'public' ? undefined : decision.principal;
  return {
    outcome: outcomeKind(code),
    code,
    request_id: outcome.requestId,
    client_request_id: outcome.clientRequestId?.slice(0, MAX_TEXT),
    route: route && `${route.method} ${route.template}`,
    ...subjectOf(principal),
    ...(decision?.kind === 'allow' ? { tenant: decision.tenant.id, model: decision.model?.slice(0, MAX_TEXT) } : {}),
    ...(decision?.kind === 'fault' ? { tenant: decision.tenant, setting: BODY_SETTING } : {}),
    ...(decision?.kind === 'deny'
      ? {
          reason: decision.reason,
          policy: decision.policy,
          permission: decision.permission,
          detail: decision.detail.slice(0, MAX_TEXT),
        }
      : {}),
    took_ms: Math.round(outcome.tookMs * 1000) / 1000,
    ...(outcome.error === undefined ? {} : { err: outcome.error }),
  };
}

function subjectOf(principal: Principal | undefined): Record<string, unknown> {
  return principal === undefined ? {} : { subject: principal.id, subject_type: principal.kind, tenant: principal.tenantId };
}
