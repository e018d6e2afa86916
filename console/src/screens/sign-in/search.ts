import { type Given, oneOf, text } from '../../shell/search.ts';

export interface SignInSearch {
  /** Where to go on afterwards: an address of the console. */
  readonly next?: string;
  /** Why the last session ended. */
  readonly over?: 'refused' | 'replaced';
}

export function signInSearch(given: Given): SignInSearch {
  return { ...text(given, 'next'), ...oneOf(given, 'over', ['refused', 'replaced'] as const) };
}
