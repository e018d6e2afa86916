/** The facts of a refused request, for the audit log. Nothing of its body, its query or its credential is among them. */

import type { FastifyRequest } from 'fastify';
import type { Principal } from '../decision/model.ts';
import { ERRORS, type Refusal } from '../domain/errors.ts';
import {
  parseId,
  parsePolicyName,
  parseRoleName,
  parseTenantId,
  type RequestId,
  type TenantId,
} from '../domain/ids.ts';
import type { AuditTarget } from '../iam/change/audit-row.ts';
import type { RefusedRequest } from '../iam/change/refusal-windows.ts';
import { sourceOf, type TrustedProxies } from './client-address.ts';
import { headerValue } from './headers.ts';

/** Routes that name a resource. An id that has no form of one is not repeated. */
const TARGETS: readonly {
  readonly path: RegExp;
  readonly type: AuditTarget['type'];
  readonly read: (id: string) => string | undefined;
}[] = [
  { path: /^\/v1\/iam\/users\/:/, type: 'user', read: (id) => parseId('usr', id) },
  { path: /^\/v1\/iam\/api-keys\/:/, type: 'api_key', read: (id) => parseId('key', id) },
  { path: /^\/v1\/iam\/roles\/:/, type: 'role', read: parseRoleName },
  { path: /^\/v1\/iam\/policies\/:/, type: 'policy', read: parsePolicyName },
  { path: /^\/v1\/iam\/tenants\/:/, type: 'tenant', read: parseTenantId },
  { path: /^\/v1\/auth\/sessions\/:/, type: 'session', read: (id) => parseId('ses', id) },
];

/** Returns undefined for a refusal that is none of a principal's rights: another status than 401 and 403. */
export function refusedRequest(
  request: FastifyRequest,
  refusal: Refusal,
  {
    id,
    principal,
    trusted,
  }: { readonly id: RequestId; readonly principal: Principal | undefined; readonly trusted: TrustedProxies },
): RefusedRequest | undefined {
  const { status } = ERRORS[refusal.code];
  const { method, url: route } = request.routeOptions;
  if (route === undefined || (status !== 401 && status !== 403)) return undefined;
  const { rawHeaders, socket } = request.raw;
  const { address, throttledAs } = sourceOf(socket.remoteAddress, rawHeaders, trusted);
  const target = targetOf(route, request.params);
  return {
    refusal,
    principal,
    address,
    throttledAs,
    method: String(method),
    route,
    target,
    tenant: namedTenant(request),
    requestId: id,
  };
}

function targetOf(route: string, params: unknown): AuditTarget | undefined {
  const named = TARGETS.find(({ path }) => path.test(route));
  if (named === undefined || typeof params !== 'object' || params === null) return undefined;
  const id = named.read(String(Object.values(params)[0] ?? ''));
  return id === undefined ? undefined : { type: named.type, id };
}

function namedTenant({ raw, query }: FastifyRequest): TenantId | undefined {
  const parameter = typeof query === 'object' && query !== null && 'tenant_id' in query ? query.tenant_id : undefined;
  const text = headerValue(raw.rawHeaders, 'x-tenant-id') ?? parameter;
  return typeof text === 'string' ? parseTenantId(text) : undefined;
}
