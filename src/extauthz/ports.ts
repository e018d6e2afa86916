/** What the gate asks of other rooms. `server.ts` joins them. */

import type { Decision, HeaderValue, Identity, Snapshot } from '../decision/model.ts';
import type { CredentialForm } from '../domain/credential.ts';
import type { RequestId } from '../domain/ids.ts';
import type { DenialCode } from './denied-response.ts';

export interface Resolution {
  readonly identity: Identity;
  /** Undefined unless the identity is proved. */
  readonly snapshot: Snapshot | undefined;
}

export interface Resolver {
  /** Who the credential proves, and the world around them. The value itself when it is at hand; throws or rejects when it cannot say. */
  resolve(credential: CredentialForm, tenant: HeaderValue, nowMs: number): Resolution | Promise<Resolution>;
}

/** What became of one check. */
export interface Outcome {
  readonly code: 'allow' | 'public' | DenialCode;
  readonly requestId: RequestId;
  /** Envoy's `x-request-id`; undefined when the message did not carry one. */
  readonly clientRequestId: string | undefined;
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
