/**
 * The usage that a model's answer reported. The numbers come from the filter of `envoy/*.yaml`, which puts the largest
 * number of each name into metadata, from Envoy's own counter, or from Envoy AI Gateway. This module interprets them together, for every API.
 */

import { MAX_USAGE_TOKENS, type MeasuredUsage, type ResponseState } from '../../metering/settlement.ts';

/** The counts in use, by their names in the APIs of OpenAI and Anthropic. */
export const USAGE_COUNTS = [
  'prompt_tokens',
  'input_tokens',
  'cache_creation_input_tokens',
  'cache_read_input_tokens',
  'completion_tokens',
  'output_tokens',
  'cached_tokens',
  'total_tokens',
] as const;
export type UsageCount = (typeof USAGE_COUNTS)[number];

/** The metadata of one request. */
export interface UsageDraft {
  readonly counts: Partial<Record<UsageCount, number>>;
  model: string | undefined;
  /** The values of Envoy AI Gateway's `llmRequestCosts`. Its counts are 0 if the answer reported none. */
  readonly gateway: Partial<Record<UsageCount, number>>;
  gatewayModel: string | undefined;
  /** The counts of Envoy's own counter; undefined if it found no usage, or not all of it. */
  native: Partial<Record<UsageCount, number>> | undefined;
  nativeModel: string | undefined;
  /** The bytes of the answer's text in UTF-8; undefined if the filter found no text of a known form. */
  textBytes: number | undefined;
  /** True if the answer's encoding hides its text. */
  hidden: boolean;
  responseId: string | undefined;
  responseStatus: string | undefined;
  responseBackground: boolean;
}

/**
 * The metadata keys of `llmRequestCosts` in use, and their counts. The route's author chooses the keys; these are the
 * keys of Envoy AI Gateway's own examples. Its input tokens include those from a cache and those written to it.
 */
export const GATEWAY_COUNTS: ReadonlyMap<string, UsageCount> = new Map([
  ['llm_input_token', 'prompt_tokens'],
  ['llm_output_token', 'completion_tokens'],
  ['llm_total_token', 'total_tokens'],
  ['llm_cached_input_token', 'cached_tokens'],
  ['llm_cache_creation_input_token', 'cache_creation_input_tokens'],
]);

/** Reports whether a value is a number of tokens. No single answer uses more, so a larger number is an error. */
export function isCount(value: number): boolean {
  return Number.isInteger(value) && value >= 0 && value <= MAX_USAGE_TOKENS;
}

/** The states of a response that is still running. */
const PENDING: ReadonlySet<string> = new Set(['queued', 'in_progress']);
/** The states of a response that has ended. */
const COMPLETE: ReadonlySet<string> = new Set(['completed', 'incomplete', 'failed', 'cancelled']);

/** Returns the response that the answer shows; undefined if it shows none in a known state. */
export function responseOf({ responseId, responseStatus, responseBackground }: UsageDraft): ResponseState | undefined {
  if (responseStatus === undefined) return undefined;
  const complete = COMPLETE.has(responseStatus);
  return complete || PENDING.has(responseStatus)
    ? { id: responseId, complete, background: responseBackground }
    : undefined;
}

/**
 * Returns the usage that the filter found in the answer; if it found none, the usage that Envoy itself counted or, if
 * there is none either, the usage that Envoy AI Gateway found. The filter reads every form of an answer.
 */
export function measuredUsage({ counts, model, ...others }: UsageDraft): MeasuredUsage | undefined {
  const { native, nativeModel, gateway, gatewayModel } = others;
  return (
    measured(counts, model) ??
    (native === undefined ? undefined : measured(native, nativeModel)) ??
    (Object.values(gateway).some((count) => count > 0) ? measured(gateway, gatewayModel) : undefined)
  );
}

/**
 * Returns undefined if the answer reported neither a total nor a part of it.
 *
 * Anthropic reports the input tokens that were written to the cache and those read from it separately from
 * `input_tokens`; the three are the prompt. OpenAI's `prompt_tokens` and `input_tokens` contain them. The total is the
 * larger of the reported total and the sum of the parts.
 */
function measured(counts: UsageDraft['counts'], model: string | undefined): MeasuredUsage | undefined {
  const { prompt_tokens, input_tokens, cache_creation_input_tokens, cache_read_input_tokens } = counts;
  const told = largest(prompt_tokens, sum(input_tokens, cache_creation_input_tokens, cache_read_input_tokens));
  const answered = largest(counts.completion_tokens, counts.output_tokens);
  const cached = largest(counts.cached_tokens, cache_read_input_tokens) ?? 0;
  const cacheWrite = cache_creation_input_tokens ?? 0;
  const { total_tokens } = counts;
  if (total_tokens === undefined) {
    if (told === undefined && answered === undefined) return undefined;
    const total = told === undefined || answered === undefined ? undefined : told + answered;
    return { prompt: told, completion: answered, cached, cacheWrite, total, model };
  }
  const total = Math.max(total_tokens, (told ?? 0) + (answered ?? 0));
  const prompt = told ?? total - (answered ?? 0);
  return { prompt, completion: answered ?? total - prompt, cached, cacheWrite, total, model };
}

function largest(left: number | undefined, right: number | undefined): number | undefined {
  return left === undefined || right === undefined ? (left ?? right) : Math.max(left, right);
}

function sum(...parts: readonly (number | undefined)[]): number | undefined {
  const known = parts.filter((part) => part !== undefined);
  return known.length === 0 ? undefined : known.reduce((total, part) => total + part, 0);
}
