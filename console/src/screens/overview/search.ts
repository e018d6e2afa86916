import { type Given, oneOf, text } from '../../shell/search.ts';

export const SPANS = ['24h', '7d'] as const;
export type Span = (typeof SPANS)[number];

export interface OverviewSearch {
  /** Absent: the last 24 hours. */
  readonly span?: Span;
  /** A code of a denial, to which the list of the latest is narrowed. */
  readonly code?: string;
}

export function overviewSearch(given: Given): OverviewSearch {
  return { ...oneOf(given, 'span', SPANS), ...text(given, 'code') };
}
