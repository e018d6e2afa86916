/**
 * The number of budgets that count one request. Each write that may add one for some caller checks it in its
 * transaction: those of budgets, of keys and of users' roles.
 *
 * Roles that a directory or an issuer assigns at a login are not checked, because a login must not fail by it. Then more
 * budgets apply.
 */

import { budgetsOf, compileBudgets, MAX_BUDGETS_OF_REQUEST } from '../../decision/budgets.ts';
import { Refusal } from '../../domain/errors.ts';
import type { RoleName, TenantId, UserId } from '../../domain/ids.ts';
import type { BudgetRecord } from '../../domain/records.ts';
import type { Queryable } from '../../store/queryable.ts';
import type { KeyRow } from '../api-keys/entity.ts';
import { budgetRecord } from './entity.ts';
import { enabledBudgets, sizeOfBudgets } from './queries.ts';
import { callersOfUser, selectionsOfCallers } from './state-queries.ts';

/** The largest number of sets of budgets, each of one or more callers, that are compared model by model. */
const MAX_SETS = 10_000;

/**
 * For a written budget that is in force.
 * @throws Refusal `quota_exceeded`
 */
export async function refuseManyOfRequest(trx: Queryable, tenant: TenantId): Promise<void> {
  const all = await recordsOf(trx, tenant);
  if (all === undefined) return;
  const ofTenant = all.filter(({ appliesTo }) => 'tenant' in appliesTo);
  refuseMany(ofTenant);
  const found = await selectionsOfCallers(trx, tenant, MAX_BUDGETS_OF_REQUEST - ofTenant.length, MAX_SETS + 1);
  if (found.length > MAX_SETS) throw tooMany();
  const byId = new Map<string, BudgetRecord>(all.map((one) => [one.id, one]));
  for (const ids of found) refuseMany([...ofTenant, ...ids.flatMap((id) => byId.get(id) ?? [])]);
}

/** Checks several keys or users of a tenant, for which the budgets are read once. */
export interface ApplyingBudgets {
  /** For a key that is written with this owner and metadata. @throws Refusal `quota_exceeded` */
  refuseManyOfKey(key: Pick<KeyRow, 'id' | 'user_id' | 'metadata'>): Promise<void>;
  /**
   * For the stored and the added roles of a user, and for the keys that the user owns.
   * @throws Refusal `quota_exceeded`
   */
  refuseManyOfUser(user: UserId, added?: readonly RoleName[]): Promise<void>;
}

const FEW: ApplyingBudgets = { refuseManyOfKey: async () => undefined, refuseManyOfUser: async () => undefined };

export async function applyingBudgets(trx: Queryable, tenant: TenantId): Promise<ApplyingBudgets> {
  const all = await recordsOf(trx, tenant);
  if (all === undefined) return FEW;
  const index = compileBudgets(all);
  return {
    async refuseManyOfKey({ id, user_id, metadata }) {
      const roles = user_id === null ? [] : (await callersOfUser(trx, tenant, user_id)).roles;
      refuseMany(budgetsOf(index, { keyId: id, userId: user_id ?? undefined, roles, metadata }));
    },
    async refuseManyOfUser(user, added = []) {
      const { roles: stored, keys } = await callersOfUser(trx, tenant, user);
      const roles = [...new Set([...stored, ...added])];
      refuseMany(budgetsOf(index, { keyId: undefined, userId: user, roles, metadata: undefined }));
      for (const { id, metadata } of keys) refuseMany(budgetsOf(index, { keyId: id, userId: user, roles, metadata }));
    },
  };
}

/** Returns the budgets in force, or undefined if they are so few that no request can have too many. */
async function recordsOf(trx: Queryable, tenant: TenantId): Promise<readonly BudgetRecord[] | undefined> {
  const { enabled } = await sizeOfBudgets(trx, tenant);
  return enabled <= MAX_BUDGETS_OF_REQUEST ? undefined : (await enabledBudgets(trx, tenant)).map(budgetRecord);
}

/** @param budgets those that count the requests of one caller. @throws Refusal `quota_exceeded` */
function refuseMany(budgets: readonly BudgetRecord[]): void {
  if (budgets.length > MAX_BUDGETS_OF_REQUEST && mostOfRequest(budgets) > MAX_BUDGETS_OF_REQUEST) throw tooMany();
}

/**
 * Returns the largest number of budgets that count one request of a caller. A budget with a glob counts with every
 * name, because some name may match all globs.
 */
function mostOfRequest(budgets: readonly Pick<BudgetRecord, 'models'>[]): number {
  let ofAll = 0;
  const ofName = new Map<string, number>();
  for (const { models } of budgets) {
    if (models === undefined || models.some((name) => name.includes('*'))) ofAll += 1;
    else for (const name of new Set(models)) ofName.set(name, (ofName.get(name) ?? 0) + 1);
  }
  return ofAll + Math.max(0, ...ofName.values());
}

function tooMany(): Refusal {
  return new Refusal(
    'quota_exceeded',
    `More than ${MAX_BUDGETS_OF_REQUEST} budgets would count one request, which is the limit. Disable a budget, or narrow what it applies to.`,
  );
}
