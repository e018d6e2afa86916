/**
 * One change: rows and audit row in one transaction, then this process catches up with the feed before it answers, so that who
 * revoked a key sees it refused at once.
 *
 * A caller's change begins by holding the caller (hold-caller.ts), and its work is given the caller as the transaction holds it. So no
 * endpoint can write by rights that were read earlier.
 */

import { type ErrorCode, Refusal } from '../../domain/errors.ts';
import { type KeyId, parseId, parseTenantId, type RequestId, type TenantId } from '../../domain/ids.ts';
import { type AuditRow, insertAudit, insertAudits } from '../../store/audit-rows.ts';
import { type Transaction, transaction } from '../../store/transaction.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { type HeldCaller, holdCaller } from '../caller/hold-caller.ts';
import type { WrittenRows } from '../caller/queries.ts';
import { refusedByStore } from '../caller/refusals.ts';
import { claim, runIdempotent } from './idempotency.ts';
import { masked } from './mask.ts';
import { entityTag, requireMet } from './preconditions.ts';

/** The actor of an audit row. A caller's change makes it of the caller; login, bootstrap and the command line make their own. */
export interface Actor {
  readonly type: 'user' | 'api_key' | 'system' | 'anonymous';
  readonly id: string | undefined;
  readonly tenant: TenantId | undefined;
  readonly address: string | undefined;
  readonly requestId: RequestId | undefined;
}

export const AUDIT_TARGETS = [
  'user',
  'role',
  'policy',
  'tenant',
  'api_key',
  'session',
  'signing_key',
  'directory',
] as const;

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

/** A caller's change. */
export interface ChangeEntry extends AuditEntry {
  /**
   * True when the target is there already and the change writes its row. Then the transaction holds that row, in one order with the
   * caller's own rows, before the work begins: a caller may change itself, and two callers may change each other.
   */
  readonly existing?: boolean;
  /** Keys that the change writes, if it writes several: held like `existing`, in one order. Default: none. */
  readonly keys?: readonly KeyId[];
}

/** What the work learns while it runs; it may set every member. Secrets are masked when the row is written. */
export interface AuditDraft {
  target: AuditTarget | undefined;
  /** The tenant whose audit the row belongs to; the effective tenant unless set, undefined = the platform's own. */
  tenant: TenantId | undefined;
  result: 'success' | 'failure';
  before: unknown;
  after: unknown;
  /** A row for each, in place of the draft's own; empty if nothing was changed. For a change of several targets. */
  each: readonly AuditedTarget[] | undefined;
}

/** One of several targets of a change. */
export interface AuditedTarget {
  readonly target: AuditTarget;
  readonly result: AuditRow['result'];
  readonly before?: unknown;
  readonly after: unknown;
}

/**
 * Asks what the request's preconditions demand of the resource that it changes. To be called with the resource as it is, once its row
 * is held and everything else is checked that does not hang on the request's body: a precondition of a request that would be refused
 * anyway counts for nothing (RFC 9110, section 13.2.1).
 * @throws Refusal `precondition_failed`
 */
export type CheckPreconditions = (resource: object) => void;

/** What the work of a caller's change is given. */
export interface ChangeWork {
  readonly trx: Transaction;
  /** As it is in this transaction. */
  readonly caller: HeldCaller;
  readonly audit: AuditDraft;
  readonly checkPreconditions: CheckPreconditions;
}

type ChangeParts = Pick<AdminParts, 'db' | 'feed' | 'flush' | 'writes'>;

/** Refusals that say something about who tried: they leave an audit row of their own. */
const AUDITED: ReadonlySet<ErrorCode> = new Set([
  'escalation',
  'builtin_role',
  'last_admin',
  'would_lock_out',
  'quota_exceeded',
]);

/**
 * Runs the work of a caller's change in one transaction together with its audit row: once, if the request has an Idempotency-Key. Then what
 * it resolves with is kept, so it is plain JSON without secrets.
 * @throws Refusal of `holdCaller` or of the work (nothing is written but, for escalations and their like, the refusal); `rate_limit_exceeded`
 *   of a caller that has written too much; Fault when the store is gone
 */
