/**
 * One change: its rows and its audit row are written in one transaction. Before the answer, this process catches up
 * with the change feed, so a caller that revoked a key sees the key rejected at once.
 *
 * The transaction of a caller's change begins with `holdCaller`, and the work receives the caller as the transaction
 * holds it. So no endpoint can write by rights that were read earlier.
 */

import { type ErrorCode, Refusal } from '../../domain/errors.ts';
import { type KeyId, parseId, parseTenantId, type TenantId, type UserId } from '../../domain/ids.ts';
import { type AuditRow, insertAudit, insertAudits } from '../../store/audit-rows.ts';
import { type Transaction, tenantTransaction } from '../../store/transaction.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { type HeldCaller, holdCaller } from '../caller/hold-caller.ts';
import type { WrittenRows } from '../caller/queries.ts';
import { refusedByStore } from '../caller/refusals.ts';
import { type Actor, type AuditTarget, actorOf, auditRow } from './audit-row.ts';
import { claim, runIdempotent } from './idempotency.ts';
import { entityTag, requireMet } from './preconditions.ts';

/** The part of an audit row that is known before the change runs. */
interface AuditEntry {
  /** `<type>.<verb>`, as in `user.create`. */
  readonly action: string;
  readonly target?: AuditTarget | undefined;
}

interface ChangeEntry extends AuditEntry {
  /**
   * True if the target exists and the change writes its row. Then the transaction locks that row before the work
   * begins, in one order with the caller's own rows: a caller may change itself, and two callers may change each other.
   */
  readonly existing?: boolean;
  /**
   * The keys that the change writes, if it writes several. They are locked like the target of `existing`. Default:
   * none.
   */
  readonly keys?: readonly KeyId[];
  /** The same for users. */
  readonly users?: readonly UserId[];
}

/** The audit row while the work runs. The work may set every member. Secrets are masked when the row is written. */
export interface AuditDraft {
  target: AuditTarget | undefined;
  /** The tenant that the row belongs to; undefined: the platform. Default: the effective tenant. */
  tenant: TenantId | undefined;
  result: 'success' | 'failure';
  before: unknown;
  after: unknown;
  /** For a change of several targets: one row for each replaces the draft's own row. Empty if nothing was changed. */
  each: readonly AuditedTarget[] | undefined;
}

/** Records the states before and after a change, and returns the latter. @param before undefined: a new resource */
export function recorded<T>(audit: AuditDraft, before: unknown, after: T): T {
  audit.before = before;
  audit.after = after;
  return after;
}

/** One of several targets of a change. */
export interface AuditedTarget {
  readonly target: AuditTarget;
  readonly result: AuditRow['result'];
  readonly before?: unknown;
  readonly after: unknown;
}

/** Returns an audited target for each that the caller must not change. */
export function refusedTargets(
  type: AuditTarget['type'],
  refusals: ReadonlyMap<string, Refusal>,
): readonly AuditedTarget[] {
  return [...refusals].map(([id, { code, message }]) => ({
    target: { type, id },
    result: 'refused',
    after: { code, detail: message },
  }));
}

/**
 * Compares the request's preconditions with the current resource. Call it after the row is locked and after every check
 * that does not depend on the request's body: a server evaluates preconditions after its other checks (RFC 9110,
 * section 13.2.1).
 * @throws Refusal `precondition_failed`
 */
type CheckPreconditions = (resource: object) => void;

/** The input of the work of a caller's change. */
export interface ChangeWork {
  readonly trx: Transaction;
  /** The caller as it is in this transaction. */
  readonly caller: HeldCaller;
  readonly audit: AuditDraft;
  readonly checkPreconditions: CheckPreconditions;
}

type ChangeParts = Pick<AdminParts, 'db' | 'feed' | 'flush' | 'writes'>;

/** Refusals that leave an audit row of their own, because they may show an attack or a mistake of an administrator. */
const AUDITED: ReadonlySet<ErrorCode> = new Set([
  'escalation',
  'builtin_role',
  'last_admin',
  'would_lock_out',
  'quota_exceeded',
]);

