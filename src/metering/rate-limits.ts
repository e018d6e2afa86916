/**
 * The limits per minute of one request: the tenant's and the key's requests per minute, and the limits by model of the
 * tenant, the user or owner, and the key. A request consumes units of all of them, or of none.
 */

import type { RateLimitMember } from '../domain/problem-details.ts';
import type { MeteringCounts } from '../telemetry/metering-counts.ts';
import type { Account } from './account.ts';
import type { AdmissionRequest, RateRefusal } from './admission.ts';
import type { RateLeases, RateResult, RateStates, Subjects } from './rate-leases.ts';
import type { PlannedRate } from './rate-plans.ts';
import type { RateState } from './rate-state.ts';
import type { RateSubject } from './rate-subjects.ts';
import type { RateWindow } from './rate-window.ts';

export type RateOutcome =
  | RateRefusal
  | (RateStates & {
      readonly kind: 'passed';
      /** The tokens that the request consumed and that its end corrects; undefined if no limit counts tokens. */
      readonly account: Account | undefined;
    });

const NO_LIMITS: RateOutcome = Object.freeze({
  kind: 'passed',
  rate: undefined,
  tokenRate: undefined,
  account: undefined,
});

/** Requests per minute of all models, and of requests without a model. */
const ALL = { models: ['*'], dimension: 'requests_per_minute' } as const;
const OF_TENANT: RateLimitMember = { level: 'tenant', ...ALL };
const OF_KEY: RateLimitMember = { level: 'key', ...ALL };

export class RateLimits {
  readonly #leases: RateLeases;
  readonly #counts: MeteringCounts;

  constructor(leases: RateLeases, counts: MeteringCounts) {
    this.#leases = leases;
    this.#counts = counts;
  }

  /**
   * @param byModel the limits by model that count the request
   * @param tokens the tokens that the request may spend
   * @returns a promise if the check must wait for the store
   */
  admit(
    request: AdmissionRequest,
    byModel: readonly PlannedRate[],
    tokens: number,
    now: number,
  ): RateOutcome | Promise<RateOutcome> {
    const subjects = this.#subjectsOf(request, byModel, now);
    if (!isSome(subjects)) return NO_LIMITS;
    const result = this.#leases.consume(subjects, tokens, now, request.decideByMs);
    return result instanceof Promise
      ? result.then((late) => this.#outcome(late, request, tokens))
      : this.#outcome(result, request, tokens);
  }

  #subjectsOf(request: AdmissionRequest, byModel: readonly PlannedRate[], now: number): RateSubject[] {
    const { tenantId, tenantRpm, keyId, keyRpm } = request;
    const leases = this.#leases;
    const subjects: RateSubject[] = [];
    if (tenantRpm !== undefined) subjects.push(leases.subject('tenant', tenantId, OF_TENANT, tenantRpm, now));
    if (keyId !== undefined && keyRpm !== undefined) subjects.push(leases.subject('key', keyId, OF_KEY, keyRpm, now));
    for (const planned of byModel) {
      const { limit, label, name, subject } = planned;
      if (subject === undefined || subject.forgotten) {
        planned.subject = leases.subject('model', name, label, limit, now);
        subjects.push(planned.subject);
      } else {
        subject.limit = limit;
        subjects.push(subject);
      }
    }
    return subjects;
  }

  #outcome(result: RateResult, request: AdmissionRequest, tokens: number): RateOutcome {
    if (result.kind === 'refused') return this.#refuse(result, request, tokens);
    this.#counts.rateAllowed += 1;
    const { rate, tokenRate, windows } = result;
    return { kind: 'passed', rate, tokenRate, account: tokenRate && this.#accountOf(windows) };
  }

  #accountOf(windows: readonly RateWindow[]): Account {
    const ofTokens = windows.filter(({ subject }) => subject.unit === 'tokens');
    const release: Account['release'] = (amount, spent) => this.#leases.correct(ofTokens, amount - spent);
    return { unit: 'tokens', isBooked: false, release };
  }

  #refuse(
    { subject, state }: Extract<RateResult, { kind: 'refused' }>,
    { keyId }: AdmissionRequest,
    tokens: number,
  ): RateRefusal {
    this.#counts.rateRefused += 1;
    return refusedRate(subject, state, keyId, tokens);
  }
}

/** A limit per minute that counts a request, and the name of its subject. */
export interface MinuteLimit extends Pick<RateSubject, 'label' | 'limit' | 'name'> {}

/** Returns the limits of a request, in the order in which they refuse. */
export function minuteLimitsOf(request: AdmissionRequest, byModel: readonly PlannedRate[]): readonly MinuteLimit[] {
  const { tenantId, tenantRpm, keyId, keyRpm } = request;
  const limits: MinuteLimit[] = [];
  if (tenantRpm !== undefined) limits.push({ name: `tenant:${tenantId}`, label: OF_TENANT, limit: tenantRpm });
  if (keyId !== undefined && keyRpm !== undefined) limits.push({ name: `key:${keyId}`, label: OF_KEY, limit: keyRpm });
  return [...limits, ...byModel];
}

/** @param tokens the tokens that the request may spend */
export function refusedRate(
  { label, limit: most }: Pick<MinuteLimit, 'label' | 'limit'>,
  state: RateState,
  keyId: string | undefined,
  tokens: number,
): RateRefusal {
  const byModel = label !== OF_TENANT && label !== OF_KEY;
  const models = byModel ? ` for the models ${label.models.join(', ')}` : '';
  const retry = `Try again in ${state.resetSeconds} s.`;
  const named = { kind: 'refused', code: 'rate_limit_exceeded', limit: byModel ? label : undefined } as const;
  const holder = holderOf(label, keyId);
  if (label.dimension !== 'tokens_per_minute') {
    const detail = `${holder} may send ${most} requests per minute${models}. ${retry}`;
    return { ...named, detail, rate: state };
  }
  const allowed = `${holder} may use ${most} tokens per minute${models}`;
  const detail =
    tokens > most
      ? `This request may use up to ${tokens} tokens, but ${lowerFirst(allowed)}. Request a shorter answer, for example with max_tokens, or send a shorter prompt.`
      : `${allowed}, and this request may use up to ${tokens}. ${retry}`;
  return { ...named, detail, rate: undefined, tokenRate: state, retryAfterSeconds: state.resetSeconds };
}

function isSome(subjects: readonly RateSubject[]): subjects is Subjects {
  return subjects.length > 0;
}

function holderOf({ level }: RateLimitMember, keyId: string | undefined): string {
  switch (level) {
    case 'tenant':
      return 'This tenant';
    case 'user':
      return keyId === undefined ? 'This user' : 'The owner of this API key';
    case 'key':
      return 'This API key';
    default:
      return level satisfies never;
  }
}

function lowerFirst(text: string): string {
  return `${text.slice(0, 1).toLowerCase()}${text.slice(1)}`;
}
