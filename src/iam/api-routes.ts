/** The whole API as one table: what a server serves, what its description is made from, and what tests go through. */

import type { Endpoint } from '../http/endpoint.ts';
import { keySetEndpoints, type PublishedKeys } from '../http/jwks.ts';
import { LoginAttemptLimiter } from './auth/login-attempt-limiter.ts';
import { type AuthHttpParts, authEndpoints } from './auth/routes.ts';
import { type IamParts, iamEndpoints } from './routes.ts';
import { providerLogoutOf } from './sso/logout.ts';
import type { SsoParts } from './sso/parts.ts';
import { ssoEndpoints } from './sso/routes.ts';

type ApiEndpointParts = AuthHttpParts &
  Pick<SsoParts, 'sso'> &
  Omit<IamParts, 'attempts'> & {
    /** The issuer and the public keys of tokens. */
    readonly keySet: PublishedKeys;
  };

/** Call it once for a process: logins and tries of a directory count their attempts together. */
export function apiEndpoints(parts: ApiEndpointParts): readonly Endpoint[] {
  const attempts = new LoginAttemptLimiter();
  const all = { ...parts, attempts };
  return [
    ...authEndpoints({ ...parts, providerLogoutUrl: providerLogoutOf(all) }, attempts),
    ...ssoEndpoints(all),
    ...iamEndpoints(all),
    ...keySetEndpoints(parts.keySet),
  ];
}

/** The same as data: none of these routes runs, so there is nothing behind them. */
export function describedEndpoints(): readonly Endpoint[] {
  return apiEndpoints(JSON.parse('{}'));
}
