/** The caller of a use case, and the services that use cases need. */

import type { Principal, Snapshot } from '../../decision/model.ts';
import { isPlatformAdmin } from '../../decision/tenant.ts';
import type { KeyDigest, RequestId, TenantId, UserId } from '../../domain/ids.ts';
import type { Passwords } from '../../identity/passwords.ts';
import type { Database } from '../../store/database.ts';
import type { IdempotentRequest } from '../change/idempotency.ts';
import type { Preconditions } from '../change/preconditions.ts';
import type { Access } from './authorize.ts';
import type { WriteRate } from './write-rate.ts';

/**
 * A principal that may act in its effective tenant: it passed steps 5 to 10 of the decision. Its rights may end before
 * a change commits, so a change decides by a HeldCaller.
 */
export interface Caller {
  readonly principal: Principal;
  /** The digest of the API key's secret, or of a key without a secret; undefined for users. */
  readonly keyDigest: KeyDigest | undefined;
  /** The permission that the endpoint requires. A change checks it again. */
  readonly access: Access;
  readonly snapshot: Snapshot;
  /** The effective tenant. Ids and names in the request are looked up in it. */
  readonly tenant: TenantId;
  /** True if a platform administrator requests a list with `tenant_id=*`. Only lists may read it. */
  readonly everyTenant: boolean;
  /** The client address; undefined if it is unknown. A condition on an unknown address denies. */
  readonly address: string | undefined;
  readonly requestId: RequestId;
  /** The instant of the request, milliseconds since the epoch. */
  readonly nowMs: number;
  /** The conditions of the request on the resource that it changes. */
  readonly preconditions?: Preconditions | undefined;
  /** Present if the request has an Idempotency-Key. */
  readonly idempotency?: IdempotentRequest | undefined;
}

/**
 * Returns the id of a user that may act on itself without a grant; undefined for callers that may not: API keys, tokens
 * of other issuers, and sessions that a scope narrows.
 */
export function selfId({ principal }: Caller): UserId | undefined {
  const isWhole = principal.provedBy === undefined && principal.scope === undefined;
  return principal.kind === 'user' && isWhole ? principal.id : undefined;
}

/** Reports whether the user is the caller, or owns the key that is the caller. */
export function isOwnUser({ principal }: Caller, user: string): boolean {
  return user === (principal.kind === 'user' ? principal.id : principal.owner?.id);
}

/** The password functions of `identity`, for use cases that set a password. */
export type PasswordHasher = Pick<Passwords, 'hash'>;

export interface AdminParts {
  readonly db: Database;
  /**
   * The change feed. After `catchUp` resolves, this process decides by all changes that were committed before the call.
   */
  readonly feed: { catchUp(): Promise<void> };
  /** Empties the cache of this process, for a committed change after which the feed cannot be read. */
  readonly flush: () => void;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Bytes from a secure source. */
  readonly random: (size: number) => Uint8Array;
  readonly passwords: PasswordHasher;
  /** Absent: callers have no write rate. */
  readonly writes?: WriteRate;
}

/** Reports whether the request reaches users and keys of any tenant by their ids: a platform administrator's that names no tenant. */
export function reachesAllTenants(input: {
  readonly caller: Caller;
  readonly header: (name: string) => unknown;
}): boolean {
  return isPlatformAdmin(input.caller.principal) && input.header('x-tenant-id') === undefined;
}
