/** The services that a check handler uses. `src/server` wires them. */

import type { Allow, CheckInput, Decision } from '../decision/model.ts';
import type { RequestId } from '../domain/ids.ts';
import type { LimitDecision } from '../metering/admission.ts';
import type { FinishedUsage } from '../metering/settlement.ts';
import type { DenialCode } from './denied-response.ts';

/** The steps rate limit and quota, which are no pure function because they count. */
export interface Limiter {
  /**
   * Returns the decision: a value if this process can decide by itself, otherwise a promise. Throws or rejects on a
   * fault.
   */
  admit(allow: Allow, nowMs: number): LimitDecision | Promise<LimitDecision>;
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

/** The outcome of one check. */
export interface Outcome {
  readonly code: 'allow' | 'public' | DenialCode;
  readonly requestId: RequestId;
  /** The start of the check, in milliseconds since the epoch. */
  readonly startedAtMs: number;
  /**
   * The request with its credential and body. An observer must not keep it. Undefined if the check could not be read.
   */
  readonly input: CheckInput | undefined;
  /** Envoy's `x-request-id`; undefined if the message did not contain one. */
  readonly clientRequestId: string | undefined;
  /** The trace of the request; undefined unless traces are on and the request is sampled. */
  readonly traceId: string | undefined;
  /** Undefined if the check did not reach a decision: a malformed message or a fault. */
  readonly decision: Decision | undefined;
  /** The cause of a fault, for the log only; undefined otherwise. */
  readonly error: unknown;
  /** Whether the check was in shadow mode: it changed nothing, and only records of shadow mode may count it. */
  readonly shadow: boolean;
  /** The time from the check to its answer, in milliseconds. */
  readonly tookMs: number;
}

/** Counts and logs outcomes. Called after the answer is written. Its errors are ignored. */
export interface Observer {
  observe(outcome: Outcome): void;
}
