/** Times as people say them. */
export const time = {
  never: 'never',
  noEnd: 'does not expire',
  justNow: 'just now',
  noZone: 'No time zone is called so.',
} as const;
