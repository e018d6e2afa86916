/**
 * PATCH in addition to PUT. A PUT with members under /v1/iam changes the members that are present, as a merge patch
 * does (RFC 7396), so both methods are one endpoint. `null` removes an optional member. Both methods reject it for
 * other members.
 */

import type { Endpoint } from './endpoint.ts';

/** The media type that only PATCH accepts, in addition to `application/json`. */
export const MERGE_PATCH = 'application/merge-patch+json';

/**
 * Returns the endpoints, with a PATCH after each update. A PUT without members, such as attaching a policy, is no
 * update.
 */
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
