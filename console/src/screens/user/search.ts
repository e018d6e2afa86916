import { type Given, oneOf } from '../../shell/search.ts';

export const USER_TABS = ['access', 'keys', 'sessions', 'activity'] as const;
export const USER_ACTIVITIES = ['by', 'to'] as const;

export interface UserSearch {
  readonly tab?: (typeof USER_TABS)[number];
  /** Whose doing the activity shows: that of the user, or what was done to the user. */
  readonly activity?: (typeof USER_ACTIVITIES)[number];
  /** The open drawer. */
  readonly open?: 'edit';
}

export function userSearch(given: Given): UserSearch {
  return {
    ...oneOf(given, 'tab', USER_TABS),
    ...oneOf(given, 'activity', USER_ACTIVITIES),
    ...oneOf(given, 'open', ['edit'] as const),
  };
}
