/** What the gate asks of other rooms. `src/server` wires them. */

import type { Allow, CheckInput, Decision, HeaderValue, Identity, Snapshot } from '../decision/model.ts';
import type { CredentialForm } from '../domain/credential.ts';
import type { RequestId } from '../domain/ids.ts';
import type { FinishedRequest } from './access-log/entry.ts';
import type { DenialCode } from './denied-response.ts';

export interface Resolution {
  readonly identity: Identity;
  /** Undefined unless the identity is proved. */
  readonly snapshot: Snapshot | undefined;
}

export interface Resolver {
  /**
   * Returns the principal that the credential proves, and the snapshot around it: the value itself when it is cached, else a promise.
   * @param client the client's address: look-ups of credentials that were never seen wait fairly between clients
   * @param maxWaitMs how long the check waits for the promise; default: 2000
   * @throws Fault (also by rejecting) when it cannot say
   */
  resolve(
    credential: CredentialForm,
    tenant: HeaderValue,
    nowMs: number,
    client?: string,
    maxWaitMs?: number,
  ): Resolution | Promise<Resolution>;
}

/** The tighter of a request's rate limits, as far as this process knows. */
export interface RateState {
  /** Requests per minute. */
  readonly limit: number;
  readonly remaining: number;
  /** Until more are admitted; at least 1. */
  readonly resetSeconds: number;
  /** How long a window lasts: 60 but in tests. */
  readonly windowSeconds: number;
}

/** What limits say of a request that the decision allows. */
export type Admission =
  | {
      readonly kind: 'admitted';
      /** Hexadecimal digits by which the end of the request is recognised; undefined = nothing is to be settled. */
      readonly reservation: string | undefined;
      /** Undefined where no rate limit is in force. */
      readonly rate: RateState | undefined;
    }
  | {
      readonly kind: 'refused';
      readonly code: 'rate_limit_exceeded';
      readonly detail: string;
      readonly rate: RateState;
    }
  | {
      readonly kind: 'refused';
      readonly code: 'insufficient_quota';
      readonly detail: string;
      /** RFC 3339; undefined = not by itself. */
      readonly resetsAt: string | undefined;
      readonly rate: RateState | undefined;
    };

/** Lines 16 and 17 of the decision, which are no pure function: they count. */
export interface Limiter {
  /** The value itself when it is at hand; throws or rejects when it cannot say. */
  admit(allow: Allow, nowMs: number): Admission | Promise<Admission>;
  /**
   * Gives back what an admission reserved whose request does not go on: its tokens, or its collection. The share of the rate limit is
   * not given back. Idempotent. Never throws.
   */
  release(reservation: string): void;
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
