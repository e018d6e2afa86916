/** /v1/iam/permissions */

import { shows } from '../../http/answers.ts';
import { callerEndpoint, type Endpoint } from '../../http/endpoint.ts';
import { listOf } from '../schema/resource-parts.ts';
import type { CatalogParts } from './catalog.ts';
import { listPermissionsPage, type ManagementEndpoint, permissionFilters, permissionSchema } from './list.ts';

/** @param routes the endpoints of management */
export function permissionEndpoints(parts: CatalogParts, routes: readonly Endpoint[]): readonly Endpoint[] {
  const endpoints = routes.map(managementEndpoint);
  return [
    callerEndpoint({
      method: 'GET',
      path: '/v1/iam/permissions',
      operationId: 'listPermissions',
      summary: 'List every permission, with the routes and endpoints that need it.',
      permission: 'any',
      needs: 'any credential',
      query: permissionFilters,
      answers: shows('One page of permissions.', listOf(permissionSchema)),
      run: ({ caller, query }) => listPermissionsPage(parts, endpoints, caller, query),
    }),
  ];
}

/** The permissions that an endpoint's description names. */
const NAMED = /(?<=`)[a-z]+:[a-z]+(?=`)/g;

function managementEndpoint({ method, path, needs = '' }: Endpoint): ManagementEndpoint {
  return { method, path: path.replace(/:(\w+)/g, '{$1}'), permissions: needs.match(NAMED) ?? [] };
}
