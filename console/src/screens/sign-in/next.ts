const HOME = '/console/';

/** Where to go after signing in. Only the console's own addresses count: a link to the door leads nobody anywhere else. */
export function insidePath(next: string | undefined): string {
  if (next === undefined) return HOME;
  // A browser reads a backslash as a slash, and "//" as the beginning of a host.
  const isOwn = /^\/(?![/\\])/.test(next) && !next.startsWith('/sign-in');
  if (!isOwn) return HOME;
  return next.startsWith(HOME) || next === '/console' ? next : `/console${next}`;
}
