/**
 * Handles one check: one CheckRequest in, one CheckResponse out.
 *
 * The stages are: read the message, match the route, resolve the credential, limit the bytes of bodies, decide, get the
 * token for the upstream, apply the limits, answer. If everything is cached, no stage awaits. Every answer is a denial until the last stage writes
 * the bytes of an `Allow`. An error in any stage is a 503 for that request only.
 *
 * A check that waits ends before the time of its caller is over, so that the client gets this server's 503 with
 * `Retry-After` and not Envoy's empty one. A check whose call is over is not decided. If the limits then make a
 * reservation for it, the handler releases the reservation.
 *
 * A check in shadow mode passes the same stages. It takes no token and nothing of the limits, its answer has nothing that
 * Envoy could apply, and its outcome is marked.
 */

import type { CredentialResolver, Resolution } from '../credential-cache/resolution.ts';
import { decide } from '../decision/decide.ts';
import { decideManagement } from '../decision/management.ts';
import type { Allow, Principal, PublicAllow, Route } from '../decision/model.ts';
import { matchRoute, type RouteMatch, type RouteTable } from '../decision/routes.ts';
import { Fault } from '../domain/errors.ts';
import { readCredential } from '../identity/credential.ts';
import type { BudgetState, LimitDecision } from '../metering/admission.ts';
import type { CheckObserver } from '../telemetry/check-observer.ts';
import type { Tracing } from '../telemetry/tracing.ts';
import { type BodyRateOptions, BodyRates } from './body-rates.ts';
import { DEFAULT_MAX_BODY_BYTES } from './bounds.ts';
import { budgetHeaderValue } from './budget-answers.ts';
import { CheckAnswers, type CheckAttempt, LAST_RESORT } from './check-answers.ts';
import type { CheckRequest } from './check-input.ts';
import { readCheckRequest } from './check-request.ts';
import type { Denial } from './denied-response.ts';
import { traceparentOf } from './draft.ts';
import type { UnaryCall } from './grpc/methods.ts';
import type { Limiter } from './ports.ts';
import { createRandomPool, type RandomPool } from './random-pool.ts';
import { createRequestIds } from './request-id.ts';
import type { UpstreamHeaders } from './upstream-headers.ts';
import { CANCELLED, waitWithin } from './within.ts';

interface ShadowParts {
  readonly resolver: CredentialResolver;
  readonly limiter: Limiter;
}

export interface CheckHandlerParts {
  readonly routes: RouteTable;
  readonly resolver: CredentialResolver;
  /** Default: no limits. */
  readonly limiter?: Limiter;
  /** The parts of checks in shadow mode, which change nothing. Default: the resolver, and no limits. */
  readonly shadow?: ShadowParts;
  /** Whether checks in shadow mode are decided; false: each is denied. Default: true. */
  readonly acceptsShadow?: boolean;
  readonly observer: CheckObserver;
  /** Trusted proxies in front of Envoy that write `X-Forwarded-For`; 0 = the connection's peer is the client. */
  readonly trustedHops: number;
  /** Whether the upstream gets the headers that carry a credential. */
  readonly forwardCredential: boolean;
  /** The tokens for the upstream; default: none. */
  readonly upstreamHeaders?: UpstreamHeaders | undefined;
  /** Whether answers have the header about the caller's budgets; default: false. */
  readonly budgetHeader?: boolean;
  /** The largest body that the handler reads, in bytes; default: 1 MiB. */
  readonly maxBodyBytes?: number;
  /** The rates at which the handler reads bodies of one caller and of one tenant; default: no bound. */
  readonly bodyRates?: BodyRateOptions;
  /** Milliseconds since the epoch. */
  readonly now?: () => number;
  /** The clock of `performance.now()`, in milliseconds: for deadlines, and for the duration of a check. */
  readonly monotonicMs?: () => number;
  readonly random?: RandomPool;
  /** Default: no traces. */
  readonly tracing?: Tracing | undefined;
  /** How long a check may wait for its lookups and limits together before it is a fault; default: 2000. */
  readonly maxWaitMs?: number;
}

/** Answers one check. Never throws, and the promise never rejects. @param call default: a call that never ends */
export type CheckHandler = (bytes: Buffer, call?: UnaryCall) => Buffer | Promise<Buffer>;

const DEFAULT_MAX_WAIT_MS = 2000;
/** The part of a caller's time that is left for the answer's way back and for a busy event loop. */
const MARGIN_SHARE = 0.2;
const MAX_MARGIN_MS = 100;

