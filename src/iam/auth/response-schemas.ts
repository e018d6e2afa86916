/** The response schemas of /v1/auth. */

import { Type } from 'typebox';
import { ownBudget } from '../budgets/entity.ts';
import { component, described, nullable, shownText } from '../schema/keywords.ts';
import { oneOf } from '../schema/schemas.ts';
import type { UserSource } from '../users/entity.ts';
import { ACCESS_TOKEN_TYPE } from './exchange-request.ts';

export const TokenPair = component(
  'TokenPair',
  Type.Object({
    access_token: shownText('A JWT.'),
    token_type: oneOf('Bearer'),
    expires_in: Type.Integer({ description: 'Seconds.' }),
    refresh_token: Type.Optional(shownText('Absent if the refresh token is sent as a cookie.')),
  }),
);

export const ExchangedToken = component(
  'ExchangedToken',
  Type.Object({
    access_token: shownText('A JWT.'),
    issued_token_type: described(oneOf(ACCESS_TOKEN_TYPE), 'The type of `access_token`.'),
    token_type: oneOf('Bearer'),
    expires_in: Type.Integer({ description: 'Seconds.' }),
    scope: shownText('The permissions of the token: patterns, separated by spaces.'),
  }),
);

export const Me = component(
  'Me',
  Type.Object({
    id: Type.String(),
    type: oneOf('user', 'api_key'),
    email: nullable(Type.String()),
    name: Type.String(),
    tenant_id: Type.String(),
    source: Type.Unsafe<UserSource | null>({
      type: ['string', 'null'],
      pattern: '^(local|ldap|issuer:.+)$',
      description:
        'Where the password is kept: `local` is Postern, `ldap` a directory. `issuer:<name>`: a token of that issuer created the user, which has no password. Null for API keys.',
    }),
    roles: Type.Array(Type.String()),
    permissions: Type.Array(Type.String(), {
      description: 'The permission patterns of the roles or scopes. Policies and constraints may narrow or widen them.',
    }),
    platform_admin: Type.Boolean(),
    budgets: Type.Array(ownBudget, {
      description:
        'The budgets that count the requests of the caller in its own tenant. Those with amounts of others show them with `usage:read` only.',
    }),
  }),
);

export const ProviderLogout = component(
  'ProviderLogout',
  Type.Object({
    logout_url: Type.String({
      format: 'uri',
      description:
        "The session began at an OpenID provider. At this address, the browser also ends the provider's session.",
    }),
  }),
);
