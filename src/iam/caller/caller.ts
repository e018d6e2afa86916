/** Who asks for a use case, and what every use case is given to work with. */

import type { Principal, Snapshot } from '../../decision/model.ts';
import type { KeyDigest, RequestId, TenantId, UserId } from '../../domain/ids.ts';
import type { Database } from '../../store/database.ts';
import type { IdempotentRequest } from '../change/idempotency.ts';
import type { Preconditions } from '../change/preconditions.ts';
import type { Access } from './authorize.ts';
import type { WriteRate } from './write-rate.ts';

/**
 * A principal that may act in its effective tenant: steps 5 to 10 of the decision let it through. Between that and the commit of a change
 * its rights may end, so a change decides by a HeldCaller.
 */
export interface Caller {
  readonly principal: Principal;
  /** The digest of the secret that an API key proved itself with; undefined for users. */
  readonly keyDigest: KeyDigest | undefined;
  /** What the endpoint asks of its callers; a change asks it again. */
  readonly access: Access;
  readonly snapshot: Snapshot;
  /** The effective tenant: every id and name that the request says is looked up in it. */
  readonly tenant: TenantId;
  /** True when a platform administrator asked a list for `tenant_id=*`. Nothing but lists may read it. */
  readonly everyTenant: boolean;
  /** Undefined = missing, which makes a condition on it deny. */
  readonly address: string | undefined;
  readonly requestId: RequestId;
  /** The instant of the request, milliseconds since the epoch. */
  readonly nowMs: number;
  /** What the request demands of the resource that it changes; undefined = nothing. */
  readonly preconditions?: Preconditions | undefined;
  /** Where the client may send the request again; undefined = each one counts. */
  readonly idempotency?: IdempotentRequest | undefined;
}

/** The caller's own user id when it came with an access token; self endpoints are closed to keys. */
export function selfId(caller: Caller): UserId | undefined {
  return caller.principal.kind === 'user' ? caller.principal.id : undefined;
}

/** Reports whether the user is the caller, or owns the key that is the caller. */
export function isOwnUser({ principal }: Caller, user: string): boolean {
  return user === (principal.kind === 'user' ? principal.id : principal.owner?.id);
}

/** The password functions that use cases need; `identity` has them. */
export interface PasswordHasher {
  /** Rejects with a Refusal `unavailable` when the queue is full. */
  hash(password: string): Promise<string>;
  /** What is wrong with a new password of that user, in plain words; empty when nothing is. */
  validate(
    password: string,
    owner?: { readonly email?: string | undefined; readonly name?: string | undefined },
  ): readonly string[];
}

export interface AdminParts {
  readonly db: Database;
  /** The local end of the change feed: after it resolves, this process decides by everything committed before the call. */
  readonly feed: { catchUp(): Promise<void> };
  /** Drops everything this process has cached. For when a change is committed and the feed cannot be read. */
  readonly flush: () => void;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Bytes from a secure source. */
  readonly random: (size: number) => Uint8Array;
  readonly passwords: PasswordHasher;
  /** Absent: callers write as much as they like. */
  readonly writes?: WriteRate;
}
