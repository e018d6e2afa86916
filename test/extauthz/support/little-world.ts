/** One tenant, one user, two keys and a resolver that keeps them in memory: enough to walk through the whole gate. */

import type { CredentialResolver, Resolution } from '../../../src/credential-cache/resolution.ts';
import { compileGrant, compilePolicies, compileTenant } from '../../../src/decision/compile.ts';
import type { Identity, KeyPrincipal, Principal, Snapshot, UserPrincipal } from '../../../src/decision/model.ts';
import { BUILTIN_ROUTES, buildRouteTable, type RouteTable } from '../../../src/decision/routes.ts';
import type { CredentialForm } from '../../../src/domain/credential.ts';
import { makeId, parsePolicyName, parseRoleName, parseTenantId } from '../../../src/domain/ids.ts';
import type { PolicyRecord, TenantSettings } from '../../../src/domain/records.ts';
import { makeApiKey } from '../../../src/identity/api-keys.ts';
import { builtinRoles } from '../../support/builtin-roles.ts';

export function present<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('the test names something that does not exist');
  return value;
}

export const NOW_MS = Date.parse('2026-11-18T11:00:00Z');
export const ACME = present(parseTenantId('acme'));
export const DEVELOPER = present(parseRoleName('developer'));
export const USER_ID = makeId('usr', NOW_MS, Buffer.alloc(10, 1));
export const OWNED_KEY_ID = makeId('key', NOW_MS, Buffer.alloc(10, 2));
export const TENANT_KEY_ID = makeId('key', NOW_MS, Buffer.alloc(10, 3));

export function builtinRoutes(): RouteTable {
  const result = buildRouteTable([]);
  if (result.kind === 'error') throw new Error(result.message);
  return result.table;
}

export const ROUTE_LINES = BUILTIN_ROUTES;

export const USER: UserPrincipal = {
  kind: 'user',
  id: USER_ID,
  tenantId: ACME,
  roles: [DEVELOPER],
  platformAdmin: false,
  sessionId: undefined,
};
export const OWNED_KEY: KeyPrincipal = {
  kind: 'api_key',
  id: OWNED_KEY_ID,
  tenantId: ACME,
  grant: compileGrant(['chat:*', 'models:read'], {}),
  owner: { id: USER_ID, roles: [DEVELOPER] },
  rateLimitRpm: undefined,
};
export const TENANT_KEY: KeyPrincipal = {
  kind: 'api_key',
  id: TENANT_KEY_ID,
  tenantId: ACME,
  grant: compileGrant(['chat:write'], {}),
  owner: undefined,
  rateLimitRpm: undefined,
};

const NO_SECRETS: PolicyRecord = {
  name: present(parsePolicyName('no-secret-models')),
  effect: 'deny',
  actions: ['*'],
  resources: ['models/secret-*'],
  conditions: {},
  appliesTo: 'everyone',
  attachedRoles: [],
  enabled: true,
};

export interface LittleWorld {
  readonly resolver: CredentialResolver;
  readonly snapshot: Snapshot;
  /** Texts of credentials. */
  readonly ownedKey: string;
  readonly tenantKey: string;
  /** A credential that `resolver` takes for the user's token. */
  readonly userToken: string;
  /** Whether this header's value is one of the credentials above. */
  isValid(authorization: string): boolean;
}

export function littleWorld(
  settings: TenantSettings = { default_model: 'llama-3-8b', max_tokens_per_request: 1000 },
): LittleWorld {
  const tenant = compileTenant({ id: ACME, status: 'active', settings, quotas: {}, roles: [], policies: [NO_SECRETS] });
  const snapshot: Snapshot = { own: tenant, effective: tenant, global: compilePolicies([]), builtinRoles };
  const [owned, free] = [makeApiKey(), makeApiKey()];
  const userToken = 'eyJ.users.token';
  const proved = (principal: Principal): Resolution => ({ identity: { kind: 'proved', principal }, snapshot });
  const unproved = (identity: Identity): Resolution => ({ identity, snapshot: undefined });
  const keys = new Map<string, Resolution>([
    [owned.digest, proved(OWNED_KEY)],
    [free.digest, proved(TENANT_KEY)],
  ]);
  const resolve = (credential: CredentialForm): Resolution => {
    switch (credential.kind) {
      case 'missing':
        return unproved({ kind: 'missing' });
      case 'api_key':
        return keys.get(credential.digest) ?? unproved({ kind: 'invalid', reason: 'unknown' });
      case 'token':
        return credential.token === userToken ? proved(USER) : unproved({ kind: 'invalid', reason: 'signature' });
      default:
        return unproved({ kind: 'invalid', reason: 'malformed' });
    }
  };
  const valid = new Set([owned.text, free.text, userToken].map((text) => `Bearer ${text}`));
  return {
    resolver: { resolve },
    snapshot,
    ownedKey: owned.text,
    tenantKey: free.text,
    userToken,
    isValid: (authorization) => valid.has(authorization),
  };
}
