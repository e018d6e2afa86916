/** /v1/iam/api-keys */

import { parseId } from '../../domain/ids.ts';
import { shows } from '../../http/answers.ts';
import { type CallerRequestInput, callerEndpoint, type Endpoint } from '../../http/endpoint.ts';
import { resourceEndpoints } from '../../http/resource-endpoints.ts';
import { type AdminParts, type Caller, reachesAllTenants } from '../caller/caller.ts';
import type { CatalogParts } from '../permissions/catalog.ts';
import { noticedKey, refuseUnneeded } from '../permissions/notices.ts';
import { listOf } from '../schema/resource-parts.ts';
import { strictly } from '../schema/schemas.ts';
import { tenantsOf } from '../tenants/queries.ts';
import { ApiKey, IssuedApiKey, keyChanges, newKey } from './entity.ts';
import { importKeys } from './import.ts';
import { KeyPermission, keyPermissionPage, listKeyPermissions } from './key-permissions.ts';
import { getKey, listKeysPage } from './read.ts';
import { revokeKeysOfTenants, revokeSeveralKeys } from './revoke-several.ts';
import { ApiKeyImport, ApiKeyRevocations, imports, keyList, revocation, rotation, trial } from './schemas.ts';
import { createKey, disableKey, enableKey, revokeKey, rotateKey, updateKey } from './write.ts';

const KEYS = '/v1/iam/api-keys';

const NEEDS = "`admin:keys`, or an access token of the key's owner";

const keys = resourceEndpoints({
  path: KEYS,
  param: 'id',
  type: 'api_key',
  nouns: ['API key', 'API keys'],
  schema: ApiKey,
  permission: 'use-case',
  unlessSelf: 'admin:keys',
  needs: NEEDS,
});

export function keyEndpoints(parts: AdminParts & CatalogParts): readonly Endpoint[] {
  return [
    keys.list({
      operationId: 'listApiKeys',
      summary: "List API keys: the tenant's with `admin:keys`, otherwise your own.",
      query: keyList,
      run: ({ caller, query }) => listKeysPage(parts, caller, query),
    }),
    keys.create({
      operationId: 'createApiKey',
      summary: 'Create an API key. Only this response contains its text.',
      body: newKey,
      query: strictly,
      shows: { description: 'The API key, with its text.', schema: IssuedApiKey },
      refusals: ['escalation', 'quota_exceeded', 'rate_limit_exceeded'],
      run: async (input) => {
        const { body, query } = input;
        if (query.strict === true) refuseUnneeded(parts, body.scopes, '/scopes');
        return noticedKey(parts, await createKey(parts, await callerAtOwner(parts, input, body.user_id), body));
      },
    }),
    keys.get({
      operationId: 'getApiKey',
      summary: 'Get an API key.',
      run: async ({ caller }, id) => noticedKey(parts, await getKey(parts, caller, id)),
    }),
    keys.update({
      operationId: 'updateApiKey',
      summary: 'Update an API key: the members that are present.',
      body: keyChanges,
      query: strictly,
      refusals: ['revoked', 'escalation', 'quota_exceeded'],
      run: async ({ caller, body, query }, id) => {
        const check = () => query.strict === true && refuseUnneeded(parts, body.scopes, '/scopes');
        return noticedKey(parts, await updateKey(parts, caller, id, body, check));
      },
    }),
    keys.delete({
      operationId: 'revokeApiKey',
      summary: 'Revoke an API key permanently.',
      refusals: ['escalation'],
      run: ({ caller }, id) => revokeKey(parts, caller, id),
    }),
    keys.action('rotate', {
      operationId: 'rotateApiKey',
      summary:
        'Give an API key a new secret. During the grace period, the old secret works for platform requests and for reads only.',
      body: rotation,
      shows: { description: 'The API key, with its new text.', schema: IssuedApiKey },
      refusals: ['revoked', 'escalation'],
      run: async ({ caller, body }, id) => noticedKey(parts, await rotateKey(parts, caller, id, body.grace_seconds)),
    }),
    keys.action('disable', {
      operationId: 'disableApiKey',
      summary: 'Disable an API key. Requests with it are rejected until it is enabled.',
      refusals: ['revoked', 'escalation'],
      run: async ({ caller }, id) => noticedKey(parts, await disableKey(parts, caller, id)),
    }),
    keys.action('enable', {
      operationId: 'enableApiKey',
      summary: 'Enable a disabled API key. The caller needs what a caller that creates the key needs.',
      refusals: ['revoked', 'escalation'],
      run: async ({ caller }, id) => noticedKey(parts, await enableKey(parts, caller, id)),
    }),
    permissionsEndpoint(parts),
    ...severalKeysEndpoints(parts),
  ];
}

function permissionsEndpoint(parts: AdminParts & CatalogParts): Endpoint {
  return callerEndpoint({
    method: 'GET',
    path: `${KEYS}/:id/permissions`,
    target: { type: 'api_key', param: 'id' },
    operationId: 'listApiKeyPermissions',
    summary:
      'List the permissions of the platform that the scopes of an API key cover, each with its last recorded use.',
    permission: 'use-case',
    unlessSelf: 'admin:keys',
    needs: NEEDS,
    query: keyPermissionPage,
    answers: shows('One page of permissions.', listOf(KeyPermission)),
    refusals: ['not_found'],
    run: ({ caller, query, param }) => listKeyPermissions(parts, caller, param('id'), query),
  });
}

function severalKeysEndpoints(parts: AdminParts): readonly Endpoint[] {
  return [
    callerEndpoint({
      method: 'POST',
      path: `${KEYS}/import`,
      operationId: 'importApiKeys',
      summary: 'Import up to 1,000 keys of another system by their SHA-256 digests. Each row has its own outcome.',
      permission: 'admin:keys',
      platformOnly: true,
      body: imports,
      answers: shows('The outcome of each row, in the order of the request.', ApiKeyImport),
      run: ({ caller, body }) => importKeys(parts, caller, body.keys),
    }),
    callerEndpoint({
      method: 'POST',
      path: `${KEYS}/revoke`,
      operationId: 'revokeApiKeys',
      summary: 'Revoke up to 1,000 API keys permanently, by id or by a filter.',
      permission: 'admin:keys',
      body: revocation,
      query: trial,
      answers: shows('The outcome of each key, or with `dry_run` the outcome that it would have.', ApiKeyRevocations),
      run: (input) => {
        const { caller, body, query } = input;
        const isDryRun = query.dry_run === true;
        return 'ids' in body && reachesAllTenants(input)
          ? revokeKeysOfTenants(parts, input, body.ids, isDryRun)
          : revokeSeveralKeys(parts, caller, body, isDryRun);
      },
    }),
  ];
}

/** Returns a platform administrator that names no tenant in the tenant of the owner that it names. */
async function callerAtOwner(
  parts: AdminParts,
  input: Pick<CallerRequestInput<unknown, unknown>, 'caller' | 'callerIn' | 'header'>,
  owner: string | null | undefined,
): Promise<Caller> {
  const { caller, callerIn } = input;
  const id = typeof owner === 'string' && reachesAllTenants(input) ? parseId('usr', owner) : undefined;
  const home = id === undefined ? undefined : (await tenantsOf(parts.db.knex, 'users', [id])).get(id);
  return home === undefined || home === caller.tenant ? caller : callerIn(home);
}
