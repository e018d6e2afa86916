/**
 * The console's one client of the API. Its refresh token is in an HttpOnly cookie; the access token is in memory alone.
 */

import { type Client, type Credentials, createClient, type SessionEnd } from '../../../client/index.ts';
import { noteServerTime } from './clock.ts';
import { deleteDrafts, storeDrafts } from './drafts.ts';
import { withoutSecret } from './search-text.ts';

/**
 * Present in this browser's storage while a user is signed in. It saves a request for the session when there is none.
 */
const SIGNED_IN = 'postern.signed-in';

/** Typed text is a `SearchText` before it gets here. This holds for a field that forgot. */
function withoutSecretParameters(url: string): string {
  const [path, query] = url.split('?', 2);
  if (query === undefined) return url;
  const parameters = new URLSearchParams(query);
  // A cursor comes from the server, and begins as a token does.
  for (const [name, value] of parameters) if (name !== 'cursor') parameters.set(name, withoutSecret(value));
  return `${path}?${parameters}`;
}

type Listener = (end: SessionEnd) => void;

const listeners = new Set<Listener>();

export const client: Client = createClient({
  session: 'cookie',
  fetch: async (input, init) => {
    const answer = await fetch(typeof input === 'string' ? withoutSecretParameters(input) : input, init);
    noteServerTime(answer.headers.get('date'));
    return answer;
  },
  onSessionEnd: (end) => {
    localStorage.removeItem(SIGNED_IN);
    storeDrafts();
    for (const listener of listeners) listener(end);
  },
});

/** For requests before a sign-in. It looks for no session. */
export const visitor: Client = createClient();

export async function signIn(credentials: Credentials): Promise<void> {
  await client.login(credentials);
  noteSignIn();
}

/** Remembers that the browser has the cookie of a session. */
export function noteSignIn(): void {
  localStorage.setItem(SIGNED_IN, '1');
}

/**
 * Signs out here. This page drops the session, also if the call fails: the session may go on then. Resolves with the
 * address at which the browser also signs out at the provider that it signed in at; undefined: there is none.
 */
export async function signOut(): Promise<string | undefined> {
  localStorage.removeItem(SIGNED_IN);
  deleteDrafts();
  return client.logout();
}

/** Reports whether a user was signed in at the last visit of this browser. */
export function wasSignedIn(): boolean {
  return localStorage.getItem(SIGNED_IN) !== null;
}

/** Calls `listener` when a session ends without a sign-out in this page. Returns a function that stops this. */
export function onSessionEnd(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
