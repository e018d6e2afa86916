/** /openapi.json: the description of the API, made once. */

import type { Endpoint } from '../endpoint.ts';
import { staticEndpoint } from '../static-endpoint.ts';
import { describeApi } from './document.ts';

/** @param endpoints all that are described beside this one */
export function openApiEndpoint(endpoints: readonly Endpoint[]): Endpoint {
  const endpoint = staticEndpoint({
    path: '/openapi.json',
    operationId: 'getDescription',
    summary: 'This description (OpenAPI 3.1).',
    type: 'application/json',
    bytes: () => bytes,
  });
  const bytes = Buffer.from(JSON.stringify(describeApi([...endpoints, endpoint])));
  return endpoint;
}
