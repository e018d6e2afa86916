/**
 * One change: rows and audit row in one transaction, then this process catches up with the feed before it answers, so that who
 * revoked a key sees it refused at once.
 */

import { type ErrorCode, Refusal } from '../domain/errors.ts';
import type { RequestId, TenantId } from '../domain/ids.ts';
import { type AuditRow, insertAudit } from '../store/queries/audit.ts';
import { type Transaction, transaction } from '../store/transaction.ts';
import type { AdminParts, Caller } from './caller.ts';
import { once } from './idempotency.ts';
import { masked } from './mask.ts';
import { entityTag, requireMet } from './preconditions.ts';
import { refusedByStore } from './refusals.ts';

/** Who a change is written down for. Use cases of a caller are given the caller; login, bootstrap and the command line make their own. */
export interface Actor {
  readonly type: 'user' | 'api_key' | 'system' | 'anonymous';
  readonly id: string | undefined;
  readonly tenant: TenantId | undefined;
  readonly address: string | undefined;
  readonly requestId: RequestId | undefined;
}

export const AUDIT_TARGETS = ['user', 'role', 'policy', 'tenant', 'api_key', 'session', 'signing_key', 'directory'] as const;

export interface AuditTarget {
  readonly type: (typeof AUDIT_TARGETS)[number];
  readonly id: string;
}

/** What is known of a change before it runs. */
export interface AuditEntry {
  /** `<thing>.<verb>`, as in `user.create`. */
  readonly action: string;
  readonly target?: AuditTarget | undefined;
}

/** What the work learns while it runs; it may set every member. Secrets are masked when the row is written. */
export interface AuditDraft {
  target: AuditTarget | undefined;
  /** The tenant whose audit the row belongs to; the effective tenant unless set, undefined = the platform's own. */
  tenant: TenantId | undefined;
  result: 'success' | 'failure';
  before: unknown;
  after: unknown;
}

/**
 * Asks what the request's preconditions demand of the resource that it changes. To be called with the resource as it is, once its row
 * is held and everything else is checked that does not hang on the request's body: a precondition of a request that would be refused
 * anyway counts for nothing (RFC 9110, section 13.2.1).
 * @throws Refusal `precondition_failed`
 */
export type Held = (resource: object) => void;

type ChangeParts = Pick<AdminParts, 'db' | 'feed' | 'flush'>;

/** Refusals that say something about who tried: they leave an audit row of their own. */
const AUDITED: ReadonlySet<ErrorCode> = new Set(['escalation', 'builtin_role', 'last_admin', 'would_lock_out', 'quota_exceeded']);

/**
 * Runs `work` in one transaction together with its audit row: once, where the request has an Idempotency-Key. Then what it resolves
 * with is kept, so it is plain JSON without secrets.
 * @throws Refusal from the work (nothing is written but, for escalations and their like, the refusal); Fault when the store is gone
 */
export async function change<T>(
  parts: ChangeParts,
  who: Caller | Actor,
  entry: AuditEntry,
  work: (trx: Transaction, audit: AuditDraft, held: Held) => Promise<T>,
): Promise<T> {
  const caller = 'principal' in who ? who : undefined;
  const actor = 'principal' in who ? actorOf(who) : who;
  const blank = (): AuditDraft => ({
    target: entry.target,
    tenant: actor.tenant,
    result: 'success',
    before: undefined,
    after: undefined,
  });
  let draft = blank();
  let result: T;
  try {
    result = await transaction(parts.db, async (trx) => {
      // A transaction that collided with another is run again, and tells its story anew.
      draft = blank();
      return once(trx, caller, async () => {
        const value = await work(trx, draft, heldFor(caller));
        trx.lastly(insertAudit(trx, rowOf(actor, entry.action, draft, draft.result)));
        return value;
      });
    });
  } catch (cause) {
    const error = refusedByStore(cause);
    if (error instanceof Refusal && AUDITED.has(error.code)) {
      const refused = { ...draft, before: undefined, after: { code: error.code, detail: error.message } };
      await transaction(parts.db, (trx) => insertAudit(trx, rowOf(actor, entry.action, refused, 'refused')));
    }
    throw error;
  }
  await settle(parts);
  return result;
}

function heldFor(caller: Caller | undefined): Held {
  const conditions = caller?.preconditions;
  return conditions === undefined ? () => undefined : (resource) => requireMet(conditions, entityTag(resource));
}

/** The change is committed and will be acknowledged; if the feed cannot be read now, nothing cached here is trusted any more. */
async function settle(parts: ChangeParts): Promise<void> {
  try {
    await parts.feed.catchUp();
  } catch {
    parts.flush();
  }
}

export function actorOf(caller: Caller): Actor {
  return {
    type: caller.principal.kind,
    id: caller.principal.id,
    tenant: caller.tenant,
    address: caller.address,
    requestId: caller.requestId,
  };
}

function rowOf(actor: Actor, action: string, draft: AuditDraft, result: AuditRow['result']): AuditRow {
  return {
    actorType: actor.type,
    actorId: actor.id,
    tenantId: draft.tenant,
    address: actor.address,
    action,
    targetType: draft.target?.type,
    targetId: draft.target?.id,
    result,
    before: masked(draft.before),
    after: masked(draft.after),
    requestId: actor.requestId,
  };
}
