/** The API together with what tells about it: /openapi.json and /docs. */

import { docsEndpoints } from './docs/routes.ts';
import type { Endpoint } from './endpoint.ts';
import { openApiEndpoint } from './openapi/endpoint.ts';

export function withDescription(api: readonly Endpoint[]): readonly Endpoint[] {
  return [...api, openApiEndpoint(api), ...docsEndpoints()];
}