/**
 * Runs the work of a caller's change and writes its audit row, in one transaction. For a request with an
 * Idempotency-Key, the work runs at most once, and its result is stored: the result must be plain JSON without secrets.
 * @throws Refusal of `holdCaller` or of the work: then nothing is written, except the audit row of a refusal in
 *   `AUDITED`; Refusal `rate_limit_exceeded` for a caller that has written too much; Fault if the store is unavailable
 */
export async function change<T>(
  parts: ChangeParts,
  caller: Caller,
  entry: ChangeEntry,
  work: (given: ChangeWork) => Promise<T>,
): Promise<T> {
  parts.writes?.admit(caller, entry.action);
  return runChange(
    parts,
    actorOf(caller),
    entry,
    async (trx, audit, withAudit) => {
      await claim(trx, caller);
      const held = await holdCaller(trx, caller, writtenRows(entry));
      return runIdempotent(trx, held, () =>
        withAudit(work({ trx, caller: held, audit, checkPreconditions: preconditionsCheck(held) })),
      );
    },
    (rows) => {
      // A replay has rolled its rows back.
      if (caller.idempotency?.replayed !== true) parts.writes?.wrote(caller, rows);
    },
  );
}

/** Runs a change like `change`, but without a caller: for the command line and the demonstration. */
export function changeAsSystem<T>(
  parts: ChangeParts,
  actor: Actor,
  entry: AuditEntry,
  work: (trx: Transaction, audit: AuditDraft) => Promise<T>,
): Promise<T> {
  return runChange(parts, actor, entry, (trx, audit, withAudit) => withAudit(work(trx, audit)));
}

/** Awaits the work and then writes its audit rows. */
type WithAudit = <T>(work: Promise<T>) => Promise<T>;

async function runChange<T>(
  parts: ChangeParts,
  actor: Actor,
  entry: AuditEntry,
  run: (trx: Transaction, audit: AuditDraft, withAudit: WithAudit) => Promise<T>,
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
    result = await tenantTransaction(parts.db, actor.tenant, async (trx) => {
      // A transaction runs again after a conflict, and must not keep the draft of its first run.
      draft = blank();
      rows = [];
      return run(trx, draft, async (work) => {
        const value = await work;
        const { each = [{ result: draft.result }] } = draft;
        rows = each.map((one) => auditRow(actor, entry.action, { ...draft, ...one }, one.result));
        const [row] = rows;
        if (row !== undefined) await (rows.length === 1 ? insertAudit(trx, row) : insertAudits(trx, rows));
        return value;
      });
    });
  } catch (cause) {
    const error = refusedByStore(cause);
    if (error instanceof Refusal && AUDITED.has(error.code)) {
      const refused = { ...draft, before: undefined, after: { code: error.code, detail: error.message } };
      const row = auditRow(actor, entry.action, refused, 'refused');
      await tenantTransaction(parts.db, actor.tenant, (trx) => insertAudit(trx, row));
      onWritten([row]);
      error.asAudited();
    }
    throw error;
  }
  onWritten(rows);
  await applyHere(parts);
  return result;
}

/** A target whose id has no valid form names no row. The work rejects it. */
function writtenRows({ target, existing = false, keys, users }: ChangeEntry): WrittenRows {
  if (keys !== undefined || users !== undefined) return { keys, users };
  if (target === undefined) return {};
  switch (target.type) {
    case 'role':
      return { rules: 'roles' };
    // A mapping names roles, and keys and users refer to the issuer: none of them changes at the same time.
    case 'issuer':
      return { rules: 'roles' };
    // The number of budgets that count a request follows from keys and users: none of them changes at the same time.
    case 'budget':
    // One at a time in a tenant, because a new one counts the others.
    case 'webhook':
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

/** For work outside `change`, such as a request to another server. */
export function preconditionsCheck({ preconditions }: Caller): CheckPreconditions {
  return preconditions === undefined ? () => undefined : (resource) => requireMet(preconditions, entityTag(resource));
}

/**
 * Applies a committed change in this process before the response. If the feed cannot be read now, the process must not
 * use its cache any longer.
 */
export async function applyHere(parts: Pick<ChangeParts, 'feed' | 'flush'>): Promise<void> {
  try {
    await parts.feed.catchUp();
  } catch {
    parts.flush();
  }
}
