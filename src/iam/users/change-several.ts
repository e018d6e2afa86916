/** Deactivates several users, or adds or removes one of their roles, or reports which users it would change. */

import type { Static } from 'typebox';
import { Refusal } from '../../domain/errors.ts';
import { parseId, parseRoleName, type RoleName, type UserId } from '../../domain/ids.ts';
import { ADMIN, isBuiltinRole } from '../../domain/roles.ts';
import type { Callers } from '../../http/endpoint.ts';
import type { Transaction } from '../../store/transaction.ts';
import { applyingBudgets } from '../budgets/applying.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { mayActOnUser, mayGiveRoles } from '../caller/escalation.ts';
import type { HeldCaller } from '../caller/hold-caller.ts';
import { invalidField, refusalIn } from '../caller/refusals.ts';
import { type AuditedTarget, change, refusedTargets } from '../change/change.ts';
import { enabledAllowPolicies } from '../policies/queries.ts';
import { lockRoles } from '../roles/lock-queries.ts';
import { endSessionsOfUsers } from '../sessions/queries.ts';
import { tenantsOf } from '../tenants/queries.ts';
import { localAdministrators, lockAdministrators } from './administrator-queries.ts';
import { refuseWithoutAdministrator, sortedRoles } from './checks.ts';
import { rolesOfUser, type UserRow } from './entity.ts';
import { findUsers, listUserIds, type PendingChange } from './list-queries.ts';
import { discardPasswordSetups } from './password-queries.ts';
import { giveRole, setUserStatus, takeRole } from './queries.ts';
import { MAX_CHANGED, type severalUsers, type UserChangesReport } from './several-schemas.ts';

type Request = Static<typeof severalUsers>;
type Report = Static<typeof UserChangesReport>;
type Outcome = Report['data'][number];

/** The largest number of roles that a request may give to one user by hand. */
const MAX_ROLES = 100;

/** @throws Refusal `invalid_field`; `escalation` for a role that the caller must not give */
export async function changeSeveralUsers(
  parts: AdminParts,
  caller: Caller,
  request: Request,
  dryRun: boolean,
): Promise<Report> {
  const pending = pendingOf(request);
  if ((request.ids === undefined) === (request.filter === undefined)) {
    throw invalidField('/ids', 'Give ids or a filter, not both.');
  }
  const { requested, ids, hasMore } = await chosenUsers(parts, caller, request, pending);
  const action = pending.action === 'deactivate' ? 'user.deactivate' : 'user.update';
  return change(parts, caller, { action, users: dryRun ? [] : ids }, async ({ trx, caller, audit }) => {
    if (pending.action === 'add_role') await mayAdd(trx, caller, pending.role);
    // The users are locked now. Any of them may have changed since the filter was evaluated.
    const found = await findUsers(trx, caller.tenant, ids, request.filter === undefined ? {} : lowered(request.filter));
    const users = new Map<string, UserRow>(found.map((user) => [user.id, user]));
    const due = found.filter((user) => isDue(user, pending));
    const rejected = await refusalsOf(trx, caller, due, pending);
    const chosen = due.filter((user) => !rejected.has(user.id));
    const outcomeOf = (text: string): Outcome => {
      const user = users.get(text);
      if (user === undefined) return { id: text, outcome: 'not_found' };
      const shown = { name: user.name, email: user.email };
      const refusal = rejected.get(user.id);
      if (refusal !== undefined) {
        return { id: user.id, outcome: 'rejected', code: refusal.code, detail: refusal.message, user: shown };
      }
      if (!isDue(user, pending)) return { id: user.id, outcome: 'unchanged', user: shown };
      return { id: user.id, outcome: dryRun ? 'would_change' : 'changed', user: shown };
    };
    if (!dryRun) await write(trx, caller, chosen, pending);
    audit.each = dryRun
      ? []
      : [...chosen.map((user) => changedRow(user, pending)), ...refusedTargets('user', rejected)];
    const listed = request.filter === undefined ? requested : requested.filter((id) => users.has(id));
    return { dry_run: dryRun, changed: chosen.length, has_more: hasMore, data: listed.map(outcomeOf) };
  });
}

/**
 * Changes users by id in the tenants that they belong to, for a platform administrator that names no tenant. Each tenant
 * has a change of its own. The users of a tenant without the role are rejected, if there are users of another one.
 * @throws Refusal as `changeSeveralUsers`
 */
