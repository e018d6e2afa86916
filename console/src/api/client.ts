/** The console's one client of the API. Its refresh token is in an HttpOnly cookie; the access token is in memory alone. */

import { type Client, createClient, type SessionEnd } from '../../../client/index.ts';

type Listener = (end: SessionEnd) => void;

const listeners = new Set<Listener>();

export const client: Client = createClient({
  session: 'cookie',
  onSessionEnd: (end) => {
    for (const listener of listeners) listener(end);
  },
});

/** Calls `listener` when a session ends that nobody ended here. Returns how to stop that. */
export function onSessionEnd(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
