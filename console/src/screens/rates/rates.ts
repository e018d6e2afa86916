/** Limits by model as forms hold them, and as the API has them. */

import type { RateLimitRule } from '../../../../client/index.ts';
import { globFault } from '../../api/permissions.ts';
import { rates as text } from '../../text/en/rates.ts';

/** A number that is undefined is no limit. */
export interface RateFields {
  readonly models: readonly string[];
  readonly requests_per_minute: number | undefined;
  readonly tokens_per_minute: number | undefined;
  readonly parallel: number | undefined;
}

export const NEW_RATE: RateFields = {
  models: [],
  requests_per_minute: undefined,
  tokens_per_minute: undefined,
  parallel: undefined,
};

export function ratesOf(limits: readonly RateLimitRule[]): readonly RateFields[] {
  return limits.map((limit) => ({
    models: limit.models,
    requests_per_minute: limit.requests_per_minute,
    tokens_per_minute: limit.tokens_per_minute,
    parallel: limit.parallel,
  }));
}

/** Returns the limits as members of a request. An absent number is an absent member. */
export function rateMembers(rates: readonly RateFields[]) {
  return rates.map(({ models, requests_per_minute: requests, tokens_per_minute: tokens, parallel }) => ({
    models,
    ...(requests === undefined ? {} : { requests_per_minute: requests }),
    ...(tokens === undefined ? {} : { tokens_per_minute: tokens }),
    ...(parallel === undefined ? {} : { parallel }),
  }));
}

/** Returns why limits cannot be sent; undefined: they can. */
export function ratesFault(rates: readonly RateFields[]): string | undefined {
  return rates.some(isPart) ? text.needs : undefined;
}

function isPart({ models, requests_per_minute: requests, tokens_per_minute: tokens, parallel }: RateFields): boolean {
  return models.length === 0 || (requests ?? tokens ?? parallel) === undefined;
}

/** Returns why a text is no pattern of a model; undefined: it is one. */
export function modelFault(glob: string): string | undefined {
  const fault = globFault(glob);
  return fault === undefined ? undefined : text.globFaults[fault];
}
