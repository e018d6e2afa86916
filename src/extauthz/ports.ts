/** The services that a check handler uses. `src/server` wires them. */

import type { Allow, CheckInput, Decision } from '../decision/model.ts';
import type { RequestId } from '../domain/ids.ts';
import type { LimitDecision } from '../metering/admission.ts';
import type { FinishedUsage } from '../metering/settlement.ts';
import type { DenialCode } from './denied-response.ts';

/** Lines 16 and 17 of the decision, which are no pure function: they count. */
export interface Limiter {
  /** The value itself when it is at hand; throws or rejects when it cannot say. */
  admit(allow: Allow, nowMs: number): LimitDecision | Promise<LimitDecision>;
  /**
   * Gives back what an admission reserved whose request does not go on: its tokens, or its collection. The share of the rate limit is
   * not given back. Idempotent. Never throws.
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
  /** Called for each report that a request is still running. Envoy reports these at intervals, and any of them may be missing. */
  running(reservation: string): void;
}

/** What became of one check. */
export interface Outcome {
  readonly code: 'allow' | 'public' | DenialCode;
  readonly requestId: RequestId;
  /** When the check began, in milliseconds since the epoch. */
  readonly startedAtMs: number;
  /** The request, with its credential and body: an observer must not keep it. Undefined if the check could not be read. */
  readonly input: CheckInput | undefined;
  /** Envoy's `x-request-id`; undefined when the message did not carry one. */
  readonly clientRequestId: string | undefined;
  /** The trace that the request belongs to; undefined unless traces are on and the request is sampled. */
  readonly traceId: string | undefined;
  /** Undefined when it did not come to a decision: a malformed message or a fault. */
  readonly decision: Decision | undefined;
  /** The cause of a fault; undefined otherwise. For the log alone. */
  readonly error: unknown;
  /** Milliseconds from the check to its answer. */
  readonly tookMs: number;
}

/** Counts and logs. Called after the answer is made; what it throws is dropped. */
export interface Observer {
  observe(outcome: Outcome): void;
}
