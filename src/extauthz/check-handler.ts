/**
 * The gate: one CheckRequest in, one CheckResponse out, whatever happens between.
 *
 * read -> match the route -> read the credential -> resolve it -> decide -> write. Warm, nothing here waits. Every answer begins as a
 * denial: the bytes of an allow exist only once the last stage has made them of an `Allow`, and anything thrown on the way, at any
 * stage, is this request's 503 and no other's.
 *
 * A check that has to wait is given up before its caller gives up, so that the client gets this server's 503 with `Retry-After` and not
 * Envoy's empty one. A check whose call is over is not decided, and what the limits reserve for it is released when they have answered.
 */

import type { CredentialResolver, Resolution } from '../credential-cache/resolution.ts';
import { decide } from '../decision/decide.ts';
import type { Allow, Decision, PublicAllow } from '../decision/model.ts';
import { matchRoute, type RouteMatch, type RouteTable } from '../decision/routes.ts';
import { Fault } from '../domain/errors.ts';
import type { RequestId } from '../domain/ids.ts';
import { readCredential } from '../identity/credential.ts';
import type { LimitDecision } from '../metering/admission.ts';
import type { Span, Tracing } from '../telemetry/tracing.ts';
import { notSentFaults } from './body-not-sent.ts';
import { type BodyRateOptions, BodyRates } from './body-rates.ts';
import { DEFAULT_MAX_BODY_BYTES } from './bounds.ts';
import type { CheckRequest } from './check-input.ts';
import { readCheckRequest } from './check-request.ts';
import { createAllowWriter } from './check-response.ts';
import { type Denial, denialAnswer } from './denied-response.ts';
import type { UnaryCall } from './grpc/methods.ts';
import { isMessagesPath } from './messages-path.ts';
import type { Limiter, Observer, Outcome } from './ports.ts';
import { createRandomPool, type RandomPool } from './random-pool.ts';
import { createRequestIds } from './request-id.ts';
import { traceparentOf } from './trace-header.ts';
import { CANCELLED, within } from './within.ts';

export interface CheckHandlerParts {
  readonly routes: RouteTable;
  readonly resolver: CredentialResolver;
  /** Absent: nothing is limited. */
  readonly limiter?: Limiter;
  readonly observer: Observer;
  /** Proxies in front of Envoy that `X-Forwarded-For` is believed from; 0 = the connection's peer is the client. */
  readonly trustedHops: number;
  /** Whether the upstream gets the headers that carry a credential. */
  readonly forwardCredential: boolean;
  /** The largest body that is read, in bytes; default: 1 MiB. */
  readonly maxBodyBytes?: number;
  /** How many bytes of bodies are read for one caller and for one tenant. Absent: as many as they send. */
  readonly bodyRates?: BodyRateOptions;
  /** Milliseconds since the epoch. */
  readonly now?: () => number;
  /** The clock of `performance.now()`, in milliseconds: for deadlines, and for how long a check takes. */
  readonly monotonicMs?: () => number;
  readonly random?: RandomPool;
  /** Default: no traces. */
  readonly tracing?: Tracing | undefined;
  /** How long a check may wait, for its lookups and its limits together, before it is a fault; less if its deadline is nearer. */
  readonly maxWaitMs?: number;
}

/** Answers one check; default: a call that never ends. Never throws, and the promise never rejects. */
export type CheckHandler = (bytes: Buffer, call?: UnaryCall) => Buffer | Promise<Buffer>;

const DEFAULT_MAX_WAIT_MS = 2000;
/** What is left of a caller's time for the answer's way back, and for an event loop that is busy: a fifth, but no more than 100 ms. */
const MARGIN_SHARE = 0.2;
const MAX_MARGIN_MS = 100;
type Admitted = Extract<LimitDecision, { readonly kind: 'admitted' }>;

const monotonic = (): number => performance.now();
const PUBLIC: PublicAllow = Object.freeze({ kind: 'public' });
const ADMITTED: LimitDecision = Object.freeze({ kind: 'admitted', reservation: undefined, rate: undefined });
const UNLIMITED: Limiter = { admit: () => ADMITTED, release: () => undefined };
const ENDLESS: UnaryCall = Object.freeze({
  deadlineMs: Number.POSITIVE_INFINITY,
  onCancel: () => undefined,
  releaseUnlessDelivered: () => undefined,
});
const MALFORMED: Denial = Object.freeze({
  code: 'malformed_request',
  detail:
    'The server could not read the check, or the check does not describe an HTTP request. Check the ext_authz configuration of Envoy.',
});
const UNAVAILABLE: Denial = Object.freeze({
  code: 'unavailable',
  detail: 'The server cannot decide the request at the moment. Try again in a few seconds.',
});
const TOO_MANY_BYTES =
  'The caller or its tenant sends more bytes of request bodies than the server reads in a second. Send smaller bodies, or fewer at once.';
