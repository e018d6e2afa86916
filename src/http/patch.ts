/**
 * PATCH beside PUT. A PUT under /v1/iam that takes members changes those that are present, which is what a merge patch does (RFC 7396), so
 * both methods are one endpoint. `null` removes what can be absent, and is rejected for every other member, in both.
 */

import type { Endpoint } from './endpoint.ts';

/** The media type that only PATCH takes, beside `application/json`. */
export const MERGE_PATCH = 'application/merge-patch+json';

/** The same endpoints, each update followed by its PATCH. A PUT without a body, such as attaching a policy, updates nothing. */
export function withPatch(endpoints: readonly Endpoint[]): readonly Endpoint[] {
  return endpoints.flatMap((endpoint) => (isUpdate(endpoint) ? [endpoint, patchOf(endpoint)] : [endpoint]));
}

function isUpdate({ method, bodySchema }: Endpoint): boolean {
  const members: unknown = 'properties' in bodySchema ? bodySchema.properties : {};
  return method === 'PUT' && Object.keys(Object(members)).length > 0;
}

function patchOf(endpoint: Endpoint): Endpoint {
  const operationId = endpoint.operationId.replace(/^[a-z]+/, 'patch');
  return { ...endpoint, method: 'PATCH', operationId };
}
