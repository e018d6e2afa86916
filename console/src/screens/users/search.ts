import { type Given, oneOf, text } from '../../shell/search.ts';

/** What the list can be narrowed to; all but `locked` are statuses of users. */
export const USERS_STATUSES = ['active', 'locked', 'deactivated'] as const;

export interface UsersSearch {
  readonly q?: string;
  readonly status?: (typeof USERS_STATUSES)[number];
  readonly role?: string;
  readonly open?: string;
}

export function usersSearch(given: Given): UsersSearch {
  return { ...text(given, 'q'), ...oneOf(given, 'status', USERS_STATUSES), ...text(given, 'role'), ...text(given, 'open') };
}
