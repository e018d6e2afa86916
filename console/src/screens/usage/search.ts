import { type Given, oneOf, text } from '../../shell/search.ts';

export const USAGE_GROUPS = ['model', 'key', 'user', 'day', 'tenant'] as const;
export type UsageGroup = (typeof USAGE_GROUPS)[number];

const NUMBERS = [
  'requests',
  'prompt_tokens',
  'completion_tokens',
  'cached_tokens',
  'total_tokens',
  'estimated_tokens',
  'cost',
] as const;
export const USAGE_SORTS = ['id', '-id', ...NUMBERS, ...NUMBERS.map((name) => `-${name}` as const)] as const;

export interface UsageSearch {
  readonly period?: string;
  /** Days in place of a month. */
  readonly from?: string;
  readonly to?: string;
  /** `tenant` has the usage of the whole platform. */
  readonly by?: UsageGroup;
  readonly sort?: (typeof USAGE_SORTS)[number];
}

export function usageSearch(given: Given): UsageSearch {
  return {
    ...text(given, 'period'),
    ...text(given, 'from'),
    ...text(given, 'to'),
    ...oneOf(given, 'by', USAGE_GROUPS),
    ...oneOf(given, 'sort', USAGE_SORTS),
  };
}
