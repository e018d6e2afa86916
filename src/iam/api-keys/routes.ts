/** /v1/iam/api-keys */

import { DONE, makes, shows, TAGGED } from '../../http/answers.ts';
import { MAX_BODY_BYTES } from '../../http/body-limits.ts';
import { callerEndpoint, type Endpoint, NOTHING } from '../../http/endpoint.ts';
import type { AdminParts } from '../caller/caller.ts';
import type { CatalogParts } from '../permissions/catalog.ts';
import { noticedKey, refuseUnneeded } from '../permissions/notices.ts';
import { listOf } from '../schema/resource-parts.ts';
import { strictly } from '../schema/schemas.ts';
import { createKey } from './create.ts';
import { importKeys } from './import.ts';
import { getKey, listKeysPage } from './read.ts';
import { changes, filters, imports, newKey, revocation, rotation, trial } from './request-schemas.ts';
import { ApiKey, ApiKeyImport, ApiKeyRevocations, IssuedApiKey } from './response-schemas.ts';
import { revokeSeveralKeys } from './revoke-several.ts';
import { revokeKey, rotateKey, updateKey } from './update.ts';

const KEYS = '/v1/iam/api-keys';
const KEY = '/v1/iam/api-keys/:id';

export function keyEndpoints(parts: AdminParts & CatalogParts): readonly Endpoint[] {
  return [
    callerEndpoint({
      method: 'GET',
      path: KEYS,
      operationId: 'listApiKeys',
      summary: "List API keys: the tenant's with `admin:keys`, otherwise your own.",
      permission: 'use-case',
      needs: '`admin:keys`, or acting for oneself with an access token',
      body: NOTHING,
      query: filters,
      answers: shows('One page of API keys.', listOf(ApiKey)),
      refusals: [],
      handler: async ({ caller, query }) => ({ status: 200, body: await listKeysPage(parts, caller, query) }),
    }),
    callerEndpoint({
      method: 'POST',
      path: KEYS,
      operationId: 'createApiKey',
      summary: 'Create an API key. Only this response contains its text.',
      permission: 'use-case',
      needs: '`admin:keys`, or acting for oneself with an access token',
      body: newKey,
      maxBodyBytes: MAX_BODY_BYTES,
      query: strictly,
      answers: makes('The API key, with its text.', IssuedApiKey),
      refusals: ['escalation', 'quota_exceeded', 'rate_limit_exceeded'],
      handler: async ({ caller, body, query }) => {
        if (query.strict === true) refuseUnneeded(parts, body.scopes, '/scopes');
        const key = noticedKey(parts, await createKey(parts, caller, body));
        return { status: 201, body: key, headers: { location: `${KEYS}/${key.id}` } };
      },
    }),
    callerEndpoint({
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
      handler: async ({ caller, param }) => ({
        status: 200,
        body: noticedKey(parts, await getKey(parts, caller, param('id'))),
      }),
    }),
    callerEndpoint({
      method: 'PUT',
      path: KEY,
      operationId: 'updateApiKey',
      summary: 'Update an API key: the members that are present.',
      permission: 'use-case',
      needs: '`admin:keys`, or acting for oneself with an access token',
      body: changes,
      maxBodyBytes: MAX_BODY_BYTES,
      query: strictly,
      answers: shows('The updated API key.', ApiKey, TAGGED),
      refusals: ['not_found', 'revoked', 'escalation', 'quota_exceeded', 'precondition_failed'],
      handler: async ({ caller, param, body, query }) => {
        if (query.strict === true) refuseUnneeded(parts, body.scopes, '/scopes');
        return { status: 200, body: noticedKey(parts, await updateKey(parts, caller, param('id'), body)) };
      },
    }),
    callerEndpoint({
      method: 'DELETE',
      path: KEY,
      operationId: 'revokeApiKey',
      summary: 'Revoke an API key permanently.',
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
    callerEndpoint({
      method: 'POST',
      path: `${KEY}/rotate`,
      operationId: 'rotateApiKey',
      summary:
        'Give an API key a new secret. During the grace period, the old secret works for platform requests and for reads only.',
      permission: 'use-case',
      needs: '`admin:keys`, or acting for oneself with an access token',
      body: rotation,
      query: NOTHING,
      answers: shows('The API key, with its new text.', IssuedApiKey, TAGGED),
      refusals: ['not_found', 'revoked', 'escalation', 'precondition_failed'],
      handler: async ({ caller, param, body }) => ({
        status: 200,
        body: noticedKey(parts, await rotateKey(parts, caller, param('id'), body.grace_seconds)),
      }),
    }),
    callerEndpoint({
      method: 'POST',
      path: `${KEYS}/import`,
      operationId: 'importApiKeys',
      summary: 'Import up to 1,000 keys of another system by their SHA-256 digests. Each row has its own outcome.',
      permission: 'admin:keys',
      needs: '`admin:keys` as a platform administrator',
      body: imports,
      maxBodyBytes: MAX_BODY_BYTES,
      query: NOTHING,
      answers: shows('The outcome of each row, in the order of the request.', ApiKeyImport),
      refusals: [],
      handler: async ({ caller, body }) => ({ status: 200, body: await importKeys(parts, caller, body.keys) }),
    }),
    callerEndpoint({
      method: 'POST',
      path: `${KEYS}/revoke`,
      operationId: 'revokeApiKeys',
      summary: 'Revoke up to 1,000 API keys permanently, by id or by a filter.',
      permission: 'admin:keys',
      body: revocation,
      maxBodyBytes: MAX_BODY_BYTES,
      query: trial,
      answers: shows('The outcome of each key, or with `dry_run` the outcome that it would have.', ApiKeyRevocations),
      refusals: [],
      handler: async ({ caller, body, query }) => ({
        status: 200,
        body: await revokeSeveralKeys(parts, caller, body, query.dry_run === true),
      }),
    }),
  ];
}
