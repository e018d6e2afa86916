/** /openapi.json: the description of the API. */

import { docsEndpoints } from '../docs/routes.ts';
import type { Endpoint } from '../endpoint.ts';
import { staticEndpoint } from '../static-endpoint.ts';
import { describeApi } from './document.ts';

/** @param endpoints the endpoints that the document describes, in addition to this one */
export function openApiEndpoint(endpoints: readonly Endpoint[]): Endpoint {
  const endpoint = staticEndpoint({
    path: '/openapi.json',
    operationId: 'getDescription',
    summary: 'This description (OpenAPI 3.1).',
    type: 'application/json',
    bytes: () => Buffer.from(JSON.stringify(describeApi([...endpoints, endpoint]))),
  });
  return endpoint;
}

/** Returns the API together with its description and its documentation. */
export function withDescription(api: readonly Endpoint[]): readonly Endpoint[] {
  return [...api, openApiEndpoint(api), ...docsEndpoints()];
}
