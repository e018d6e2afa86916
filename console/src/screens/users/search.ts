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

export const USERS_SORTS = ['-created_at', 'created_at', '-last_login_at', 'last_login_at', 'name', '-name'] as const;

export interface UsersSearch {
  /** Absent: newest first. */
  readonly sort?: (typeof USERS_SORTS)[number];
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
    ...oneOf(given, 'sort', USERS_SORTS),
    ...text(given, 'role'),
    ...oneOf(given, 'directory', USERS_DIRECTORY),
    ...text(given, 'open'),
  };
}
