/** The budgets of a tenant, compiled: which of them count the requests of a caller. */

import type { KeyId, RoleName, UserId } from '../domain/ids.ts';
import type { BudgetRecord, Metadata } from '../domain/records.ts';
import { finish, type Steps } from '../domain/steps.ts';
import { compareTexts } from '../domain/text.ts';
import { compileNames, namesMatch } from './globs.ts';
import { ruleWork } from './limits.ts';
import type { Principal } from './model.ts';

export const MAX_BUDGETS_OF_REQUEST = 16;
export const MAX_BUDGETS_OF_TENANT = 1000;

export interface CompiledBudget extends BudgetRecord {
  /** Reports whether a request counts. @param model the model that the request names; undefined = none */
  readonly counts: (model: string | undefined) => boolean;
}

/** The budgets of one tenant, by what selects them. Each list is in the order of names. */
export interface BudgetIndex {
  readonly size: number;
  readonly ofTenant: readonly CompiledBudget[];
  readonly byKey: ReadonlyMap<KeyId, readonly CompiledBudget[]>;
  readonly byUser: ReadonlyMap<UserId, readonly CompiledBudget[]>;
  readonly byRole: ReadonlyMap<RoleName, readonly CompiledBudget[]>;
  readonly byMetadata: readonly { readonly metadata: Metadata; readonly budget: CompiledBudget }[];
}

/** A caller as budgets see it. */
export interface BudgetCaller {
  readonly keyId: KeyId | undefined;
  /** The user, or the owner of the key. */
  readonly userId: UserId | undefined;
  readonly roles: readonly RoleName[];
  /** The metadata of the key. */
  readonly metadata: Metadata | undefined;
}

export function compileBudgets(records: readonly BudgetRecord[]): BudgetIndex {
  return finish(compileBudgetsInSteps(records));
}

/**
 * Like `compileBudgets`, with one budget for each step.
 * @param isRole reports whether the tenant has a role. A deleted role selects no caller, also while users still have
 * rows of it. Default: every role
 */
export function* compileBudgetsInSteps(
  records: readonly BudgetRecord[],
  isRole: (name: RoleName) => boolean = () => true,
): Steps<BudgetIndex> {
  const ofTenant: CompiledBudget[] = [];
  const byKey = new Map<KeyId, CompiledBudget[]>();
  const byUser = new Map<UserId, CompiledBudget[]>();
  const byRole = new Map<RoleName, CompiledBudget[]>();
  const byMetadata: { readonly metadata: Metadata; readonly budget: CompiledBudget }[] = [];
  for (const record of records) {
    const budget = compileBudget(record);
    const { appliesTo } = record;
    if ('tenant' in appliesTo) ofTenant.push(budget);
    else if ('keys' in appliesTo) addTo(byKey, appliesTo.keys, budget);
    else if ('users' in appliesTo) addTo(byUser, appliesTo.users, budget);
    else if ('roles' in appliesTo) addTo(byRole, appliesTo.roles.filter(isRole), budget);
    else byMetadata.push({ metadata: appliesTo.metadata, budget });
    yield;
  }
  return Object.freeze({ size: records.length, ofTenant, byKey, byUser, byRole, byMetadata });
}

function addTo<K>(map: Map<K, CompiledBudget[]>, names: readonly K[], budget: CompiledBudget): void {
  for (const name of new Set(names)) map.getOrInsert(name, []).push(budget);
}

function compileBudget(record: BudgetRecord): CompiledBudget {
  const names = record.models && compileNames(record.models, 'widen');
  // The work of one list is always less than that of a decision.
  const counts = (model: string | undefined): boolean =>
    names === undefined || (model !== undefined && namesMatch(names, model, ruleWork()));
  return Object.freeze({ ...record, counts });
}

export function budgetCallerOf(principal: Principal): BudgetCaller {
  if (principal.kind === 'user') {
    return { keyId: undefined, userId: principal.id, roles: principal.roles, metadata: undefined };
  }
  const { id: keyId, owner, metadata } = principal;
  return { keyId, userId: owner?.id, roles: owner?.roles ?? [], metadata };
}

/** Returns the budgets that count requests of the caller, in the order of names. */
export function budgetsOf(index: BudgetIndex, caller: BudgetCaller): readonly CompiledBudget[] {
  if (index.size === 0) return [];
  const { keyId, userId, roles, metadata } = caller;
  const found = new Set(index.ofTenant);
  const add = (budgets: readonly CompiledBudget[] | undefined): void => {
    for (const budget of budgets ?? []) found.add(budget);
  };
  if (keyId !== undefined) add(index.byKey.get(keyId));
  if (userId !== undefined) add(index.byUser.get(userId));
  for (const role of roles) add(index.byRole.get(role));
  if (metadata !== undefined)
    for (const { metadata: wanted, budget } of index.byMetadata) if (hasAll(metadata, wanted)) found.add(budget);
  return [...found].sort((a, b) => compareTexts(a.name, b.name));
}

function hasAll(metadata: Metadata, wanted: Metadata): boolean {
  return Object.entries(wanted).every(([name, value]) => Object.hasOwn(metadata, name) && metadata[name] === value);
}

/**
 * Returns the caller whose amount a request uses: empty for a shared budget. A caller without a key counts in a budget
 * for each key as its user, and a key without an owner counts in a budget for each user as itself.
 */
export function shareOf({ per }: Pick<BudgetRecord, 'per'>, { keyId, userId }: BudgetCaller): string {
  switch (per) {
    case 'all':
      return '';
    case 'key':
      return keyId ?? userId ?? '';
    case 'user':
      return userId ?? keyId ?? '';
    default:
      return per satisfies never;
  }
}
