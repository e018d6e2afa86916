import { type Given, oneOf, text } from '../../shell/search.ts';

export const SPEND_GROUPS = ['user', 'key', 'model', 'tenant'] as const;
export type SpendGroup = (typeof SPEND_GROUPS)[number];
export const SPEND_SORTS = ['-cost', 'cost', '-requests', 'requests', '-total_tokens', 'total_tokens'] as const;

export interface SpendSearch {
  readonly period?: string;
  /** Days in place of a month. */
  readonly from?: string;
  readonly to?: string;
  /** `tenant` has the spend of the whole platform. */
  readonly by?: SpendGroup;
  readonly sort?: (typeof SPEND_SORTS)[number];
}

export function spendSearch(given: Given): SpendSearch {
  return {
    ...text(given, 'period'),
    ...text(given, 'from'),
    ...text(given, 'to'),
    ...oneOf(given, 'by', SPEND_GROUPS),
    ...oneOf(given, 'sort', SPEND_SORTS),
  };
}
