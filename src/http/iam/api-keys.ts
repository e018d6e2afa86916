/** /v1/iam/api-keys */

import { Type } from 'typebox';
import { createKey } from '../../admin/api-keys/create.ts';
import { MAX_DAYS } from '../../admin/api-keys/expiry.ts';
import { getKey, listKeysPage } from '../../admin/api-keys/read.ts';
import { revokeKey, rotateKey, updateKey } from '../../admin/api-keys/update.ts';
import type { AdminParts } from '../../admin/caller.ts';
import { component, DONE, makes, shows, TAGGED } from '../answers.ts';
import { MAX_BODY_BYTES } from '../body-limits.ts';
import { callerRoute, NOTHING, type Route } from '../route.ts';
import { nullable } from '../validation.ts';
import { notBoth } from './grammar.ts';
import { ApiKey, IssuedApiKey, listOf } from './resources.ts';
import { closed, oneOf, page, resourceConstraints, somePatterns, tenantFilter, title } from './schemas.ts';

const filters = Type.Object(
  {
    ...page,
    ...tenantFilter,
    status: Type.Optional(oneOf('active', 'expired', 'revoked')),
    user_id: Type.Optional(Type.String({ maxLength: 64 })),
    expires_before: Type.Optional(Type.String({ format: 'date-time', maxLength: 64 })),
  },
  closed,
);

const expiry = {
  expires_at: Type.Optional(nullable(Type.String({ format: 'date-time', maxLength: 64 }))),
  expires_in_days: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_DAYS })),
};

/** PostgreSQL's integer is what it is kept in. */
const rateLimit = Type.Unsafe<number | null>({ type: ['integer', 'null'], minimum: 0, maximum: 2_147_483_647 });

const newKey = component(
  'NewApiKey',
  Type.Object(
    {
      description: title(500),
      scopes: somePatterns,
      ...expiry,
      user_id: Type.Optional(nullable(Type.String({ maxLength: 64 }))),
      resource_constraints: Type.Optional(resourceConstraints),
      rate_limit_rpm: Type.Optional(rateLimit),
    },
    {
      ...closed,
      ...notBoth('expires_at', 'expires_in_days'),
      examples: [{ description: 'chat service', scopes: ['chat:write'], expires_in_days: 90 }],
    },
  ),
);

const changes = component(
  'ApiKeyChanges',
  Type.Object(
    {
      description: Type.Optional(title(500)),
      scopes: Type.Optional(somePatterns),
      ...expiry,
      resource_constraints: Type.Optional(resourceConstraints),
      rate_limit_rpm: Type.Optional(rateLimit),
    },
    { ...closed, ...notBoth('expires_at', 'expires_in_days'), examples: [{ expires_in_days: 30 }] },
  ),
);

const rotation = component(
  'Rotation',
  Type.Object(
    {
      grace_seconds: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: 86_400,
          description: 'How long the old key works beside the new one, except to change anything.',
        }),
      ),
    },
    closed,
  ),
);

const KEYS = '/v1/iam/api-keys';
const KEY = '/v1/iam/api-keys/:id';

export function keyRoutes(parts: AdminParts): readonly Route[] {
  return [
    callerRoute({
      method: 'GET',
      path: KEYS,
      operationId: 'listApiKeys',
      summary: 'List API keys: with admin:keys all of the tenant, without it your own.',
      permission: 'use-case',
      needs: '`admin:keys`, or acting for oneself with an access token',
      body: NOTHING,
      query: filters,
      answers: shows('One page of API keys.', listOf(ApiKey)),
      refusals: [],
      handler: async ({ caller, query }) => ({ status: 200, body: await listKeysPage(parts, caller, query) }),
    }),
    callerRoute({
      method: 'POST',
      path: KEYS,
      operationId: 'createApiKey',
      summary: 'Make an API key. The answer shows it, once.',
      permission: 'use-case',
      needs: '`admin:keys`, or acting for oneself with an access token',
      body: newKey,
      maxBodyBytes: MAX_BODY_BYTES,
      query: NOTHING,
      answers: makes('The API key, with its text.', IssuedApiKey),
      refusals: ['escalation', 'quota_exceeded'],
      handler: async ({ caller, body }) => {
        const key = await createKey(parts, caller, body);
        return { status: 201, body: key, headers: { location: `${KEYS}/${key.id}` } };
      },
    }),
    callerRoute({
      method: 'GET',
      path: KEY,
      operationId: 'getApiKey',
      summary: 'Get an API key.',
      permission: 'use-case',
      needs: '`admin:keys`, or acting for oneself with an access token',
      body: NOTHING,
      query: NOTHING,
      answers: shows('The API key.', ApiKey, TAGGED),
      refusals: ['not_found'],
      handler: async ({ caller, param }) => ({ status: 200, body: await getKey(parts, caller, param('id')) }),
    }),
    callerRoute({
      method: 'PUT',
      path: KEY,
      operationId: 'updateApiKey',
      summary: 'Change an API key: the members that are present.',
      permission: 'use-case',
      needs: '`admin:keys`, or acting for oneself with an access token',
      body: changes,
      maxBodyBytes: MAX_BODY_BYTES,
      query: NOTHING,
      answers: shows('The API key as it is now.', ApiKey, TAGGED),
      refusals: ['not_found', 'revoked', 'escalation', 'quota_exceeded', 'precondition_failed'],
      handler: async ({ caller, param, body }) => ({ status: 200, body: await updateKey(parts, caller, param('id'), body) }),
    }),
    callerRoute({
      method: 'DELETE',
      path: KEY,
      operationId: 'revokeApiKey',
      summary: 'Revoke an API key for good.',
      permission: 'use-case',
      needs: '`admin:keys`, or acting for oneself with an access token',
      body: NOTHING,
      query: NOTHING,
      answers: DONE,
      refusals: ['not_found', 'escalation', 'precondition_failed'],
      handler: async ({ caller, param }) => {
        await revokeKey(parts, caller, param('id'));
        return { status: 204 };
      },
    }),
    callerRoute({
      method: 'POST',
      path: `${KEY}/rotate`,
      operationId: 'rotateApiKey',
      summary:
        'Give an API key a new secret. Through the grace the old one works for platform requests and for reads, and changes nothing.',
      permission: 'use-case',
      needs: '`admin:keys`, or acting for oneself with an access token',
      body: rotation,
      query: NOTHING,
      answers: shows('The API key, with its new text.', IssuedApiKey, TAGGED),
      refusals: ['not_found', 'revoked', 'escalation', 'precondition_failed'],
      handler: async ({ caller, param, body }) => ({
        status: 200,
        body: await rotateKey(parts, caller, param('id'), body.grace_seconds ?? 0),
      }),
    }),
  ];
}
