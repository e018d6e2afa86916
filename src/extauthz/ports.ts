/** The services that a check handler uses. `src/server` wires them. */

import type { Allow } from '../decision/model.ts';
import type { LimitDecision } from '../metering/admission.ts';
import type { FinishedUsage } from '../metering/settlement.ts';

/** The steps rate limit and quota, which are no pure function because they count. */
export interface Limiter {
  /**
   * Returns the decision: a value if this process can decide by itself, otherwise a promise. Throws or rejects on a
   * fault.
   * @param decideByMs the monotonic time after which the check no longer waits
   */
  admit(allow: Allow, nowMs: number, decideByMs: number): LimitDecision | Promise<LimitDecision>;
  /**
   * Releases the reservation of a request that does not continue: its tokens, or its collection. The request still
   * counts in the rate limit. Idempotent. Never throws.
   */
  release(reservation: string): void;
}

/** The part of a finished request's access-log entry that Postern reads. Names have at most 512 bytes. */
export interface FinishedRequest extends FinishedUsage {
  /** `METHOD template` */
  readonly route: string | undefined;
}

/** Takes the reports of Envoy's access log. If a call throws, that entry counts as failed. */
export interface FinishedListener {
  /** Called once for each finished request that Envoy reports. Envoy does not report every request. */
  finished(request: FinishedRequest): void;
  /**
   * Called for each report that a request is still running. Envoy sends these at intervals, and any of them may be
   * missing.
   */
  running(reservation: string): void;
}

/** Takes the reports of the log that names the denials of another gate. Neither call throws. */
export interface OtherGateListener {
  /** Called for each message of that log. */
  reported(): void;
  /** @param requestId Envoy's `x-request-id` of a denied request */
  denied(requestId: string): void;
}
