import type { SearchText } from '../../api/search-text.ts';
import { flag, type Given, oneOf, searched } from '../../shell/search.ts';

export const POLICIES_EFFECTS = ['allow', 'deny'] as const;
export const POLICIES_STATES = ['enabled', 'report', 'disabled'] as const;

export interface PoliciesSearch {
  readonly q?: SearchText;
  /** Only those with a notice. */
  readonly notices?: true;
  readonly effect?: (typeof POLICIES_EFFECTS)[number];
  readonly state?: (typeof POLICIES_STATES)[number];
}

export function policiesSearch(given: Given): PoliciesSearch {
  return {
    ...searched(given),
    ...flag(given, 'notices'),
    ...oneOf(given, 'effect', POLICIES_EFFECTS),
    ...oneOf(given, 'state', POLICIES_STATES),
  };
}
