import { type Given, text } from '../../shell/search.ts';

export interface NewPolicySearch {
  /** The policy that the new one begins as. */
  readonly from?: string;
}

export function newPolicySearch(given: Given): NewPolicySearch {
  return text(given, 'from');
}