type MatchedRoute = Extract<RouteMatch, { readonly kind: 'matched' }>;

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
const NO_SHADOW: Denial = Object.freeze({
  code: 'malformed_request',
  detail: 'The server accepts no checks in shadow mode, because its setting trial.enabled is false.',
});
const USAGE_READ = 'usage:read';
const TOO_MANY_BYTES =
  'The caller or its tenant sends more bytes of request bodies than the server reads in a second. Send smaller bodies, or fewer at once.';

export function createCheckHandler(parts: CheckHandlerParts): CheckHandler {
  const checks = new Checks(parts);
  return (bytes, call = ENDLESS) => checks.handle(bytes, call);
}

class Checks {
  readonly #parts: CheckHandlerParts;
  readonly #limiter: Limiter;
  readonly #shadow: ShadowParts;
  readonly #acceptsShadow: boolean;
  readonly #upstreamHeaders: UpstreamHeaders | undefined;
  readonly #withBudgetHeader: boolean;
  readonly #maxBodyBytes: number;
  readonly #maxWaitMs: number;
  readonly #now: () => number;
  readonly #monotonicMs: () => number;
  readonly #requestIds: ReturnType<typeof createRequestIds>;
  readonly #bodyRates: BodyRates | undefined;
  /** Apart, so that checks in shadow mode take nothing from the others. */
  readonly #shadowBodyRates: BodyRates | undefined;
  readonly #answers: CheckAnswers;

  constructor(parts: CheckHandlerParts) {
    const { bodyRates, forwardCredential, observer, monotonicMs = monotonic, random = createRandomPool() } = parts;
    const tokenHeader = parts.upstreamHeaders?.header;
    this.#parts = parts;
    this.#limiter = parts.limiter ?? UNLIMITED;
    this.#shadow = parts.shadow ?? { resolver: parts.resolver, limiter: UNLIMITED };
    this.#acceptsShadow = parts.acceptsShadow ?? true;
    this.#upstreamHeaders = parts.upstreamHeaders;
    this.#withBudgetHeader = parts.budgetHeader ?? false;
    this.#maxBodyBytes = parts.maxBodyBytes ?? DEFAULT_MAX_BODY_BYTES;
    this.#maxWaitMs = parts.maxWaitMs ?? DEFAULT_MAX_WAIT_MS;
    this.#now = parts.now ?? Date.now;
    this.#monotonicMs = monotonicMs;
    this.#requestIds = createRequestIds(random);
    this.#bodyRates = bodyRates && new BodyRates(bodyRates);
    this.#shadowBodyRates = bodyRates && new BodyRates(bodyRates);
    this.#answers = new CheckAnswers({ observer, forwardCredential, tokenHeader, random, monotonicMs });
  }

