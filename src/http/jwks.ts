/** The public keys that access tokens are signed with (RFC 7517), for whoever verifies them. */

import type { Answer, Route } from './route.ts';
import { NOTHING, publicRoute } from './route.ts';

export interface KeySet {
  jwks(): { readonly keys: readonly object[] };
}

/** A key is published long before it signs, so a copy of this age misses none. */
const MAX_AGE_SECONDS = 300;

export function jwksRoute(tokens: KeySet): Route {
  return publicRoute({
    method: 'GET',
    path: '/.well-known/jwks.json',
    summary: 'The public keys of access tokens: the next, the current and the retired until their tokens are gone.',
    body: NOTHING,
    query: NOTHING,
    handler: async (): Promise<Answer> => ({
      status: 200,
      headers: { 'cache-control': `public, max-age=${MAX_AGE_SECONDS}, must-revalidate` },
      body: tokens.jwks(),
    }),
  });
}
