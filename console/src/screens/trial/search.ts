import { type Given, oneOf, text } from '../../shell/search.ts';

/** `here`: only Postern denies. `there`: only the other gate denied. */
export const TRIAL_KINDS = ['differs', 'here', 'there', 'all'] as const;

export interface TrialSearch {
  readonly span?: 'hour';
  /** Default: `differs`. */
  readonly kind?: (typeof TRIAL_KINDS)[number];
  readonly code?: string;
  /** The id of a user or a key. */
  readonly principal?: string;
  readonly route?: string;
  /** The id of the request that the drawer shows. */
  readonly open?: string;
}

export function trialSearch(given: Given): TrialSearch {
  return {
    ...oneOf(given, 'span', ['hour'] as const),
    ...oneOf(given, 'kind', TRIAL_KINDS),
    ...text(given, 'code'),
    ...text(given, 'principal'),
    ...text(given, 'route'),
    ...text(given, 'open'),
  };
}
