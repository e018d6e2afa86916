/** The facts of a rejected request for the audit log, without its body, query and credential. */

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
import { paramsOf, queryOf } from './request-input.ts';

/** Parsers of the ids that paths can have. The audit log repeats no id that does not parse. */
const PARSE_ID = {
  user: (id: string) => parseId('usr', id),
  api_key: (id: string) => parseId('key', id),
  role: parseRoleName,
  policy: parsePolicyName,
  tenant: parseTenantId,
  session: (id: string) => parseId('ses', id),
  issuer: (id: string) => parseId('iss', id),
  budget: (id: string) => parseId('bud', id),
  webhook: (id: string) => parseId('whk', id),
} as const satisfies Partial<Record<AuditTarget['type'], (id: string) => string | undefined>>;

export interface PathTarget {
  readonly type: keyof typeof PARSE_ID;
  /** The path parameter that has its id. */
  readonly param: string;
}

/**
 * Returns undefined for a rejection with another status than 401 and 403, because it has no other cause than the
 * request.
 */
export function refusedRequest(
  request: FastifyRequest,
  refusal: Refusal,
  {
    id,
    principal,
    target,
    trusted,
  }: {
    readonly id: RequestId;
    readonly principal: Principal | undefined;
    readonly target: PathTarget | undefined;
    readonly trusted: TrustedProxies;
  },
): RefusedRequest | undefined {
  const { status } = ERRORS[refusal.code];
  const { method, url: route } = request.routeOptions;
  if (route === undefined || (status !== 401 && status !== 403)) return undefined;
  const { rawHeaders, socket } = request.raw;
  const { address, throttledAs } = sourceOf(socket.remoteAddress, rawHeaders, trusted);
  return {
    refusal,
    principal,
    address,
    throttledAs,
    method: String(method),
    route,
    target: target && auditTarget(target, request),
    tenant: namedTenant(request),
    requestId: id,
  };
}

function auditTarget({ type, param }: PathTarget, request: FastifyRequest): AuditTarget | undefined {
  const id = PARSE_ID[type](paramsOf(request)[param] ?? '');
  return id === undefined ? undefined : { type, id };
}

function namedTenant(request: FastifyRequest): TenantId | undefined {
  const text = headerValue(request.raw.rawHeaders, 'x-tenant-id') ?? queryOf(request)['tenant_id'];
  return typeof text === 'string' ? parseTenantId(text) : undefined;
}
