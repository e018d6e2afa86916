/**
 * The first answer for an administrator: the tokens of the month, the latest denials and changes, and what needs care.
 * The parts are those of other endpoints, each with the permission of its own. One request in place of twenty keeps the
 * overview fast behind a slow connection.
 */

import { present } from '../../domain/objects.ts';
import { priceListDates } from '../../store/price-lists.ts';
import { listKeysPage } from '../api-keys/read.ts';
import { listChanges } from '../audit/read.ts';
import { isAuthorized, type ManagementPermission } from '../caller/authorize.ts';
import { type AdminParts, type Caller, selfId } from '../caller/caller.ts';
import { listRecentPage } from '../decisions/recent.ts';
import { MAX_COUNTED } from '../list/list.ts';
import type { CatalogParts } from '../permissions/catalog.ts';
import type { Noticed } from '../permissions/notices.ts';
import { listPoliciesPage } from '../policies/read.ts';
import { listRolesPage } from '../roles/read.ts';
import { getLimits } from '../usage/limits.ts';
import type { MeteringParts } from '../usage/parts.ts';
import { momentOf, spanOfPeriod } from '../usage/period.ts';
import { unpricedModels } from '../usage/queries.ts';
import type { UserResource } from '../users/entity.ts';
import { listUsersPage } from '../users/find.ts';
import { EXAMINED_KEYS, type NoticedResource, type OverviewReport, SHOWN, SOON_DAYS } from './schemas.ts';

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

const SUSPENSIONS = ['removed', 'disabled', 'expired', 'tenant_changed', 'several_names', 'several_ids'] as const;

export type OverviewParts = AdminParts & CatalogParts & MeteringParts;

/** Reads one part after the other, so that a request takes one connection to the database. */
export async function readOverview(parts: OverviewParts, caller: Caller): Promise<OverviewReport> {
  const may = (permission: ManagementPermission): boolean => isAuthorized(caller, permission);
  const usage = may('usage:read') ? await getLimits(parts, caller, caller.tenant) : undefined;
  const denials = may('audit:read')
    ? await listRecentPage(parts, caller, { outcome: 'deny', limit: SHOWN.denials, include: 'names' })
    : undefined;
  const changes = may('audit:read') ? await listChanges(parts, caller, SHOWN.changes) : undefined;
  const users = may('admin:users') ? await usersInCare(parts, caller) : undefined;
  return {
    ...(usage === undefined
      ? {}
      : { monthly_tokens: usage.monthly_tokens, unpriced_models: await unpricedOf(parts, caller) }),
    ...present({ denials: denials && [...denials.data], changes: changes && [...changes], users }),
    notices: await noticesOf(parts, caller, may),
    expiring_keys: await expiringKeys(parts, caller),
  };
}

async function unpricedOf(
  { db: { knex } }: OverviewParts,
  caller: Caller,
): Promise<NonNullable<OverviewReport['unpriced_models']>> {
  if ((await priceListDates(knex, caller.nowMs)).length === 0) return [];
  const { period } = momentOf(caller.snapshot.effective?.settings.timezone, caller.nowMs);
  const scope = { kind: 'one', tenant: caller.tenant } as const;
  const found = await unpricedModels(knex, scope, spanOfPeriod(period), SHOWN.models);
  return found.map(({ member: model, requests }) => ({ model, requests }));
}

async function usersInCare(parts: OverviewParts, caller: Caller): Promise<OverviewReport['users']> {
  const query = { status: 'active', limit: SHOWN.users } as const;
  const locked = await listUsersPage(parts, caller, { ...query, locked: true });
  const conflicts = await listUsersPage(parts, caller, { ...query, email_conflict: true });
  const suspended: UserResource[] = [];
  for (const status of SUSPENSIONS) {
    if (suspended.length >= SHOWN.users) break;
    suspended.push(...(await listUsersPage(parts, caller, { ...query, directory_status: status })).data);
  }
  return {
    locked: [...locked.data],
    email_conflicts: [...conflicts.data],
    suspended: suspended.slice(0, SHOWN.users),
  };
}

async function noticesOf(
  parts: OverviewParts,
  caller: Caller,
  may: (permission: ManagementPermission) => boolean,
): Promise<OverviewReport['notices']> {
  const none = { data: [], has_more: false };
  const query = { notices: true, limit: SHOWN.notices } as const;
  const policies = may('admin:policies') ? await listPoliciesPage(parts, caller, { ...query, enabled: true }) : none;
  const roles = may('admin:roles') ? await listRolesPage(parts, caller, { ...query, builtin: false }) : none;
  const keys = may('admin:keys') ? await listKeysPage(parts, caller, { status: 'active', limit: EXAMINED_KEYS }) : none;
  const found = [
    ...policies.data.flatMap((policy) => noticed('policy', policy.name, policy.name, policy)),
    ...roles.data.flatMap((role) => noticed('role', role.name, role.name, role)),
    ...keys.data.flatMap((key) => noticed('key', key.id, key.name ?? key.description, key)),
  ];
  return {
    data: found.slice(0, SHOWN.notices),
    has_more: found.length > SHOWN.notices || policies.has_more || roles.has_more,
    all_keys: !keys.has_more,
  };
}

function noticed(
  kind: NoticedResource['kind'],
  id: string,
  name: string,
  { notices = [] }: Noticed,
): readonly NoticedResource[] {
  return notices.map((notice) => ({ kind, id, name, notice }));
}

/** A caller without `admin:keys` sees its own keys, if it may act on itself, and otherwise none. */
async function expiringKeys(parts: OverviewParts, caller: Caller): Promise<OverviewReport['expiring_keys']> {
  const before = new Date(Math.ceil((caller.nowMs + SOON_DAYS * DAY_MS) / HOUR_MS) * HOUR_MS);
  const self = selfId(caller) !== undefined;
  if (!isAuthorized(caller, 'admin:keys', { self })) return { before, total: 0, data: [] };
  const keys = await listKeysPage(parts, caller, {
    status: 'active',
    expires_before: before.toISOString(),
    sort: 'expires_at',
    limit: SHOWN.keys,
    count: true,
  });
  return { before, total: keys.total ?? MAX_COUNTED, data: keys.data };
}
