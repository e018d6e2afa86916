import { type Given, oneOf } from '../../shell/search.ts';

export const USER_TABS = ['access', 'keys', 'sessions', 'activity'] as const;

export interface UserSearch {
  readonly tab?: (typeof USER_TABS)[number];
}

export function userSearch(given: Given): UserSearch {
  return { ...oneOf(given, 'tab', USER_TABS) };
}
