/** One step of a plan: what it does to which thing, for people to read, and how it is done. */

import { isDeepStrictEqual } from 'node:util';
import type { TenantId } from '../../domain/ids.ts';
import type { Transaction } from '../../store/transaction.ts';
import type { AuditTarget } from '../change/change.ts';
import type { MemberChange } from './difference.ts';
import type { NewSetupUser } from './queries.ts';

export interface Step {
  readonly verb: 'create' | 'change' | 'delete';
  readonly thing: 'tenant' | 'role' | 'policy' | 'user';
  /** Whose it is; undefined for tenants and global policies. */
  readonly tenant: TenantId | undefined;
  /** Id of a tenant, name of a role or policy, e-mail address of a user. */
  readonly name: string;
  /** Empty for what is deleted. */
  readonly changes: readonly MemberChange[];
}

/**
 * In which order steps are done: names and addresses are let go before others take them, and what others refer to is made before and
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

export interface PlannedStep extends Step {
  readonly stage: Stage;
  readonly run: (writing: Writing) => Promise<void>;
}

/** What steps are given to write with. */
export interface Writing {
  readonly trx: Transaction;
  /** Milliseconds since the epoch. */
  readonly nowMs: number;
  /** Bytes from a secure source. */
  readonly random: (size: number) => Uint8Array;
  /** Writes down what was done to one thing. */
  readonly audit: (row: StepAudit) => Promise<void>;
  /** Makes a user, together with others that are made now or later; until all steps are done. */
  readonly makeUser: (user: NewSetupUser) => Promise<void>;
}

export interface StepAudit {
  /** `<thing>.<verb>`, as when the API does it. */
  readonly action: string;
  readonly target: AuditTarget;
  readonly tenant: TenantId | undefined;
  readonly before?: unknown;
  readonly after?: unknown;
}

export function inOrder(steps: readonly PlannedStep[]): readonly PlannedStep[] {
  return steps.toSorted((a, b) => STAGES.indexOf(a.stage) - STAGES.indexOf(b.stage));
}

/** Whether two plans read the same to whoever agreed to one of them. */
export function sameSteps(left: readonly Step[], right: readonly Step[]): boolean {
  return isDeepStrictEqual(left.map(shown), right.map(shown));
}

function shown({ verb, thing, tenant, name, changes }: Step): Step {
  return { verb, thing, tenant, name, changes };
}
