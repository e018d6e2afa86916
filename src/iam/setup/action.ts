/** The actions of a plan: what each changes, the order in which they run, and how they are recorded. */

import { isDeepStrictEqual } from 'node:util';
import type { TenantId } from '../../domain/ids.ts';
import type { Transaction } from '../../store/transaction.ts';
import type { AuditTarget } from '../change/audit-row.ts';
import type { MemberChange } from './members.ts';
import type { NewSetupUser } from './queries.ts';

export interface PlanAction {
  readonly verb: 'create' | 'change' | 'delete';
  readonly type: 'tenant' | 'role' | 'policy' | 'issuer' | 'webhook' | 'budget' | 'user';
  /** The tenant of the resource; undefined for tenants and global policies. */
  readonly tenant: TenantId | undefined;
  /** The id of a tenant, the name of a role, policy or issuer, the URL of a webhook, or the email address of a user. */
  readonly name: string;
  /** Empty for `delete`. */
  readonly changes: readonly MemberChange[];
}

export interface PlannedAction<Row = unknown, Values = unknown, Key extends string = string> extends PlanAction {
  readonly name: Key;
  /** Undefined for `create`. */
  readonly before: Row | undefined;
  /** Undefined for `delete`. */
  readonly after: Values | undefined;
  readonly run: (context: ApplyContext) => Promise<void>;
}

/** The services for actions. */
export interface ApplyContext {
  readonly trx: Transaction;
  /** Milliseconds since the epoch. */
  readonly nowMs: number;
  /** Bytes from a secure source. */
  readonly random: (size: number) => Uint8Array;
  readonly audit: (row: ActionAudit) => Promise<void>;
  /** Inserts a user, in one statement with other users. The row may exist only after the last action. */
  readonly insertUser: (user: NewSetupUser) => Promise<void>;
  /** After it, the rows of all inserted users exist. */
  readonly flushUsers: () => Promise<void>;
}

export interface ActionAudit {
  /** `<type>.<verb>`, as for a change through the API. */
  readonly action: string;
  readonly target: AuditTarget;
  readonly tenant: TenantId | undefined;
  readonly before?: unknown;
  readonly after?: unknown;
}

/**
 * The order of the actions. Names and email addresses become free before other resources take them. A resource is
 * written before others refer to it, and deleted after them.
 */
const STAGES: readonly (readonly [kind: 'write' | 'delete', type: PlanAction['type']])[] = [
  ['delete', 'policy'],
  ['delete', 'user'],
  ['delete', 'issuer'],
  ['delete', 'webhook'],
  ['delete', 'budget'],
  ['write', 'tenant'],
  ['write', 'role'],
  ['write', 'policy'],
  ['write', 'issuer'],
  ['write', 'webhook'],
  ['write', 'user'],
  ['write', 'budget'],
  ['delete', 'role'],
  ['delete', 'tenant'],
];

export function inOrder(actions: readonly PlannedAction[]): readonly PlannedAction[] {
  return actions.toSorted((left, right) => stageOf(left) - stageOf(right));
}

function stageOf(action: PlanAction): number {
  return STAGES.findIndex(([kind, type]) => type === action.type && (kind === 'delete') === (action.verb === 'delete'));
}

/** Reports whether the operator sees the same text for both plans. */
export function sameActions(left: readonly PlanAction[], right: readonly PlanAction[]): boolean {
  return isDeepStrictEqual(left.map(shown), right.map(shown));
}

function shown({ verb, type, tenant, name, changes }: PlanAction): PlanAction {
  return { verb, type, tenant, name, changes };
}
