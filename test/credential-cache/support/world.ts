/** A small world: two tenants, a developer, a platform administrator, an owned key, a tenant's key and sessions. */

import { CredentialCache, type CredentialCacheParts } from '../../../src/credential-cache/credential-cache.ts';
import type { TokenVerifier, VerifiedToken } from '../../../src/credential-cache/ports.ts';
import type {
  IssuerRecord,
  KeyRecord,
  PolicyRecord,
  SessionRecord,
  TenantRecord,
  UserRecord,
} from '../../../src/domain/records.ts';
import { builtinRoles } from '../../support/builtin-roles.ts';
import { issuersParts } from '../../support/issuers-parts.ts';
import { digest, issuerId, issuerName, keyId, policyName, roleName, sessionId, tenantId, userId } from './ids.ts';
import { ModelStore, type State } from './model-store.ts';

/** Milliseconds since the epoch at which the tests look. */
export const NOW = 1_800_000_000_000;
export const DEVELOPER = userId(1);
export const ADMINISTRATOR = userId(2);
export const OWNED = digest(1);
export const TENANTS_OWN = digest(2);
export const SESSION = sessionId(1);
export const ADMIN_SESSION = sessionId(2);
export const HOME = tenantId('home');
export const AWAY = tenantId('away');

export function aTenant(overrides: Partial<TenantRecord> = {}): TenantRecord {
  return { id: HOME, status: 'active', settings: {}, quotas: {}, roles: [], policies: [], ...overrides };
}

export function aUser(overrides: Partial<UserRecord> = {}): UserRecord {
  return { id: DEVELOPER, tenantId: HOME, status: 'active', roles: [roleName('developer')], ...overrides };
}

export function aKey(overrides: Partial<KeyRecord> = {}): KeyRecord {
  return {
    id: keyId(1),
    digest: OWNED,
    tenantId: HOME,
    userId: DEVELOPER,
    scopes: ['chat:*'],
    constraints: {},
    rateLimitRpm: undefined,
    expiresAtMs: undefined,
    graceUntilMs: undefined,
    revoked: false,
    disabled: false,
    ...overrides,
  };
}

export const ISSUER = issuerId(1);

export function anIssuer(overrides: Partial<IssuerRecord> = {}): IssuerRecord {
  return {
    id: ISSUER,
    tenantId: HOME,
    name: issuerName('cluster'),
    kind: 'oidc',
    enabled: true,
    issuer: 'https://cluster.example',
    valueSinceMs: NOW,
    audiences: ['postern'],
    algorithms: ['ES256'],
    tokenTypes: ['at+jwt', 'JWT', ''],
    requiredClaims: [],
    maxAgeSeconds: undefined,
    keys: [],
    users: undefined,
    leewaySeconds: 5,
    revokedBeforeMs: undefined,
    earlier: undefined,
    usersSinceMs: undefined,
    keysFetchedAtMs: undefined,
    globProofs: [],
    ...overrides,
  };
}

export function aSession(overrides: Partial<SessionRecord> = {}): SessionRecord {
  return {
    id: SESSION,
    userId: DEVELOPER,
    keyId: undefined,
    issuerId: undefined,
    scope: undefined,
    ended: false,
    expiresAtMs: NOW + 1_000_000,
    ...overrides,
  };
}

export function aPolicy(name: string): PolicyRecord {
  return {
    name: policyName(name),
    effect: 'deny',
    actions: ['chat:*'],
    resources: ['*'],
    conditions: {},
    appliesTo: 'everyone',
    attachedRoles: [],
    enabled: true,
  };
}

export function initialState(): State {
  const tenantsOwn = aKey({ id: keyId(2), digest: TENANTS_OWN, userId: undefined });
  const administrator = aUser({ id: ADMINISTRATOR, roles: [roleName('admin')] });
  const adminSession = aSession({ id: ADMIN_SESSION, userId: ADMINISTRATOR });
  return {
    keys: new Map([aKey(), tenantsOwn].map((key) => [key.digest, key])),
    users: new Map([aUser(), administrator].map((user) => [user.id, user])),
    sessions: new Map([aSession(), adminSession].map((session) => [session.id, session])),
    tenants: new Map([aTenant(), aTenant({ id: AWAY })].map((tenant) => [tenant.id, tenant])),
    globals: [],
    issuers: new Map(),
    links: new Map(),
  };
}

export const owned = { kind: 'api_key', digest: OWNED } as const;
export const tenantsOwn = { kind: 'api_key', digest: TENANTS_OWN } as const;
export const unknownKey = { kind: 'api_key', digest: digest(99) } as const;
export const developersToken = { kind: 'token', token: 'developer', digest: 'digest of developer' } as const;
export const adminsToken = { kind: 'token', token: 'admin', digest: 'digest of admin' } as const;

/** Tokens by their text; everything else has a bad signature. */
export function aVerifier(): TokenVerifier & { readonly known: Map<string, VerifiedToken>; verified: number } {
  const times = { validFromMs: NOW - 1000, validUntilMs: NOW + 1000 };
  return {
    known: new Map<string, VerifiedToken>([
      ['developer', { kind: 'valid', userId: DEVELOPER, sessionId: SESSION, ...times }],
      ['admin', { kind: 'valid', userId: ADMINISTRATOR, sessionId: ADMIN_SESSION, ...times }],
      ['old', { kind: 'expired' }],
    ]),
    verified: 0,
    hasOwnHeader: () => true,
    async verify(token) {
      this.verified++;
      return this.known.get(token) ?? { kind: 'invalid', reason: 'signature' };
    },
  };
}

export interface Clock {
  nowMs: number;
}

export function aLive(store = new ModelStore(initialState()), overrides: Partial<CredentialCacheParts> = {}) {
  const clock: Clock = { nowMs: 1000 };
  const verifier = aVerifier();
  const live = new CredentialCache({
    builtinRoles,
    source: store.source,
    verifier,
    issuers: issuersParts,
    feed: {
      get polledAtMs() {
        return clock.nowMs;
      },
      catchUp: async () => {},
    },
    maxCredentials: 1000,
    maxStalenessMs: 300_000,
    monotonicMs: () => clock.nowMs,
    ...overrides,
  });
  return { live, store, clock, verifier };
}
