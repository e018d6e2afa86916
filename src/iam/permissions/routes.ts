/** /v1/iam/permissions */

import { Type } from 'typebox';
import { MAX_PATTERN_LENGTH } from '../../decision/permissions.ts';
import { shows } from '../../http/answers.ts';
import { callerEndpoint, type Endpoint, NOTHING } from '../../http/endpoint.ts';
import { PERMISSION_PATTERN } from '../schema/grammar.ts';
import { component } from '../schema/keywords.ts';
import { listOf } from '../schema/resource-parts.ts';
import { closed, countedPage, oneOf } from '../schema/schemas.ts';
import type { CatalogParts } from './catalog.ts';
import { listPermissionsPage, MAX_ROUTES, type NeedingEndpoint } from './list.ts';

const Permission = component(
  'Permission',
  Type.Object({
    permission: Type.String({ examples: ['chat:write'] }),
    kind: Type.Unsafe<'platform' | 'management'>({
      ...oneOf('platform', 'management'),
      description:
        '`platform`: routes of the platform require it. `management`: only endpoints under /v1/iam require it.',
    }),
    routes: Type.Array(Type.Object({ method: Type.String(), path: Type.String({ description: 'A path template.' }) }), {
      maxItems: MAX_ROUTES,
      description:
        'The routes and endpoints that require the permission, or for which it is one of two sufficient permissions.',
    }),
    route_count: Type.Integer({ description: `All of them; \`routes\` shows ${MAX_ROUTES} at most.` }),
  }),
);

const listing = Type.Object(
  {
    ...countedPage,
    pattern: Type.Optional(
      Type.String({
        maxLength: MAX_PATTERN_LENGTH,
        pattern: PERMISSION_PATTERN,
        description: 'Only permissions that this pattern covers.',
      }),
    ),
  },
  closed,
);

/** @param routes the endpoints of management */
export function permissionEndpoints(parts: CatalogParts, routes: readonly Endpoint[]): readonly Endpoint[] {
  const endpoints = routes.map(needingEndpoint);
  return [
    callerEndpoint({
      method: 'GET',
      path: '/v1/iam/permissions',
      operationId: 'listPermissions',
      summary: 'List every permission, with the routes and endpoints that need it.',
      permission: 'any',
      needs: 'any credential',
      body: NOTHING,
      query: listing,
      answers: shows('One page of permissions.', listOf(Permission)),
      refusals: [],
      handler: async ({ caller, query }) => ({
        status: 200,
        body: await listPermissionsPage(parts, endpoints, caller, query),
      }),
    }),
  ];
}

/** The permissions that an endpoint's description names. */
const NAMED = /(?<=`)[a-z]+:[a-z]+(?=`)/g;

function needingEndpoint({ method, path, needs = '' }: Endpoint): NeedingEndpoint {
  return { method, path: path.replace(/:(\w+)/g, '{$1}'), permissions: needs.match(NAMED) ?? [] };
}
