/** The answers of one check handler, each written and then reported to the observer. */

import { BODY_SETTING } from '../decision/body.ts';
import type { Allow, Decision, PublicAllow, Route, Snapshot } from '../decision/model.ts';
import { Fault } from '../domain/errors.ts';
import type { RequestId } from '../domain/ids.ts';
import type { CheckObserver } from '../telemetry/check-observer.ts';
import type { CheckCode } from '../telemetry/check-outcome.ts';
import type { Span } from '../telemetry/tracing.ts';
import type { CheckRequest } from './check-input.ts';
import { type AdmittedLimits, type AllowWriter, createAllowWriter } from './check-response.ts';
import { createDenialWriter, type Denial, writeShadowDenial } from './denied-response.ts';
import type { UnaryCall } from './grpc/methods.ts';
import type { UpstreamTokenHeader } from './header-spellings.ts';
import type { RandomPool } from './random-pool.ts';

export interface CheckAttempt {
  readonly call: UnaryCall;
  /** Milliseconds since the epoch. */
  readonly startedAtMs: number;
  /** The start by the monotonic clock, in milliseconds. */
  readonly cameAtMs: number;
  readonly requestId: RequestId;
  /** Undefined until the message was read. */
  request: CheckRequest | undefined;
  /** Undefined until the credential was resolved. */
  snapshot: Snapshot | undefined;
  /** The encoded header with the token for the upstream; undefined = none. */
  token: Buffer | undefined;
  /** Whether the check must change nothing. False until the message was read. */
  shadow: boolean;
  /** The span of a sampled request while traces are on. */
  span: Span | undefined;
}

interface CheckAnswersParts {
  readonly observer: CheckObserver;
  readonly forwardCredential: boolean;
  readonly tokenHeader: UpstreamTokenHeader | undefined;
  readonly random: RandomPool;
  readonly monotonicMs: () => number;
}

const UNAVAILABLE: Denial = Object.freeze({
  code: 'unavailable',
  detail: 'The server cannot decide the request at the moment. Try again in a few seconds.',
});
const NO_REQUEST = Object.freeze({ input: undefined, clientRequestId: undefined });

/** The denial of a check whose own denial cannot be written, and of a call that is over. */
export const LAST_RESORT: Buffer = createDenialWriter()(UNAVAILABLE, 'req_00000000000000000000000000', false);

export class CheckAnswers {
  readonly #observer: CheckObserver;
  readonly #monotonicMs: () => number;
  readonly #allows: AllowWriter;
  readonly #writeDenial = createDenialWriter();
  /** One fault for each route, so that a flood of requests without their bodies creates no stack traces. */
  readonly #notSentFaults = new Map<Route, Fault>();

  constructor({ observer, forwardCredential, tokenHeader, random, monotonicMs }: CheckAnswersParts) {
    this.#observer = observer;
    this.#monotonicMs = monotonicMs;
    this.#allows = createAllowWriter(forwardCredential, random, tokenHeader);
  }

  allow(
    attempt: CheckAttempt,
    { aliases, input }: CheckRequest,
    allow: Allow,
    admitted: AdmittedLimits,
    budgetHeader: string | undefined,
  ): Buffer {
    const { requestId, token, shadow } = attempt;
    const isMessages = isMessagesPath(input.path);
    const bytes = shadow
      ? this.#allows.shadow(allow)
      : this.#allows.allow(allow, admitted, requestId, aliases, isMessages, token, budgetHeader);
    this.#report(attempt, 'allow', allow, undefined);
    return bytes;
  }

  public(attempt: CheckAttempt, { aliases }: CheckRequest, decision: PublicAllow): Buffer {
    const { requestId, shadow } = attempt;
    const bytes = shadow ? this.#allows.shadow(decision) : this.#allows.public(decision, requestId, aliases);
    this.#report(attempt, 'public', decision, undefined);
    return bytes;
  }

  /** @param decision undefined if the check did not reach a decision */
  deny(attempt: CheckAttempt, denial: Denial, decision: Decision | undefined): Buffer {
    const bytes = this.#denialOf(attempt, denial);
    this.#report(attempt, denial.code, decision, undefined);
    return bytes;
  }

  /** Answers a decision that the server could not make, because Envoy did not send the body. */
  undecided(attempt: CheckAttempt, decision: Extract<Decision, { readonly kind: 'fault' }>): Buffer {
    const { route, principal } = decision;
    const bytes = this.#denialOf(attempt, { ...UNAVAILABLE, route, principal });
    this.#report(attempt, 'unavailable', decision, this.#notSentFault(route));
    return bytes;
  }

  /** Answers an error of any stage. Never throws. */
  fault(attempt: CheckAttempt, error: unknown): Buffer {
    let bytes = LAST_RESORT;
    try {
      bytes = this.#denialOf(attempt, UNAVAILABLE);
    } catch {
      // The prepared denial answers the check.
    }
    this.#report(attempt, 'unavailable', undefined, error);
    return bytes;
  }

  #denialOf({ request, requestId, shadow }: CheckAttempt, denial: Denial): Buffer {
    const isMessages = request !== undefined && isMessagesPath(request.input.path);
    const write = shadow ? writeShadowDenial : this.#writeDenial;
    return write(denial, requestId, isMessages);
  }

  #report(attempt: CheckAttempt, code: CheckCode, decision: Decision | undefined, error: unknown): void {
    try {
      const { requestId, startedAtMs, request, shadow, span } = attempt;
      const tookMs = this.#monotonicMs() - attempt.cameAtMs;
      const { input, clientRequestId } = request ?? NO_REQUEST;
      span?.set({ 'postern.code': code, 'postern.request_id': requestId });
      const traceId = span?.traceId;
      this.#observer.observe({
        code,
        requestId,
        startedAtMs,
        input,
        clientRequestId,
        traceId,
        decision,
        error,
        shadow,
        tookMs,
      });
    } catch {
      // An observer's failure must not change an answer.
    }
  }

  #notSentFault(route: Route): Fault {
    return this.#notSentFaults.getOrInsertComputed(
      route,
      ({ method, template }) =>
        new Fault(
          `Envoy did not send the body of ${method} ${template}, which the decision reads. Set ${BODY_SETTING} for this route, or use the configuration that postern envoy config prints`,
        ),
    );
  }
}

const MESSAGES = '/v1/messages';

/**
 * Reports whether a path belongs to Anthropic's Messages API. Its clients read errors and request ids in another form.
 * @param path the request target: path and query
 */
function isMessagesPath(path: string): boolean {
  if (!path.startsWith(MESSAGES)) return false;
  const after = path.charAt(MESSAGES.length);
  return after === '' || after === '/' || after === '?';
}
