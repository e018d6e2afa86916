import type { SearchText } from '../../api/search-text.ts';
import { type Given, oneOf, searched, text } from '../../shell/search.ts';

/** The statuses by which the list can be filtered; all except `locked` are statuses of users. */
export const USERS_STATUSES = ['active', 'locked', 'deactivated'] as const;

/** The directory's statuses of a user; `address_in_use`: the directory shows an address that another user has. */
export const USERS_DIRECTORY = [
  'removed',
  'disabled',
  'expired',
  'tenant_changed',
  'several_names',
  'several_ids',
  'address_in_use',
] as const;
export type UsersDirectory = (typeof USERS_DIRECTORY)[number];

export interface UsersSearch {
  readonly q?: SearchText;
  readonly status?: (typeof USERS_STATUSES)[number];
  readonly role?: string;
  readonly directory?: UsersDirectory;
  readonly open?: string;
}

export function usersSearch(given: Given): UsersSearch {
  return {
    ...searched(given),
    ...oneOf(given, 'status', USERS_STATUSES),
    ...text(given, 'role'),
    ...oneOf(given, 'directory', USERS_DIRECTORY),
    ...text(given, 'open'),
  };
}
