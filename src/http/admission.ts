/**
 * Admission of requests: the caller behind the credential, its tenant and its permission, before and after the body is
 * read.
 */

import type { FastifyRequest } from 'fastify';
import type { CredentialResolver } from '../credential-cache/resolution.ts';
import type { Principal } from '../decision/model.ts';
import { isPlatformAdmin } from '../decision/tenant.ts';
import { Refusal } from '../domain/errors.ts';
import type { TenantId } from '../domain/ids.ts';
import { refuseRotated, refuseUnexchanged } from '../iam/caller/admission.ts';
import { authorize } from '../iam/caller/authorize.ts';
import { type Caller, selfId } from '../iam/caller/caller.ts';
import { authenticate, type IncomingRequest, type NamedTenant } from './authenticate.ts';
import { sourceOf, type TrustedProxies } from './client-address.ts';
import type { Callers, Endpoint } from './endpoint.ts';
import { headerValue } from './headers.ts';
import { paramsOf, queryOf, requestIdOf } from './request-input.ts';

export interface AdmissionParts {
  readonly resolver: CredentialResolver;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly trusted: TrustedProxies;
  /**
   * Returns the tenant of a user or key; undefined if it does not exist. Called only for platform administrators.
   * Default: ids are looked up in the effective tenant.
   */
  readonly homeOf?: (id: string) => Promise<TenantId | undefined>;
  /** Called for each request with X-Forwarded-For from a peer that is not trusted. */
  readonly onUntrustedForwarding?: (peer: string) => void;
}

export interface Admitted {
  readonly incoming: IncomingRequest;
  readonly callers: Callers | undefined;
}

/** The result of `admit` before the body was read, for the handler of the same request. */
const admissions = new WeakMap<FastifyRequest, Admitted>();

const principals = new WeakMap<FastifyRequest, Principal>();

/**
 * Returns the principal that the request's credential proves, also if its request is rejected; undefined if there is
 * none.
 */
export function principalOf(request: FastifyRequest): Principal | undefined {
  return principals.get(request);
}

export async function admitEarly(parts: AdmissionParts, endpoint: Endpoint, request: FastifyRequest): Promise<void> {
  admissions.set(request, await admit(parts, endpoint, request));
}

/**
 * Admits the caller again if a body was read, because the caller's permissions may have ended while the body arrived.
 */
export async function admittedNow(
  parts: AdmissionParts,
  endpoint: Endpoint,
  request: FastifyRequest,
): Promise<Admitted> {
  const first = admissions.get(request);
  if (first === undefined) throw new Error(`${endpoint.path} was reached without admission`);
  return endpoint.method === 'GET' || endpoint.access === 'public' ? first : admit(parts, endpoint, request);
}

async function admit(parts: AdmissionParts, endpoint: Endpoint, request: FastifyRequest): Promise<Admitted> {
  const { rawHeaders, socket } = request.raw;
  const { address, throttledAs, untrustedForwarder } = sourceOf(socket.remoteAddress, rawHeaders, parts.trusted);
  if (untrustedForwarder !== undefined && !admissions.has(request)) parts.onUntrustedForwarding?.(untrustedForwarder);
  const incoming: IncomingRequest = {
    rawHeaders,
    address,
    throttledAs,
    requestId: requestIdOf(request),
    nowMs: parts.now(),
    onProved: (principal) => principals.set(request, principal),
  };
  if (endpoint.access === 'public') return { incoming, callers: undefined };
  const { access, unlessSelf } = endpoint;
  const enter = (named: NamedTenant | undefined): Promise<Caller> =>
    authenticate(parts.resolver, incoming, access, named);
  const named = endpoint.takesTenant ? tenantParameter(request) : undefined;
  const allowed = (caller: Caller): Caller => {
    if (access !== 'any' && access !== 'use-case') authorize(caller, access);
    if (unlessSelf !== undefined) authorize(caller, unlessSelf, { self: selfId(caller) !== undefined });
    if (endpoint.platformOnly && !isPlatformAdmin(caller.principal))
      throw new Refusal('insufficient_permission', 'Only platform administrators may do this.', { scope: access });
    return caller;
  };
  const entered = await atHomeOf(parts, endpoint, request, await enter(named), (home) =>
    enter({ text: home, every: false }),
  );
  if (endpoint.writes) {
    refuseRotated(entered.principal);
    refuseUnexchanged(entered.principal);
  }
  const caller = allowed(entered);
  return {
    incoming,
    callers: {
      caller,
      again: async () =>
        allowed(await authenticate(parts.resolver, { ...incoming, nowMs: parts.now() }, access, named)),
      callerIn: async (tenantId) => (tenantId === undefined ? caller : enter({ text: tenantId, every: false })),
    },
  };
}

const WITH_HOME: ReadonlySet<string> = new Set(['user', 'api_key', 'issuer', 'budget', 'webhook']);

/**
 * Admits a platform administrator that names no tenant to the tenant of the user, key, issuer, budget or webhook that the path names.
 * Their ids are unique across tenants.
 */
async function atHomeOf(
  { homeOf }: AdmissionParts,
  { target }: Endpoint,
  request: FastifyRequest,
  caller: Caller,
  enter: (home: TenantId) => Promise<Caller>,
): Promise<Caller> {
  const isNamed =
    headerValue(request.raw.rawHeaders, 'x-tenant-id') !== undefined || queryOf(request)['tenant_id'] !== undefined;
  if (
    homeOf === undefined ||
    isNamed ||
    !isPlatformAdmin(caller.principal) ||
    target === undefined ||
    !WITH_HOME.has(target.type)
  )
    return caller;
  const home = await homeOf(paramsOf(request)[target.param] ?? '');
  if (home === undefined || home === caller.tenant) return caller;
  try {
    return await enter(home);
  } catch (cause) {
    // The tenant was deleted. The caller did not name it, and finds nothing of it.
    if (cause instanceof Refusal && cause.code === 'tenant_mismatch') return caller;
    throw cause;
  }
}

/** A repeated parameter, or one that is not UTF-8, names no tenant, as an empty one. */
function tenantParameter(request: FastifyRequest): NamedTenant | undefined {
  const value = queryOf(request)['tenant_id'];
  return value === undefined ? undefined : { text: typeof value === 'string' ? value : '', every: true };
}