export async function change<T>(
  parts: ChangeParts,
  caller: Caller,
  entry: ChangeEntry,
  work: (given: ChangeWork) => Promise<T>,
): Promise<T> {
  parts.writes?.admit(caller, entry.action);
  return carryOut(
    parts,
    actorOf(caller),
    entry,
    async (trx, audit, written) => {
      await claim(trx, caller);
      const held = await holdCaller(trx, caller, writtenRows(entry));
      return runIdempotent(trx, held, () =>
        written(work({ trx, caller: held, audit, checkPreconditions: preconditionsCheck(held) })),
      );
    },
    (rows) => parts.writes?.wrote(caller, rows),
  );
}

/** Like `change`, for what nobody calls over HTTP: the command line, the demo. */
export function changeAsSystem<T>(
  parts: ChangeParts,
  actor: Actor,
  entry: AuditEntry,
  work: (trx: Transaction, audit: AuditDraft) => Promise<T>,
): Promise<T> {
  return carryOut(parts, actor, entry, (trx, audit, written) => written(work(trx, audit)));
}

/** Adds the audit row to work that is done. */
type Written = <T>(work: Promise<T>) => Promise<T>;

async function carryOut<T>(
  parts: ChangeParts,
  actor: Actor,
  entry: AuditEntry,
  run: (trx: Transaction, audit: AuditDraft, written: Written) => Promise<T>,
  onWritten: (rows: readonly AuditRow[]) => void = () => undefined,
): Promise<T> {
  const blank = (): AuditDraft => ({
    target: entry.target,
    tenant: actor.tenant,
    result: 'success',
    before: undefined,
    after: undefined,
    each: undefined,
  });
  let draft = blank();
  let rows: readonly AuditRow[] = [];
  let result: T;
  try {
    result = await transaction(
      parts.db,
      async (trx) => {
        // A transaction that conflicts with another one runs again, and starts with an empty draft.
        draft = blank();
        rows = [];
        return run(trx, draft, async (work) => {
          const value = await work;
          const { each = [{ result: draft.result }] } = draft;
          rows = each.map((one) => rowOf(actor, entry.action, { ...draft, ...one }, one.result));
          const [row] = rows;
          if (row !== undefined) await (rows.length === 1 ? insertAudit(trx, row) : insertAudits(trx, rows));
          return value;
        });
      },
      actor.tenant,
    );
  } catch (cause) {
    const error = refusedByStore(cause);
    if (error instanceof Refusal && AUDITED.has(error.code)) {
      const refused = { ...draft, before: undefined, after: { code: error.code, detail: error.message } };
      await transaction(
        parts.db,
        (trx) => insertAudit(trx, rowOf(actor, entry.action, refused, 'refused')),
        actor.tenant,
      );
      error.asAudited();
    }
    throw error;
  }
  onWritten(rows);
  await settle(parts);
  return result;
}

/** An id that is none names no row, and the work says so. */
function writtenRows({ target, existing = false, keys }: ChangeEntry): WrittenRows {
  if (keys !== undefined) return { keys };
  if (target === undefined) return {};
  switch (target.type) {
    case 'role':
      return { rules: 'roles' };
    case 'policy':
      return { rules: 'policies' };
    case 'user':
      return existing ? { user: parseId('usr', target.id) } : {};
    case 'api_key':
      return existing ? { key: parseId('key', target.id) } : {};
    case 'session':
      return existing ? { session: parseId('ses', target.id) } : {};
    case 'tenant':
      return existing ? { tenant: parseTenantId(target.id) } : {};
    case 'signing_key':
    case 'directory':
      return {};
    default:
      return target.type satisfies never;
  }
}

function preconditionsCheck({ preconditions }: Caller): CheckPreconditions {
  return preconditions === undefined ? () => undefined : (resource) => requireMet(preconditions, entityTag(resource));
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

type RowDraft = Pick<AuditDraft, 'target' | 'tenant'> & { readonly before?: unknown; readonly after: unknown };

function rowOf(actor: Actor, action: string, draft: RowDraft, result: AuditRow['result']): AuditRow {
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
