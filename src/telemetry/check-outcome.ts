/** The facts of one check for telemetry. */

import type { CheckInput, Decision, Route } from '../decision/model.ts';
import type { ErrorCode } from '../domain/errors.ts';

export type CheckCode = 'allow' | 'public' | ErrorCode;

export interface CheckOutcome {
  readonly code: CheckCode;
  readonly requestId: string;
  /** Milliseconds since the epoch. */
  readonly startedAtMs: number;
  /**
   * The request, with its credential and body. A listener must not keep it. Undefined if the check could not be read.
   */
  readonly input: CheckInput | undefined;
  /** Envoy's `x-request-id`, if any. */
  readonly clientRequestId: string | undefined;
  /** The trace of the request. Undefined unless traces are configured and the request is sampled. */
  readonly traceId?: string | undefined;
  /** Undefined if the check reached no decision. */
  readonly decision: Decision | undefined;
  /** The cause of a fault. */
  readonly error: unknown;
  /** Whether the check was in shadow mode and changed nothing. Default: false. */
  readonly shadow?: boolean;
  /** Milliseconds from the check to its answer. */
  readonly tookMs: number;
}

export type OutcomeKind = 'allow' | 'deny' | 'fault';

/** Accepts also a code that was stored as text. */
export function outcomeKind(code: string): OutcomeKind {
  return code === 'allow' || code === 'public' ? 'allow' : code === 'unavailable' ? 'fault' : 'deny';
}

export function routeOf(decision: Decision | undefined): Route | undefined {
  return decision === undefined || decision.kind === 'public' ? undefined : decision.route;
}

/** Returns the effect of the report-only policy that would have changed the outcome. */
export function reportedEffect(decision: Decision | undefined): 'allow' | 'deny' | undefined {
  if (decision?.kind === 'allow' && decision.wouldDeny !== undefined) return 'deny';
  return decision?.kind === 'deny' && decision.wouldAllow !== undefined ? 'allow' : undefined;
}

/**
 * Returns the tenant of a decision: the effective tenant if it is known, otherwise the principal's. Empty if neither is
 * known.
 */
export function tenantOf(decision: Decision | undefined): string {
  switch (decision?.kind) {
    case 'allow':
      return decision.tenant.id;
    case 'fault':
      return decision.tenant;
    case 'deny':
      return decision.tenant ?? decision.principal?.tenantId ?? '';
    case 'public':
    case undefined:
      return '';
    default:
      return decision satisfies never;
  }
}
