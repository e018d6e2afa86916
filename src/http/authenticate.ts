/** Authenticates the caller: steps 5 to 10 of the decision, with the management rule for suspended tenants. */

import type { CredentialResolver, Resolution } from '../credential-cache/resolution.ts';
import { type HeaderValue, type Principal, REPEATED } from '../decision/model.ts';
import type { CredentialForm } from '../domain/credential.ts';
import { Refusal } from '../domain/errors.ts';
import { type KeyDigest, parseTenantId, type RequestId } from '../domain/ids.ts';
import { admittedTenant, invalidCredential } from '../iam/caller/admission.ts';
import type { Access } from '../iam/caller/authorize.ts';
import type { Caller } from '../iam/caller/caller.ts';
import { digestOfProof } from '../identity/api-keys.ts';
import { joinApiKeys, readCredential } from '../identity/credential.ts';
import { headerValue } from './headers.ts';

export interface IncomingRequest {
  readonly rawHeaders: readonly string[];
  readonly address: string | undefined;
  /** The subject of failed logins; undefined: failures count for the account only. */
  readonly throttledAs: string | undefined;
  readonly requestId: RequestId;
  readonly nowMs: number;
  /** Called with the principal that the credential proves, before its tenant and its permissions are checked. */
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
 * Admits the caller by cached data. A change admits it again by stored data (iam/caller/hold-caller.ts).
 * @param access the endpoint's requirement, which this function does not check
 * @throws Refusal for steps 5 to 10; Fault if the server cannot decide
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
    keyDigest: digestOfKey(credential, identity.principal),
    access,
    snapshot,
    tenant: admittedTenant(identity.principal, snapshot, tenant),
    everyTenant: isEveryTenant(named),
    address: request.address,
    requestId: request.requestId,
    nowMs: request.nowMs,
  };
}

/** A token proves a key only if the key has no secret. */
function digestOfKey(credential: CredentialForm, principal: Principal): KeyDigest | undefined {
  if (principal.kind === 'user') return undefined;
  return credential.kind === 'api_key' ? credential.digest : digestOfProof(principal.id);
}

/** Returns the request's credential: `Authorization`, or one of the two headers for API keys. */
export function credentialOf(rawHeaders: readonly string[]): CredentialForm {
  return readCredential(
    headerValue(rawHeaders, 'authorization'),
    joinApiKeys(headerValue(rawHeaders, 'x-api-key'), headerValue(rawHeaders, 'api-key')),
  );
}

/** Steps 5 to 8. Every credential that proves no principal gets the same response. */
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
      throw invalidCredential(identity.reason);
    default:
      return identity satisfies never;
  }
}

/** Combines the header and the request's `tenant_id` into the one value of step 9. A header that is malformed is refused as such. */
function chosenTenant(principal: Principal, header: HeaderValue, named: NamedTenant | undefined): HeaderValue {
  if (named === undefined || header === REPEATED) return header;
  if (header !== undefined && parseTenantId(header) === undefined) return header;
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
