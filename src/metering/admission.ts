/** What a check asks of the limits, and what they answer. */

import type { RateState } from './rate-state.ts';

export interface AdmissionRequest {
  readonly tenantId: string;
  /** Requests per minute; undefined = no limit, here and below. */
  readonly tenantRpm: number | undefined;
  readonly keyId: string | undefined;
  /** The user, or the key's owner; undefined = none. */
  readonly userId: string | undefined;
  readonly keyRpm: number | undefined;
  /** Whether the route spends tokens. */
  readonly metered: boolean;
  /** The smallest token limit that the body names, and how many answers it asks for. */
  readonly askedTokens: number | undefined;
  readonly askedChoices: number;
  /** The estimate of the body's text. */
  readonly promptTokens: number;
  /** How many inline files the body has besides. */
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
  /** Whether nothing is reserved, and the usage that the answer reports is booked. */
  readonly reportsUsage: boolean;
}

export type LimitDecision =
  | {
      readonly kind: 'admitted';
      /** By which the end of the request is recognised; undefined = nothing is to be settled. */
      readonly reservation: string | undefined;
      /** Of the tighter rate limit; undefined where none is in force. */
      readonly rate: RateState | undefined;
    }
  | RateRefusal
  | {
      readonly kind: 'refused';
      readonly code: 'insufficient_quota';
      readonly detail: string;
      /** RFC 3339; undefined = not by itself. */
      readonly resetsAt: string | undefined;
      readonly rate: RateState | undefined;
    };

export interface RateRefusal {
  readonly kind: 'refused';
  readonly code: 'rate_limit_exceeded';
  readonly detail: string;
  readonly rate: RateState;
}

/** More than any quota that can be kept exactly. */
const MAX_TOKENS = 2 ** 52;

/** What a request may spend, in tokens. */
export interface ReservedTokens {
  /** The prompt's estimate. */
  readonly prompt: number;
  /** The answer's bound. */
  readonly answer: number;
}

/** The tokens that the server assumes for parts of a request that state none. */
export interface Estimates {
  /** The limit of a request that names none, within the tenant's maximum. */
  readonly tokenEstimate: number;
  /** Each inline file of a prompt. */
  readonly fileEstimate: number;
}

/** Returns what a request may spend: its prompt's estimate, and its own limit for each answer that it asks for. */
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
  // At least one: a quota that is used up refuses every request.
  return { prompt, answer: prompt === 0 ? Math.max(1, answer) : answer };
}
