/** /openapi.json: the description of the API, made once. */

import type { Route } from '../route.ts';
import { staticRoute } from '../static-route.ts';
import { describeApi } from './document.ts';

/** @param routes all that are described beside this one */
export function openApiRoute(routes: readonly Route[]): Route {
  const route = staticRoute({
    path: '/openapi.json',
    operationId: 'getDescription',
    summary: 'This description (OpenAPI 3.1).',
    type: 'application/json',
    bytes: () => bytes,
  });
  const bytes = Buffer.from(JSON.stringify(describeApi([...routes, route])));
  return route;
}
