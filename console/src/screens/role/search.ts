import { type Given, text } from '../../shell/search.ts';

export interface NewRoleSearch {
  /** The role that the new one begins as. */
  readonly from?: string;
}

export function newRoleSearch(given: Given): NewRoleSearch {
  return text(given, 'from');
}
