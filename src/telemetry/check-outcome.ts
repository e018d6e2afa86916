/** What telemetry is told of one check. The gate's outcome has this shape. */

import type { Decision, RouteLine } from '../decision/model.ts';
import type { ErrorCode } from '../domain/errors.ts';

export type CheckCode = 'allow' | 'public' | ErrorCode;

export interface CheckOutcome {
  readonly code: CheckCode;
  readonly requestId: string;
  /** Envoy's `x-request-id`, if any. */
  readonly clientRequestId: string | undefined;
  /** Undefined when it did not come to one. */
  readonly decision: Decision | undefined;
  /** The cause of a fault. */
  readonly error: unknown;
  /** Milliseconds from the check to its answer. */
  readonly tookMs: number;
}

export type OutcomeKind = 'allow' | 'deny' | 'fault';

/** Also of a code that was kept as text. */
export function outcomeKind(code: string): OutcomeKind {
  return code === 'allow' || code === 'public' ? 'allow' : code === 'unavailable' ? 'fault' : 'deny';
}

export function routeOf(decision: Decision | undefined): RouteLine | undefined {
  return decision === undefined || decision.kind === 'public' ? undefined : decision.route;
}
