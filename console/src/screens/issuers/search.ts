import type { SearchText } from '../../api/search-text.ts';
import { type Given, oneOf, searched } from '../../shell/search.ts';

export const ISSUERS_STATES = ['enabled', 'disabled'] as const;

export interface IssuersSearch {
  readonly q?: SearchText;
  readonly state?: (typeof ISSUERS_STATES)[number];
}

export function issuersSearch(given: Given): IssuersSearch {
  return { ...searched(given), ...oneOf(given, 'state', ISSUERS_STATES) };
}
