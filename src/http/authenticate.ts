/** Who is calling: lines 5 to 10 of the decision, with the management rule for suspended tenants. */

import type { CredentialResolver, Resolution } from '../credential-cache/resolution.ts';
import { type HeaderValue, type Principal, REPEATED } from '../decision/model.ts';
import type { CredentialForm } from '../domain/credential.ts';
import { Refusal } from '../domain/errors.ts';
import { parseTenantId, type RequestId } from '../domain/ids.ts';
import { admittedTenant, invalidCredential } from '../iam/caller/admission.ts';
import type { Access } from '../iam/caller/authorize.ts';
import type { Caller } from '../iam/caller/caller.ts';
import { joinApiKeys, readCredential } from '../identity/credential.ts';
import { headerValue } from './headers.ts';

export interface IncomingRequest {
  readonly rawHeaders: readonly string[];
  readonly address: string | undefined;
  /** What failed logins are counted under; undefined = only the account. */
  readonly throttledAs: string | undefined;
  readonly requestId: RequestId;
  readonly nowMs: number;
  /** Called with the principal that the credential proves, before its tenant and its rights are checked. */
  readonly onProved?: (principal: Principal) => void;
}

/** A request's `tenant_id`: it means the same as X-Tenant-ID. */
export interface NamedTenant {
  readonly text: string;
  /** True in lists, where `*` is every tenant. */
  readonly every: boolean;
}

const EVERY_TENANT = '*';

/**
 * Admits the caller by what is cached. A change admits it again, by what is stored (admin/hold-caller.ts).
 * @param access what the endpoint asks of its callers; not checked here
 * @throws Refusal for steps 5 to 10; Fault when the server cannot decide
 */
export async function authenticate(
  resolver: CredentialResolver,
  request: IncomingRequest,
  access: Access,
  named?: NamedTenant,
): Promise<Caller> {
  const credential = credentialOf(request.rawHeaders);
  const header = headerValue(request.rawHeaders, 'x-tenant-id');
  const first = await resolver.resolve(credential, header, request.nowMs, request.address);
  const principal = provedPrincipal(first);
  request.onProved?.(principal);
  const tenant = chosenTenant(principal, header, named);
  const { identity, snapshot } =
    tenant === header ? first : await resolver.resolve(credential, tenant, request.nowMs, request.address);
  if (identity.kind !== 'proved' || snapshot === undefined) throw invalidCredential();
  return {
    principal: identity.principal,
    keyDigest: credential.kind === 'api_key' ? credential.digest : undefined,
    access,
    snapshot,
    tenant: admittedTenant(identity.principal, snapshot, tenant),
    everyTenant: isEveryTenant(named),
    address: request.address,
    requestId: request.requestId,
    nowMs: request.nowMs,
  };
}

/** The credential of a request: `Authorization`, or one of the two headers that carry an API key alone. */
export function credentialOf(rawHeaders: readonly string[]): CredentialForm {
  return readCredential(
    headerValue(rawHeaders, 'authorization'),
    joinApiKeys(headerValue(rawHeaders, 'x-api-key'), headerValue(rawHeaders, 'api-key')),
  );
}

/** Lines 5 to 8. One answer for every way of proving nobody. */
function provedPrincipal({ identity }: Resolution): Principal {
  switch (identity.kind) {
    case 'proved':
      return identity.principal;
    case 'missing':
      throw new Refusal(
        'missing_credential',
        'Send an API key or an access token as Authorization: Bearer <credential>, or an API key as x-api-key.',
      );
    case 'expired':
      throw new Refusal('token_expired', 'The access token has expired. Refresh it or log in again.');
    case 'invalid':
      throw invalidCredential({ otherScheme: identity.reason === 'scheme' });
    default:
      return identity satisfies never;
  }
}

/** Joins the header and the request's `tenant_id` to the one value that line 9 looks at. */
function chosenTenant(principal: Principal, header: HeaderValue, named: NamedTenant | undefined): HeaderValue {
  if (named === undefined || header === REPEATED) return header;
  const tenantId = named.text;
  const platformAdmin = principal.kind === 'user' && principal.platformAdmin;
  if (!isEveryTenant(named) && parseTenantId(tenantId) === undefined) {
    throw new Refusal('invalid_tenant', 'tenant_id is not the id of a tenant.', { param: 'tenant_id' });
  }
  if (!platformAdmin && tenantId !== principal.tenantId) {
    throw new Refusal('tenant_mismatch', 'The credential does not belong to the tenant that tenant_id names.', {
      param: 'tenant_id',
    });
  }
  if (header !== undefined && header !== tenantId) {
    throw new Refusal('invalid_tenant', 'X-Tenant-ID and tenant_id name different tenants.', { param: 'tenant_id' });
  }
  return isEveryTenant(named) ? undefined : tenantId;
}

function isEveryTenant(named: NamedTenant | undefined): boolean {
  return named?.every === true && named.text === EVERY_TENANT;
}
