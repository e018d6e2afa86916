/** The page after a sign-in that no address asked for. */
export const HOME = '/console/';

/**
 * Returns the page after the sign-in. It accepts only paths of the console, so a link to the sign-in page cannot
 * redirect elsewhere.
 */
export function insidePath(next: string | undefined): string {
  if (next === undefined) return HOME;
  // A browser reads a backslash as a slash, and "//" as the beginning of a host.
  const isOwn = /^\/(?![/\\])/.test(next) && !next.startsWith('/sign-in');
  if (!isOwn) return HOME;
  return next.startsWith(HOME) || next === '/console' ? next : `/console${next}`;
}
