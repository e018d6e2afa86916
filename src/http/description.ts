/** The API together with what tells about it: /openapi.json and /docs. */

import { docsRoutes } from './docs/routes.ts';
import { openApiRoute } from './openapi/route.ts';
import type { Route } from './route.ts';

export function withDescription(api: readonly Route[]): readonly Route[] {
  return [...api, openApiRoute(api), ...docsRoutes()];
}
