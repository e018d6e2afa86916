/** The whole API as one table: what a server serves, what its description is made from, and what tests go through. */

import { jwksRoute, type PublishedKeys } from '../http/jwks.ts';
import type { Route } from '../http/route.ts';
import { AttemptGate } from './auth/attempt-gate.ts';
import { type AuthHttpParts, authRoutes } from './auth/routes.ts';
import { type IamParts, iamRoutes } from './routes.ts';

export type ApiParts = AuthHttpParts &
  Omit<IamParts, 'attempts'> & {
    /** Of access tokens. */
    readonly keySet: PublishedKeys;
  };

/** Call it once for a process: logins and tries of a directory count their attempts together. */
export function apiRoutes(parts: ApiParts): readonly Route[] {
  const attempts = new AttemptGate();
  return [...authRoutes(parts, attempts), ...iamRoutes({ ...parts, attempts }), jwksRoute(parts.keySet)];
}

/** The same as data: none of these routes runs, so there is nothing behind them. */
export function describedRoutes(): readonly Route[] {
  return apiRoutes(JSON.parse('{}'));
}
