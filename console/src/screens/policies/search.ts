import { type Given, oneOf, text } from '../../shell/search.ts';

export const POLICIES_EFFECTS = ['allow', 'deny'] as const;
export const POLICIES_STATES = ['enabled', 'disabled'] as const;

export interface PoliciesSearch {
  readonly q?: string;
  readonly effect?: (typeof POLICIES_EFFECTS)[number];
  readonly state?: (typeof POLICIES_STATES)[number];
}

export function policiesSearch(given: Given): PoliciesSearch {
  return {
    ...text(given, 'q'),
    ...oneOf(given, 'effect', POLICIES_EFFECTS),
    ...oneOf(given, 'state', POLICIES_STATES),
  };
}