  handle(bytes: Buffer, call: UnaryCall): Buffer | Promise<Buffer> {
    let attempt: CheckAttempt | undefined;
    try {
      const cameAtMs = this.#monotonicMs();
      const startedAtMs = this.#now();
      const requestId = this.#requestIds(startedAtMs);
      attempt = {
        call,
        startedAtMs,
        cameAtMs,
        requestId,
        request: undefined,
        snapshot: undefined,
        token: undefined,
        shadow: false,
        span: undefined,
      };
      if (cameAtMs >= call.deadlineMs)
        throw new Fault('the deadline of the check had passed when its message was complete');
      const { trustedHops, tracing } = this.#parts;
      const message = readCheckRequest(bytes, trustedHops, this.#maxBodyBytes);
      attempt.shadow = message.shadow;
      if (message.kind === 'malformed') return this.#answers.deny(attempt, MALFORMED, undefined);
      attempt.request = message;
      if (message.shadow && !this.#acceptsShadow) return this.#answers.deny(attempt, NO_SHADOW, undefined);
      return tracing === undefined ? this.#route(attempt, message) : this.#trace(tracing, attempt, message, bytes);
    } catch (error) {
      return attempt === undefined ? LAST_RESORT : this.#fault(attempt, error);
    }
  }

  /** Routes a check in a span that ends with its answer. */
  #trace(tracing: Tracing, attempt: CheckAttempt, request: CheckRequest, bytes: Buffer): Buffer | Promise<Buffer> {
    const span = tracing.request('check', traceparentOf(bytes));
    if (span === undefined) return this.#route(attempt, request);
    attempt.span = span;
    const answer = tracing.within(span, () => this.#route(attempt, request));
    // A check that did not wait has no span, because it takes less time than a span.
    if (answer instanceof Promise) void answer.then(() => span.end());
    return answer;
  }

  #route(attempt: CheckAttempt, request: CheckRequest): Buffer | Promise<Buffer> {
    const match = matchRoute(this.#parts.routes, request.input);
    switch (match.kind) {
      case 'public':
        return this.#answers.public(attempt, request, PUBLIC);
      case 'denied': {
        const { code, detail } = match;
        const decision = { kind: 'deny', code, detail } as const;
        return this.#answers.deny(attempt, decision, decision);
      }
      case 'matched':
        return this.#resolve(attempt, request, match);
      default:
        return match satisfies never;
    }
  }

  #resolve(attempt: CheckAttempt, request: CheckRequest, match: MatchedRoute): Buffer | Promise<Buffer> {
    const { authorization, apiKey, tenant, clientAddress } = request.input;
    const { call, cameAtMs, startedAtMs, shadow } = attempt;
    const credential = readCredential(authorization, apiKey);
    // A lookup must not take capacity after its caller has gone.
    const waitMs = Math.min(this.#maxWaitMs, call.deadlineMs - cameAtMs);
    const { resolver } = shadow ? this.#shadow : this.#parts;
    const resolution = resolver.resolve(credential, tenant, startedAtMs, clientAddress, waitMs);
    if (resolution instanceof Promise) return this.#awaitResolution(attempt, request, match, resolution);
    return this.#decide(attempt, request, match, resolution, startedAtMs);
  }

  async #awaitResolution(
    attempt: CheckAttempt,
    request: CheckRequest,
    match: MatchedRoute,
    pending: Promise<Resolution>,
  ): Promise<Buffer> {
    try {
      const resolution = await waitWithin(pending, this.#remainingWaitMs(attempt), attempt.call);
      return this.#decide(attempt, request, match, resolution, this.#now());
    } catch (error) {
      return this.#fault(attempt, error);
    }
  }

  #decide(
    attempt: CheckAttempt,
    request: CheckRequest,
    match: MatchedRoute,
    { identity, snapshot }: Resolution,
    nowMs: number,
  ): Buffer | Promise<Buffer> {
    if (identity.kind === 'proved') {
      if (snapshot === undefined) throw new Fault('an identity has no snapshot');
      const denied = this.#denyBeyondBodyRate(attempt, request, match.route, identity.principal);
      if (denied !== undefined) return denied;
    }
    attempt.snapshot = snapshot;
    const decision = decide(match, request.input, identity, snapshot, nowMs);
    switch (decision.kind) {
      case 'allow': {
        if (identity.kind !== 'proved') throw new Fault('a decision allows a request without an identity');
        if (this.#upstreamHeaders === undefined || !decision.route.upstreamToken || attempt.shadow)
          return this.#admit(attempt, request, decision, nowMs);
        const token = this.#upstreamHeaders.of(decision, nowMs);
        if (token instanceof Promise) return this.#awaitToken(attempt, request, decision, token);
        attempt.token = token;
        return this.#admit(attempt, request, decision, nowMs);
      }
      case 'public':
        throw new Fault('a decision allows a request without an identity');
      case 'deny':
        return this.#answers.deny(attempt, decision, decision);
      case 'fault':
        return this.#answers.undecided(attempt, decision);
      default:
        return decision satisfies never;
    }
  }

  /** Returns a denial if the caller or its tenant sends more bytes of bodies than the rates allow to read. */
  #denyBeyondBodyRate(
    attempt: CheckAttempt,
    request: CheckRequest,
    route: Route,
    principal: Principal,
  ): Buffer | undefined {
    const rates = attempt.shadow ? this.#shadowBodyRates : this.#bodyRates;
    if (rates === undefined || !route.readsBody) return undefined;
    const { id, tenantId } = principal;
    const retryAfterSeconds = rates.take(id, tenantId, request.input.body.length, attempt.cameAtMs);
    if (retryAfterSeconds === undefined) return undefined;
    const denial = { code: 'rate_limit_exceeded', detail: TOO_MANY_BYTES, route, principal } as const;
    return this.#answers.deny(attempt, { ...denial, retryAfterSeconds }, { kind: 'deny', ...denial });
  }

  /** Waits for the token before the limits, so that a request without its token takes nothing of them. */
  async #awaitToken(
    attempt: CheckAttempt,
    request: CheckRequest,
    allow: Allow,
    pending: Promise<Buffer>,
  ): Promise<Buffer> {
    try {
      attempt.token = await waitWithin(pending, this.#remainingWaitMs(attempt), attempt.call);
      return await this.#admit(attempt, request, allow, this.#now());
    } catch (error) {
      return this.#fault(attempt, error);
    }
  }

  #admit(attempt: CheckAttempt, request: CheckRequest, allow: Allow, nowMs: number): Buffer | Promise<Buffer> {
    const limiter = attempt.shadow ? this.#shadow.limiter : this.#limiter;
    const limited = limiter.admit(allow, nowMs, this.#latestMs(attempt));
    if (limited instanceof Promise) return this.#awaitAdmission(attempt, request, allow, limited);
    return this.#applyLimits(attempt, request, allow, limited);
  }

  async #awaitAdmission(
    attempt: CheckAttempt,
    request: CheckRequest,
    allow: Allow,
    pending: Promise<LimitDecision>,
  ): Promise<Buffer> {
    let limited: LimitDecision | undefined;
    try {
      limited = await waitWithin(pending, this.#remainingWaitMs(attempt), attempt.call);
      return this.#applyLimits(attempt, request, allow, limited);
    } catch (error) {
      // The limits may still admit the check that no longer waits.
      if (limited === undefined)
        pending.then(
          (late) => this.#release(late),
          () => undefined,
        );
      return this.#fault(attempt, error);
    }
  }

  #applyLimits(attempt: CheckAttempt, request: CheckRequest, allow: Allow, limited: LimitDecision): Buffer {
    switch (limited.kind) {
      case 'admitted': {
        const { reservation } = limited;
        let bytes: Buffer;
        try {
          const budgetHeader = this.#budgetHeaderOf(attempt, request, allow, limited.budget);
          bytes = this.#answers.allow(attempt, request, allow, limited, budgetHeader);
        } catch (error) {
          this.#release(limited);
          throw error;
        }
        if (reservation !== undefined) attempt.call.releaseUnlessDelivered(this.#limiter, reservation);
        return bytes;
      }
      case 'refused': {
        const { kind: _refused, ...refusal } = limited;
        const { code, detail } = refusal;
        const { route, principal, resources, tenant } = allow;
        const denial = { ...refusal, route, principal };
        const decision = { kind: 'deny', code, detail, route, principal, tenant: tenant.id, resources } as const;
        if (code === 'rate_limit_exceeded')
          return this.#answers.deny(attempt, denial, { ...decision, modelLimit: refusal.limit });
        if (refusal.budget === undefined) return this.#answers.deny(attempt, denial, decision);
        const { budget } = refusal;
        const showsAmounts = this.#readsUsage(attempt, request, allow);
        const budgetHeader = this.#withBudgetHeader
          ? budgetHeaderValue(budget, showsAmounts || budget.own, this.#now())
          : undefined;
        return this.#answers.deny(
          attempt,
          { ...refusal, route, principal, showsAmounts, budgetHeader },
          { ...decision, budgetId: budget.id },
        );
      }
      default:
        return limited satisfies never;
    }
  }

  /** Returns the value of the header about the budget; undefined if there is none, or the setting is off. */
  #budgetHeaderOf(
    attempt: CheckAttempt,
    request: CheckRequest,
    allow: Allow,
    budget: BudgetState | undefined,
  ): string | undefined {
    if (budget === undefined || !this.#withBudgetHeader) return undefined;
    return budgetHeaderValue(budget, budget.own || this.#readsUsage(attempt, request, allow), this.#now());
  }

  /** Reports whether the caller may read usage, and therefore the amounts of any budget that counts its requests. */
  #readsUsage({ snapshot }: CheckAttempt, { input }: CheckRequest, { principal }: Allow): boolean {
    if (snapshot === undefined) return false;
    const { clientAddress } = input;
    const query = { permission: USAGE_READ, self: false, principal, snapshot, clientAddress, nowMs: this.#now() };
    return decideManagement(query).kind === 'allow';
  }

  #release(limited: LimitDecision): void {
    if (limited.kind === 'admitted' && limited.reservation !== undefined) this.#limiter.release(limited.reservation);
  }

  #remainingWaitMs(attempt: CheckAttempt): number {
    return Math.max(0, this.#latestMs(attempt) - this.#monotonicMs());
  }

  #latestMs({ call, cameAtMs }: CheckAttempt): number {
    const margin = Math.min(MAX_MARGIN_MS, (call.deadlineMs - cameAtMs) * MARGIN_SHARE);
    return Math.min(cameAtMs + this.#maxWaitMs, call.deadlineMs - margin);
  }

  #fault(attempt: CheckAttempt, error: unknown): Buffer {
    // A cancelled check has no outcome, because it gets no answer. The transport counts such calls.
    return error === CANCELLED ? LAST_RESORT : this.#answers.fault(attempt, error);
  }
}
