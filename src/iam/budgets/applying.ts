/**
 * The number of budgets that count one request. Each write that may add one for some caller checks it in its
 * transaction: those of budgets, of keys and of users' roles.
 *
 * Roles that a directory or an issuer assigns at a login are not checked, because a login must not fail by it. Then
 * more budgets apply.
 */

import { createHash } from 'node:crypto';
import { pauses } from '../../concurrency/pauses.ts';
import { budgetsOf, compileBudgets, MAX_BUDGETS_OF_REQUEST } from '../../decision/budgets.ts';
import { endsMayMeet, endsOf } from '../../decision/globs.ts';
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
/** The largest number of pairs of a pattern and a glob that are compared for one set. */
const MAX_PAIRS = 20_000;
/** The largest number of budgets, patterns and pairs that one write compares for all sets together. */
const MAX_COMPARED = 5_000_000;

/**
 * For a written budget that is in force.
 * @throws Refusal `quota_exceeded`
 */
export async function refuseManyOfRequest(trx: Queryable, tenant: TenantId): Promise<void> {
  const all = await recordsOf(trx, tenant);
  if (all === undefined) return;
  const ofTenant = all.filter(({ appliesTo }) => 'tenant' in appliesTo);
  const sets = new ComparedSets();
  await sets.refuseMany(ofTenant);
  const found = await selectionsOfCallers(trx, tenant, MAX_BUDGETS_OF_REQUEST - ofTenant.length, MAX_SETS + 1);
  if (found.length > MAX_SETS) throw tooMany();
  const byId = new Map<string, BudgetRecord>(all.map((one) => [one.id, one]));
  for (const ids of found) await sets.refuseMany([...ofTenant, ...ids.flatMap((id) => byId.get(id) ?? [])]);
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
  const sets = new ComparedSets();
  return {
    async refuseManyOfKey({ id, user_id, metadata }) {
      const roles = user_id === null ? [] : (await callersOfUser(trx, tenant, user_id)).roles;
      await sets.refuseMany(budgetsOf(index, { keyId: id, userId: user_id ?? undefined, roles, metadata }));
    },
    async refuseManyOfUser(user, added = []) {
      const { roles: stored, keys } = await callersOfUser(trx, tenant, user);
      const roles = [...new Set([...stored, ...added])];
      await sets.refuseMany(budgetsOf(index, { keyId: undefined, userId: user, roles, metadata: undefined }));
      for (const { id, metadata } of keys)
        await sets.refuseMany(budgetsOf(index, { keyId: id, userId: user, roles, metadata }));
    },
  };
}

/** Returns the budgets in force, or undefined if they are so few that no request can have too many. */
async function recordsOf(trx: Queryable, tenant: TenantId): Promise<readonly BudgetRecord[] | undefined> {
  const { enabled } = await sizeOfBudgets(trx, tenant);
  return enabled <= MAX_BUDGETS_OF_REQUEST ? undefined : (await enabledBudgets(trx, tenant)).map(budgetRecord);
}

/** The sets of budgets that one write compares: each once, with other work between them, and a bounded number. */
class ComparedSets {
  readonly #passed = new Set<string>();
  #left = MAX_COMPARED;
  readonly #pause = pauses();

  /** @param budgets those that count the requests of one caller. @throws Refusal `quota_exceeded` */
  async refuseMany(budgets: readonly BudgetRecord[]): Promise<void> {
    await this.#pause();
    if (budgets.length <= MAX_BUDGETS_OF_REQUEST) return;
    const hash = createHash('sha256');
    for (const { id } of budgets) hash.update(id);
    const set = hash.digest('base64');
    if (this.#passed.has(set)) return;
    const { most, compared } = mostOfRequest(budgets);
    this.#left -= budgets.length + compared;
    if (most > MAX_BUDGETS_OF_REQUEST || this.#left < 0) throw tooMany();
    this.#passed.add(set);
  }
}

interface Most {
  /** The largest number of budgets that count one request of a caller, or more. */
  readonly most: number;
  /** The patterns, and the pairs of them, that were compared. */
  readonly compared: number;
}

/**
 * Budgets with globs count together with a name or glob that their globs may meet. Many globs count together with every
 * name.
 */
function mostOfRequest(budgets: readonly Pick<BudgetRecord, 'models'>[]): Most {
  const patterns = budgets.flatMap(({ models = [] }) => models);
  const isMany = new Set(patterns).size * patterns.filter(isGlob).length > MAX_PAIRS;
  const isOfAll = ({ models }: Pick<BudgetRecord, 'models'>): boolean =>
    models === undefined || (isMany && models.some(isGlob));
  const others = budgets.filter((budget) => !isOfAll(budget));
  let most = 0;
  const ofName = Map.groupBy(
    others.flatMap((budget) => (budget.models ?? []).map((name) => ({ name, budget }))),
    ({ name }) => name,
  );
  const ofGlobs = [...ofName].flatMap(([name, entries]) => (isGlob(name) ? [{ ends: endsOf(name), entries }] : []));
  for (const [name, found] of ofName) {
    const ends = endsOf(name);
    const met = ofGlobs.filter((glob) => endsMayMeet(glob.ends, ends)).flatMap(({ entries }) => entries);
    most = Math.max(most, new Set([...found, ...met].map(({ budget }) => budget)).size);
  }
  return { most: budgets.length - others.length + most, compared: patterns.length + ofName.size * ofGlobs.length };
}

function isGlob(name: string): boolean {
  return name.includes('*');
}

function tooMany(): Refusal {
  return new Refusal(
    'quota_exceeded',
    `More than ${MAX_BUDGETS_OF_REQUEST} budgets would count one request, which is the limit. Disable a budget, or narrow what it applies to.`,
  );
}