export async function changeUsersOfTenants(
  parts: AdminParts,
  { caller, callerIn }: Pick<Callers, 'caller' | 'callerIn'>,
  request: Request & { readonly ids: readonly string[] },
  dryRun: boolean,
): Promise<Report> {
  const ids = [...new Set(request.ids)];
  const homes = await tenantsOf(
    parts.db.knex,
    'users',
    ids.map((text) => parseId('usr', text)).filter((id) => id !== undefined),
  );
  // The caller's own user is in the last group: without its session or its role, it could not change the other users.
  const isOwn = (group: readonly string[]) => Number(group.includes(caller.principal.id));
  const groups = [...Map.groupBy(ids, (id) => homes.get(id) ?? caller.tenant)].toSorted(
    ([, left], [, right]) => isOwn(left) - isOwn(right),
  );
  const outcomes = new Map<string, Outcome>();
  let changed = 0;
  for (const [tenant, own] of groups) {
    try {
      const there = tenant === caller.tenant ? caller : await callerIn(tenant);
      const part = await changeSeveralUsers(parts, there, { ...request, ids: own }, dryRun);
      for (const outcome of part.data) outcomes.set(outcome.id, outcome);
      changed += part.changed;
    } catch (cause) {
      if (groups.length === 1 || !(cause instanceof Refusal) || cause.code !== 'invalid_field') throw cause;
      const rejected = { outcome: 'rejected', code: cause.code, detail: cause.message } as const;
      for (const id of own) outcomes.set(id, homes.has(id) ? { id, ...rejected } : { id, outcome: 'not_found' });
    }
  }
  return { dry_run: dryRun, changed, has_more: false, data: ids.flatMap((id) => outcomes.get(id) ?? []) };
}

/** Locks the role, so that it is not deleted while it is given. @throws Refusal `invalid_field`, `escalation` */
async function mayAdd(trx: Transaction, caller: HeldCaller, role: RoleName): Promise<void> {
  if (!isBuiltinRole(role) && !(await lockRoles(trx, caller.tenant, [role], 'share')).has(role)) throw unknownRole();
  await mayGiveRoles(trx, caller, [role]);
}

function unknownRole(): Refusal {
  return invalidField('/role', 'This role does not exist in the tenant.');
}

/** @throws Refusal `invalid_field` */
function pendingOf({ action, role: text }: Request): PendingChange {
  if (action === 'deactivate') {
    if (text !== undefined) throw invalidField('/role', 'A deactivation has no role.');
    return { action };
  }
  if (text === undefined) throw invalidField('/role', 'Name the role.');
  const role = parseRoleName(text);
  if (role === undefined) throw unknownRole();
  return { action, role };
}

interface ChosenUsers {
  /** The texts that the response lists. */
  readonly requested: readonly string[];
  /** The requested texts that are ids, each once. */
  readonly ids: readonly UserId[];
  readonly hasMore: boolean;
}

async function chosenUsers(
  parts: AdminParts,
  caller: Caller,
  { ids, filter }: Request,
  pending: PendingChange,
): Promise<ChosenUsers> {
  if (ids !== undefined) {
    const requested = [...new Set(ids)];
    const users = requested.map((text) => parseId('usr', text)).filter((id) => id !== undefined);
    return { requested, ids: users, hasMore: false };
  }
  // One more than a request takes shows whether there are more, and another one may be the caller.
  const matching = await listUserIds(
    parts.db.knex,
    caller.tenant,
    { ...lowered(filter ?? {}), pending },
    MAX_CHANGED + 2,
  );
  const { principal } = caller;
  const self = principal.kind === 'user' ? principal.id : principal.owner?.id;
  const others = matching.filter((id) => id !== self);
  const found = others.slice(0, MAX_CHANGED);
  return { requested: found, ids: found, hasMore: others.length > MAX_CHANGED };
}

type UserFilterRequest = NonNullable<Request['filter']>;

function lowered(filter: UserFilterRequest): UserFilterRequest {
  return filter.email === undefined ? filter : { ...filter, email: filter.email.toLowerCase() };
}

function isDue(user: UserRow, { action, role }: PendingChange): boolean {
  if (action === 'deactivate') return user.status === 'active';
  return user.roles.includes(role) === (action === 'remove_role');
}

