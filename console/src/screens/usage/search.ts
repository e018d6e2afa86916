import { type Given, oneOf, text } from '../../shell/search.ts';

export const USAGE_GROUPS = ['model', 'key', 'user', 'day'] as const;

export interface UsageSearch {
  readonly period?: string;
  readonly by?: (typeof USAGE_GROUPS)[number];
}

export function usageSearch(given: Given): UsageSearch {
  return { ...text(given, 'period'), ...oneOf(given, 'by', USAGE_GROUPS) };
}
