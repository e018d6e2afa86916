/** One action of a plan: what it does to which thing, for people to read, and how it is done. */

import { isDeepStrictEqual } from 'node:util';
import type { TenantId } from '../../domain/ids.ts';
import type { Transaction } from '../../store/transaction.ts';
import type { AuditTarget } from '../change/audit-row.ts';
import type { MemberChange } from './difference.ts';
import type { NewSetupUser } from './queries.ts';

export interface PlanAction {
  readonly verb: 'create' | 'change' | 'delete';
  readonly type: 'tenant' | 'role' | 'policy' | 'user';
  /** Whose it is; undefined for tenants and global policies. */
  readonly tenant: TenantId | undefined;
  /** Id of a tenant, name of a role or policy, e-mail address of a user. */
  readonly name: string;
  /** Empty for what is deleted. */
  readonly changes: readonly MemberChange[];
}

/**
 * In which order actions are done: names and addresses are let go before others take them, and what others refer to is made before and
 * deleted after them.
 */
export const STAGES = [
  'delete policies',
  'delete users',
  'write tenants',
  'write roles',
  'write policies',
  'write users',
  'delete roles',
  'delete tenants',
] as const;

export type Stage = (typeof STAGES)[number];

export interface PlannedAction extends PlanAction {
  readonly stage: Stage;
  readonly run: (context: ApplyContext) => Promise<void>;
}

/** What actions are given to write with. */
export interface ApplyContext {
  readonly trx: Transaction;
  /** Milliseconds since the epoch. */
  readonly nowMs: number;
  /** Bytes from a secure source. */
  readonly random: (size: number) => Uint8Array;
  /** Writes down what was done to one thing. */
  readonly audit: (row: ActionAudit) => Promise<void>;
  /** Makes a user, together with others that are made now or later; until all actions are done. */
  readonly makeUser: (user: NewSetupUser) => Promise<void>;
}

export interface ActionAudit {
  /** `<thing>.<verb>`, as when the API does it. */
  readonly action: string;
  readonly target: AuditTarget;
  readonly tenant: TenantId | undefined;
  readonly before?: unknown;
  readonly after?: unknown;
}

export function inOrder(actions: readonly PlannedAction[]): readonly PlannedAction[] {
  return actions.toSorted((a, b) => STAGES.indexOf(a.stage) - STAGES.indexOf(b.stage));
}

/** Whether two plans read the same to whoever agreed to one of them. */
export function sameActions(left: readonly PlanAction[], right: readonly PlanAction[]): boolean {
  return isDeepStrictEqual(left.map(shown), right.map(shown));
}

function shown({ verb, type, tenant, name, changes }: PlanAction): PlanAction {
  return { verb, type, tenant, name, changes };
}
