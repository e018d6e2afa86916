/** A check's request to the limits, and their decision. */

import type { Principal, TenantView } from '../decision/model.ts';
import type { RateLimitMember } from '../domain/problem-details.ts';
import type { BudgetRecord } from '../domain/records.ts';
import type { RateState } from './rate-state.ts';

export interface AdmissionRequest {
  /** The tenant in which the request acts, and the caller: for budgets and for limits by model. */
  readonly tenant: TenantView;
  readonly principal: Principal;
  /** The model that the request names, or the tenant's default; undefined = none. */
  readonly model: string | undefined;
  readonly tenantId: string;
  /** Requests per minute; undefined = no limit. The same applies to the other limits. */
  readonly tenantRpm: number | undefined;
  readonly keyId: string | undefined;
  /** The user, or the key's owner; undefined = none. */
  readonly userId: string | undefined;
  readonly keyRpm: number | undefined;
  /** Whether the route spends tokens. */
  readonly metered: boolean;
  /** The smallest token limit that the body names, and the number of answers that it requests. */
  readonly askedTokens: number | undefined;
  readonly askedChoices: number;
  /** The estimate of the body's text. */
  readonly promptTokens: number;
  /** The number of inline files in the body. */
  readonly inlineFiles: number;
  readonly maxTokensPerRequest: number | undefined;
  readonly monthlyTokens: number | undefined;
  /** IANA name; undefined = UTC. */
  readonly timezone: string | undefined;
  readonly createsCollection: boolean;
  /** The name of the collection that the request removes; undefined = it removes none. */
  readonly removedCollection: string | undefined;
  readonly maxCollections: number | undefined;
  /** Whether the request reads a response whose usage may have been booked by estimate. */
  readonly readsResponse: boolean;
  /** Whether the server reserves nothing and books the usage that the answer reports. */
  readonly reportsUsage: boolean;
  /** The monotonic time after which the check no longer waits. Default: it waits for the store's answer. */
  readonly decideByMs?: number | undefined;
}

export type LimitDecision =
  | {
      readonly kind: 'admitted';
      /** The id that identifies the end of the request; undefined = its end settles nothing. */
      readonly reservation: string | undefined;
      /** The state of the tightest limit of requests; undefined if there is none. */
      readonly rate: RateState | undefined;
      /** That of the tightest limit of tokens. Absent: there is none. */
      readonly tokenRate?: RateState | undefined;
      /** The text that the access log must return with the end of the request, see charge-text.ts. Absent: none. */
      readonly charges?: string | undefined;
      /**
       * The blocking budget with the smallest share left. Absent: no budget blocks, or the limits need not report it.
       */
      readonly budget?: BudgetState | undefined;
    }
  | RateRefusal
  | {
      readonly kind: 'refused';
      readonly code: 'insufficient_quota';
      readonly detail: string;
      /** RFC 3339; undefined = the quota has no period. */
      readonly resetsAt: string | undefined;
      readonly rate: RateState | undefined;
      /** The first budget, by name, without room. Absent: the monthly tokens or the number of collections is the cause. */
      readonly budget?: BudgetState | undefined;
    };

export interface RateRefusal {
  readonly kind: 'refused';
  readonly code: 'rate_limit_exceeded';
  readonly detail: string;
  /** The state of the limit of requests; undefined if another limit is the cause. */
  readonly rate: RateState | undefined;
  /** The state of the limit of tokens per minute, if that is the cause. */
  readonly tokenRate?: RateState | undefined;
  /** Set if `rate` is undefined. */
  readonly retryAfterSeconds?: number;
  /** The limit by model that is the cause. Absent: another limit is. */
  readonly limit?: RateLimitMember | undefined;
}

/** A budget at the time of a check, as this process knows it. */
export interface BudgetState extends Pick<BudgetRecord, 'id' | 'name' | 'unit' | 'period' | 'limit'> {
  /** RFC 3339; undefined = the period does not end. */
  readonly resetsAt: string | undefined;
  /** Whether the amount is that of this key or this user alone. */
  readonly own: boolean;
  /** Undefined before the store's first report; likewise the other two. */
  readonly spent: number | undefined;
  readonly reserved: number | undefined;
  readonly remaining: number | undefined;
}

/** Larger than any quota that a number represents exactly. */
const MAX_TOKENS = 2 ** 52;

export interface ReservedTokens {
  /** The prompt's estimate. */
  readonly prompt: number;
  /** The answer's bound. */
  readonly answer: number;
}

/** The tokens that the server assumes for parts of a request that state none. */
export interface Estimates {
  /** The answer's limit, within the tenant's maximum, for a request that names no limit. */
  readonly tokenEstimate: number;
  /** Each inline file of a prompt. */
  readonly fileEstimate: number;
}

/**
 * Returns the tokens that a request may spend: its prompt's estimate, and its limit for each answer that it requests.
 */
export function reservationAmount(
  request: Pick<
    AdmissionRequest,
    'askedTokens' | 'askedChoices' | 'maxTokensPerRequest' | 'promptTokens' | 'inlineFiles'
  >,
  { tokenEstimate, fileEstimate }: Estimates,
): ReservedTokens {
  const prompt = Math.min(MAX_TOKENS, request.promptTokens + request.inlineFiles * fileEstimate);
  const each = Math.min(request.askedTokens ?? tokenEstimate, request.maxTokensPerRequest ?? Number.POSITIVE_INFINITY);
  const answer = Math.min(MAX_TOKENS, Math.ceil(each * Math.max(1, request.askedChoices)));
  // At least one token, so that an exhausted quota rejects every request.
  return { prompt, answer: prompt === 0 ? Math.max(1, answer) : answer };
}
