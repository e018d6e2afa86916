/** What a check asks of the limits, and what they answer. */

import type { RateState } from './rate-state.ts';

export interface AdmitAsk {
  readonly tenantId: string;
  /** Requests per minute; undefined = no limit, here and below. */
  readonly tenantRpm: number | undefined;
  readonly keyId: string | undefined;
  readonly keyRpm: number | undefined;
  /** Whether the route spends tokens. */
  readonly metered: boolean;
  /** The largest limit that the body names, and how many answers it asks for. */
  readonly askedTokens: number | undefined;
  readonly askedChoices: number;
  readonly maxTokensPerRequest: number | undefined;
  readonly monthlyTokens: number | undefined;
  /** IANA name; undefined = UTC. */
  readonly timezone: string | undefined;
  readonly createsCollection: boolean;
  readonly removesCollection: boolean;
  readonly maxCollections: number | undefined;
}

export type Admission =
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

/** What a request may spend: its own limit, else the estimate, within the tenant's maximum, for each answer that it asks for. */
export function mayspend(ask: Pick<AdmitAsk, 'askedTokens' | 'askedChoices' | 'maxTokensPerRequest'>, estimate: number): number {
  const each = Math.min(ask.askedTokens ?? estimate, ask.maxTokensPerRequest ?? Number.POSITIVE_INFINITY);
  // At least one: nobody asks a model for nothing, and a quota that is used up refuses all.
  return Math.min(MAX_TOKENS, Math.max(1, Math.ceil(each * Math.max(1, ask.askedChoices))));
}