/** The users that the caller must not change, with the reason of each. */
async function refusalsOf(
  trx: Transaction,
  caller: HeldCaller,
  users: readonly UserRow[],
  pending: PendingChange,
): Promise<ReadonlyMap<UserId, Refusal>> {
  const allowPolicies = await enabledAllowPolicies(trx, caller.tenant);
  const refuseLastAdmin = await lastAdminCheck(trx, users, pending);
  // Users with the same roles have the same permissions, so one check is enough for them.
  const known = new Map<string, Refusal | undefined>();
  const refuseManyBudgets = await budgetCheck(trx, caller, pending);
  const refusals = new Map<UserId, Refusal>();
  for (const user of users) {
    const isSelf = caller.principal.id === user.id;
    const rights = JSON.stringify([isSelf, rolesOfUser(user)]);
    if (!known.has(rights)) known.set(rights, await refusalIn(() => mayActOnUser(trx, caller, user, allowPolicies)));
    const refusal =
      known.get(rights) ??
      tooManyRoles(user, pending) ??
      (await refuseLastAdmin(user)) ??
      (await refuseManyBudgets(user));
    if (refusal !== undefined) refusals.set(user.id, refusal);
  }
  return refusals;
}

async function budgetCheck(
  trx: Transaction,
  { tenant }: HeldCaller,
  { action, role }: PendingChange,
): Promise<(user: UserRow) => Promise<Refusal | undefined>> {
  if (action !== 'add_role') return async () => undefined;
  const budgets = await applyingBudgets(trx, tenant);
  return ({ id }) => refusalIn(() => budgets.refuseManyOfUser(id, [role]));
}

function tooManyRoles({ roles }: UserRow, { action }: PendingChange): Refusal | undefined {
  if (action !== 'add_role' || roles.length < MAX_ROLES) return undefined;
  return new Refusal('quota_exceeded', `The user already has ${MAX_ROLES} roles, which is the limit.`);
}

/** Each user that passes counts as gone for the next one, so that no request removes the last administrator. */
async function lastAdminCheck(
  trx: Transaction,
  users: readonly UserRow[],
  { action, role }: PendingChange,
): Promise<(user: UserRow) => Promise<Refusal | undefined>> {
  const endsAdministrators = action === 'deactivate' || (action === 'remove_role' && role === ADMIN);
  if (!endsAdministrators || !users.some((user) => user.roles.includes(ADMIN))) return async () => undefined;
  await lockAdministrators(trx);
  let left = await localAdministrators(trx);
  return async (user) => {
    const others = left.filter(({ id }) => id !== user.id);
    const refusal = await refusalIn(() => refuseWithoutAdministrator(left, others));
    if (refusal === undefined) left = others;
    return refusal;
  };
}

async function write(
  trx: Transaction,
  { tenant }: HeldCaller,
  users: readonly UserRow[],
  { action, role }: PendingChange,
): Promise<void> {
  const ids = users.map(({ id }) => id);
  if (ids.length === 0) return;
  switch (action) {
    case 'deactivate':
      await setUserStatus(trx, tenant, ids, 'deactivated');
      await endSessionsOfUsers(trx, ids);
      return discardPasswordSetups(trx, ids);
    case 'add_role':
      await giveRole(trx, ids, role);
      // The maker of a token may not be allowed to create one for a user with these roles.
      return discardPasswordSetups(trx, ids);
    case 'remove_role':
      return takeRole(trx, ids, role);
    default:
      return action satisfies never;
  }
}

function changedRow(user: UserRow, pending: PendingChange): AuditedTarget {
  const target = { type: 'user', id: user.id } as const;
  if (pending.action === 'deactivate') {
    return { target, result: 'success', before: { status: user.status }, after: { status: 'deactivated' } };
  }
  return {
    target,
    result: 'success',
    before: { roles: user.roles },
    after: { roles: rolesAfter(user.roles, pending.action, pending.role) },
  };
}

function rolesAfter(
  roles: readonly RoleName[],
  action: 'add_role' | 'remove_role',
  role: RoleName,
): readonly RoleName[] {
  return action === 'add_role' ? sortedRoles([...roles, role]) : roles.filter((one) => one !== role);
}
