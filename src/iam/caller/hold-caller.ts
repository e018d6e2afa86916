/**
 * Reads the caller in the transaction of its change. Its credential, session, user, roles, tenants and the policies
 * that apply to it are read under locks that last until the commit, so a caller whose rights have ended writes nothing.
 * The admission at the listener is not enough: the cache of this process may be older than the database, and the
 * request may have waited for its body.
 */

import {
  keyInvalidReason,
  ownerInvalidReason,
  sessionInvalidReason,
  userInvalidReason,
} from '../../credential-cache/credential-status.ts';
import {
  type CachedUser,
  keySessionPrincipal,
  ownedPrincipal,
  sessionPrincipal,
  toCachedKey,
  toCachedSession,
  toCachedUser,
} from '../../credential-cache/values.ts';
import { compilePolicies, compileTenant } from '../../decision/compile.ts';
import type { InvalidReason, KeyPrincipal, Principal, Snapshot } from '../../decision/model.ts';
import { isPlatformAdmin } from '../../decision/tenant.ts';
import { Fault } from '../../domain/errors.ts';
import type { KeyRecord } from '../../domain/records.ts';
import type { Database } from '../../store/database.ts';
import { type Transaction, tenantTransaction } from '../../store/transaction.ts';
import { admittedTenant, invalidCredential, refuseRotated, refuseUnexchanged } from './admission.ts';
import { authorize } from './authorize.ts';
import type { Caller } from './caller.ts';
import { type HeldCredential, type HeldRows, holdCallerRows, type WrittenRows } from './queries.ts';

const HELD: unique symbol = Symbol('held');

/**
 * A caller as its locked rows describe it, until the transaction ends. Only `holdCaller` and `heldMaker` return one.
 */
export interface HeldCaller extends Caller {
  readonly [HELD]: true;
}

/** Runs `work` in a transaction that holds the caller. @throws like `holdCaller` and `transaction` */
export function asCaller<T>(
  db: Database,
  caller: Caller,
  writes: WrittenRows,
  work: (trx: Transaction, caller: HeldCaller) => Promise<T>,
): Promise<T> {
  return tenantTransaction(db, caller.tenant, async (trx) => work(trx, await holdCaller(trx, caller, writes)));
}

/**
 * Admits the caller again, by the current rows of the database, with the permission of its endpoint. Call it before the
 * transaction takes any other lock. The instant comes from the database's clock.
 * @param writes the existing rows that the change writes
 * @throws Refusal of the step that applies: `invalid_credential`, `tenant_mismatch`, `tenant_suspended`,
 *   `denied_by_policy`, `insufficient_permission`; Fault for a policy by a caller that became a platform administrator
 *   after its request was admitted
 */
export async function holdCaller(trx: Transaction, caller: Caller, writes: WrittenRows): Promise<HeldCaller> {
  const credential = credentialOf(caller);
  // Only platform administrators write global policies, which all changes of all tenants read.
  const holdsGlobal = writes.rules === 'policies' && isPlatformAdmin(caller.principal);
  const rows = await holdCallerRows(trx, {
    credential,
    userId: caller.principal.kind === 'user' ? caller.principal.id : caller.principal.owner?.id,
    own: caller.principal.tenantId,
    effective: caller.tenant,
    writes: writes.rules === 'policies' && !holdsGlobal ? { ...writes, rules: 'roles' } : writes,
  });
  const principal = principalOf(credential, rows);
  if (writes.rules === 'policies' && !holdsGlobal && isPlatformAdmin(principal))
    throw new Fault('the caller has just become a platform administrator, and the global policies are not held');
  const own = rows.own && compileTenant(rows.own);
  const snapshot: Snapshot = {
    own,
    effective: caller.tenant === principal.tenantId ? own : rows.effective && compileTenant(rows.effective),
    global: compilePolicies(rows.globalPolicies),
    builtinRoles: caller.snapshot.builtinRoles,
  };
  admittedTenant(principal, snapshot, caller.tenant);
  const held: HeldCaller = { ...caller, principal, snapshot, nowMs: rows.nowMs, [HELD]: true };
  if (held.access !== 'any' && held.access !== 'use-case') authorize(held, held.access);
  return held;
}

/** @param maker the creator of a one-time token, read from rows that the transaction has locked */
export function heldMaker(maker: Caller): HeldCaller {
  return { ...maker, [HELD]: true };
}

function credentialOf({ principal, keyDigest }: Caller): HeldCredential {
  refuseUnexchanged(principal);
  const { sessionId: session } = principal;
  switch (principal.kind) {
    case 'user':
      if (session === undefined) throw invalidCredential();
      return { session, key: undefined };
    case 'api_key':
      if (keyDigest === undefined) throw invalidCredential();
      return { session, key: { id: principal.id, digest: keyDigest } };
    default:
      return principal satisfies never;
  }
}

/** Step 8 of the decision, by the same rules as for a check. */
function principalOf(credential: HeldCredential, { key, session: row, user, nowMs }: HeldRows): Principal {
  const owner = user && toCachedUser(user, user.id);
  const session = row && toCachedSession(row, row.id);
  if (credential.key !== undefined) {
    const principal = keyPrincipalOf(key, owner, nowMs);
    if (credential.session === undefined) return principal;
    if (session === undefined) throw invalidCredential('session_ended');
    refuse(sessionInvalidReason(session, principal.id, nowMs));
    return keySessionPrincipal(session, principal);
  }
  if (session === undefined) throw invalidCredential('session_ended');
  if (owner === undefined) throw invalidCredential('user_missing');
  refuse(sessionInvalidReason(session, owner.owner.id, nowMs) ?? userInvalidReason(owner));
  return sessionPrincipal(session, owner);
}

function keyPrincipalOf(key: KeyRecord | undefined, owner: CachedUser | undefined, nowMs: number): KeyPrincipal {
  if (key === undefined) throw invalidCredential('unknown');
  const known = toCachedKey(key);
  refuse(keyInvalidReason(known, nowMs));
  if (known.ownerId === undefined) {
    refuseRotated(known.memo.principal);
    return known.memo.principal;
  }
  if (owner === undefined) throw invalidCredential('user_missing');
  refuse(ownerInvalidReason(known, owner));
  refuseRotated(known.memo.principal);
  return ownedPrincipal(known, owner);
}

function refuse(reason: InvalidReason | undefined): void {
  if (reason !== undefined) throw invalidCredential(reason);
}