const NO_REQUEST = Object.freeze({ input: undefined, clientRequestId: undefined });
/** For when not even an answer can be written. */
const LAST_RESORT = denialAnswer(UNAVAILABLE, 'req_00000000000000000000000000', false);

/** What is known of a check under way. */
interface Attempt {
  readonly call: UnaryCall;
  /** Milliseconds since the epoch. */
  readonly startedAtMs: number;
  /** By the monotonic clock. */
  readonly cameAtMs: number;
  readonly requestId: RequestId;
  request: CheckRequest | undefined;
  /** Of a sampled request while traces are on. */
  span: Span | undefined;
}

function denialOf({ request, requestId }: Attempt, denial: Denial): Buffer {
  return denialAnswer(denial, requestId, request !== undefined && isMessagesPath(request.input.path));
}

export function createCheckHandler(parts: CheckHandlerParts): CheckHandler {
  const {
    routes,
    resolver,
    limiter = UNLIMITED,
    observer,
    trustedHops,
    maxBodyBytes = DEFAULT_MAX_BODY_BYTES,
    now = Date.now,
    monotonicMs = monotonic,
    random = createRandomPool(),
    maxWaitMs = DEFAULT_MAX_WAIT_MS,
    tracing,
  } = parts;
  const requestIds = createRequestIds(random);
  const notSent = notSentFaults();
  const bodyRates = parts.bodyRates && new BodyRates(parts.bodyRates);
  const writer = createAllowWriter(parts.forwardCredential, random);

  function check(bytes: Buffer, call = ENDLESS): Buffer | Promise<Buffer> {
    let attempt: Attempt | undefined;
    try {
      const cameAtMs = monotonicMs();
      const startedAtMs = now();
      attempt = {
        call,
        startedAtMs,
        cameAtMs,
        requestId: requestIds(startedAtMs),
        request: undefined,
        span: undefined,
      };
      if (cameAtMs >= call.deadlineMs)
        throw new Fault('the deadline of the check had passed when its message was complete');
      const message = readCheckRequest(bytes, trustedHops, maxBodyBytes);
      if (message.kind === 'malformed') return deny(attempt, MALFORMED, undefined);
      attempt.request = message;
      return tracing === undefined ? route(attempt, message) : traced(tracing, attempt, message, bytes);
    } catch (error) {
      return fault(attempt, error);
    }
  }

  /** The span of a check ends with its answer. A check that did not wait has none: it takes less time than a span. */
  function traced(on: Tracing, attempt: Attempt, request: CheckRequest, bytes: Buffer): Buffer | Promise<Buffer> {
    const span = on.request('check', traceparentOf(bytes));
    if (span === undefined) return route(attempt, request);
    attempt.span = span;
    const answered = on.within(span, () => route(attempt, request));
    if (answered instanceof Promise) void answered.then(() => span.end());
    return answered;
  }

  function route(attempt: Attempt, request: CheckRequest): Buffer | Promise<Buffer> {
    const { input } = request;
    const match = matchRoute(routes, input);
    switch (match.kind) {
      case 'public':
        return answer(attempt, request, PUBLIC);
      case 'denied':
        return answer(attempt, request, { kind: 'deny', code: match.code, detail: match.detail });
      case 'matched': {
        const credential = readCredential(input.authorization, input.apiKey);
        const { call, cameAtMs, startedAtMs } = attempt;
        // A load must not take capacity after its caller has gone.
        const waitMs = Math.min(maxWaitMs, call.deadlineMs - cameAtMs);
        const resolution = resolver.resolve(credential, input.tenant, startedAtMs, input.clientAddress, waitMs);
        if (resolution instanceof Promise) return wait(attempt, request, match, resolution);
        return conclude(attempt, request, match, resolution, attempt.startedAtMs);
      }
      default:
        return match satisfies never;
    }
  }

  async function wait(
    attempt: Attempt,
    request: CheckRequest,
    match: RouteMatch,
    pending: Promise<Resolution>,
  ): Promise<Buffer> {
    try {
      const resolution = await within(pending, mayWaitMs(attempt), attempt.call);
      return conclude(attempt, request, match, resolution, now());
    } catch (error) {
      return fault(attempt, error);
    }
  }

  /** Returns how long this check may still wait, in milliseconds. */
  function mayWaitMs({ call, cameAtMs }: Attempt): number {
    const margin = Math.min(MAX_MARGIN_MS, (call.deadlineMs - cameAtMs) * MARGIN_SHARE);
    return Math.max(0, Math.min(cameAtMs + maxWaitMs, call.deadlineMs - margin) - monotonicMs());
  }

  /** The rate of bodies, lines 5 to 15 of the decision, and then what limits allow. */
  function conclude(
    attempt: Attempt,
    request: CheckRequest,
    match: RouteMatch,
    resolution: Resolution,
    nowMs: number,
  ): Buffer | Promise<Buffer> {
    const { identity, snapshot } = resolution;
    if (identity.kind === 'proved' && snapshot === undefined) throw new Fault('an identity has no snapshot');
    if (bodyRates !== undefined && identity.kind === 'proved' && match.kind === 'matched' && match.route.readsBody) {
      const { principal } = identity;
      const { id, tenantId } = principal;
      const retryAfterSeconds = bodyRates.take(id, tenantId, request.input.body.length, attempt.cameAtMs);
      if (retryAfterSeconds !== undefined) {
        const refusal = { code: 'rate_limit_exceeded', detail: TOO_MANY_BYTES, route: match.route, principal } as const;
        return deny(attempt, { ...refusal, retryAfterSeconds }, { kind: 'deny', ...refusal });
      }
    }
    const decision = decide(match, request.input, identity, snapshot, nowMs);
    if (decision.kind === 'public' || (decision.kind === 'allow' && identity.kind !== 'proved')) {
      throw new Fault('a decision allows a request without an identity');
    }
    if (decision.kind !== 'allow') return answer(attempt, request, decision);
    const admission = limiter.admit(decision, nowMs);
    if (admission instanceof Promise) return awaitAdmission(attempt, request, decision, admission);
    return admit(attempt, request, decision, admission);
  }

  async function awaitAdmission(
    attempt: Attempt,
    request: CheckRequest,
    allow: Allow,
    pending: Promise<LimitDecision>,
  ): Promise<Buffer> {
    let admission: LimitDecision;
    try {
      admission = await within(pending, mayWaitMs(attempt), attempt.call);
    } catch (error) {
      // The limits may still admit what was given up.
      pending.then(release, () => undefined);
      return fault(attempt, error);
    }
    try {
      return admit(attempt, request, allow, admission);
    } catch (error) {
      return fault(attempt, error);
    }
  }

  function release(admission: LimitDecision): void {
    if (admission.kind === 'admitted' && admission.reservation !== undefined) limiter.release(admission.reservation);
  }

  /** Lines 16 and 17. */
  function admit(attempt: Attempt, request: CheckRequest, allow: Allow, admission: LimitDecision): Buffer {
    switch (admission.kind) {
      case 'admitted': {
        const bytes = writeAllow(attempt, request, allow, admission);
        if (admission.reservation !== undefined) attempt.call.releaseUnlessDelivered(limiter, admission.reservation);
        report(attempt, 'allow', allow, undefined);
        return bytes;
      }
      case 'refused': {
        const { kind: _refused, ...refusal } = admission;
        const { route, principal, resources } = allow;
        const { code, detail } = refusal;
        return deny(
          attempt,
          { ...refusal, route, principal },
          { kind: 'deny', code, detail, route, principal, tenant: allow.tenant.id, resources },
        );
      }
      default:
        return admission satisfies never;
    }
  }

  function writeAllow(attempt: Attempt, request: CheckRequest, allow: Allow, admission: Admitted): Buffer {
    try {
      return writer.allow(allow, admission, attempt.requestId, request.aliases, isMessagesPath(request.input.path));
    } catch (error) {
      release(admission);
      throw error;
    }
  }

  function answer(attempt: Attempt, request: CheckRequest, decision: Exclude<Decision, Allow>): Buffer {
    switch (decision.kind) {
      case 'public': {
        const bytes = writer.public(decision, attempt.requestId, request.aliases);
        report(attempt, 'public', decision, undefined);
        return bytes;
      }
      case 'deny':
        return deny(attempt, decision, decision);
      case 'fault': {
        const { route, principal } = decision;
        const bytes = denialOf(attempt, { ...UNAVAILABLE, route, principal });
        report(attempt, 'unavailable', decision, notSent(route));
        return bytes;
      }
      default:
        return decision satisfies never;
    }
  }

  function deny(attempt: Attempt, denial: Denial, decision: Decision | undefined): Buffer {
    const bytes = denialOf(attempt, denial);
    report(attempt, denial.code, decision, undefined);
    return bytes;
  }

  function fault(attempt: Attempt | undefined, error: unknown): Buffer {
    // A cancelled check has no outcome, because it gets no answer. The server counts such calls.
    if (error === CANCELLED) return LAST_RESORT;
    let bytes = LAST_RESORT;
    try {
      if (attempt !== undefined) bytes = denialOf(attempt, UNAVAILABLE);
    } catch {
      // The prepared denial stands.
    }
    report(attempt, 'unavailable', undefined, error);
    return bytes;
  }

  function report(
    attempt: Attempt | undefined,
    code: Outcome['code'],
    decision: Decision | undefined,
    error: unknown,
  ): void {
    if (attempt === undefined) return;
    try {
      const { requestId, startedAtMs, request, span } = attempt;
      const tookMs = monotonicMs() - attempt.cameAtMs;
      const { input, clientRequestId } = request ?? NO_REQUEST;
      span?.set({ 'postern.code': code, 'postern.request_id': requestId });
      const traceId = span?.traceId;
      observer.observe({ code, requestId, startedAtMs, input, clientRequestId, traceId, decision, error, tookMs });
    } catch {
      // An observer's failure is no reason to change an answer, and there is nobody else to tell.
    }
  }

  return check;
}
