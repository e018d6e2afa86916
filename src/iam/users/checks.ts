/**
 * The checks of new or changed users: a usable and unique email address, existing roles, a seat in the tenant, and an
 * administrator of the platform that can log in.
 */

import { Refusal } from '../../domain/errors.ts';
import { parseRoleName, type RoleName, type TenantId } from '../../domain/ids.ts';
import { isBuiltinRole } from '../../domain/roles.ts';
import { compareTexts } from '../../domain/text.ts';
import { withoutHidden } from '../../domain/visible-text.ts';
import { brokenConstraint } from '../../store/faults.ts';
import type { Transaction } from '../../store/transaction.ts';
import { lastAdminRefusal, tenantGone, throwIfInvalid } from '../caller/refusals.ts';
import { lockRoles } from '../roles/lock-queries.ts';
import { lockPlaces, shareTenant } from '../tenants/lock-queries.ts';
import type { Administrator } from './administrator-queries.ts';
import { countActiveUsers } from './queries.ts';

/**
 * Returns the stored form of an email address, which is unique across the platform. The schema has accepted ASCII only.
 */
export function canonicalEmail(email: string): string {
  return email.toLowerCase();
}

/** Runs a statement that fails if another user of any tenant has the email address. @throws Refusal `already_exists` */
export async function withUniqueEmail<T>(statement: Promise<T>): Promise<T> {
  try {
    return await statement;
  } catch (error) {
    if (brokenConstraint(error) === 'users_email_key') {
      throw new Refusal('already_exists', 'A user with this email address already exists.', { param: 'email' });
    }
    throw error;
  }
}

/** Returns each role once, in the order in which the database returns them. */
export function sortedRoles(roles: readonly RoleName[]): readonly RoleName[] {
  return [...new Set(roles)].sort(compareTexts);
}

/**
 * Reads role names of a tenant and locks those roles, so that no role is changed or deleted while it is given to a
 * user.
 * @param path JSON pointer of the list
 * @throws Refusal `invalid_field` that names every unknown role
 */
export async function knownRoles(
  trx: Transaction,
  tenant: TenantId,
  names: readonly string[],
  path: string,
): Promise<readonly RoleName[]> {
  const parsed = names.map(parseRoleName);
  const custom = parsed.filter((name) => name !== undefined).filter((name) => !isBuiltinRole(name));
  const found = await lockRoles(trx, tenant, custom, 'share');
  const known = parsed.map((name) =>
    name !== undefined && (isBuiltinRole(name) || found.has(name)) ? name : undefined,
  );
  throwIfInvalid(
    known.flatMap((name, i) =>
      name === undefined ? [{ path: `${path}/${i}`, message: 'This role does not exist in the tenant.' }] : [],
    ),
  );
  return [...new Set(known.filter((name) => name !== undefined))];
}

/**
 * Separates the mapped roles that the tenant has from the others. A user must not get a role that does not exist,
 * because a role with other permissions may get that name later.
 */
export async function partitionKnownRoles(
  trx: Transaction,
  tenant: TenantId,
  names: readonly RoleName[],
): Promise<{ readonly known: readonly RoleName[]; readonly unknown: readonly RoleName[] }> {
  const custom = names.filter((name) => !isBuiltinRole(name));
  if (custom.length === 0) return { known: names, unknown: [] };
  const found = await lockRoles(trx, tenant, custom, 'share');
  const isKnown = (name: RoleName): boolean => isBuiltinRole(name) || found.has(name);
  return { known: names.filter(isKnown), unknown: names.filter((name) => !isKnown(name)) };
}

/**
 * Reserves one of the tenant's `max_users` for another active user, until the transaction ends. It locks the tenant, so
 * that the limit does not change. Reservations in a tenant with a limit run one after the other, so that of two
 * concurrent callers one is rejected.
 * @throws Refusal `quota_exceeded`, or `tenant_mismatch` if the tenant is deleted
 */
export async function reserveSeat(trx: Transaction, tenant: TenantId): Promise<void> {
  const held = await shareTenant(trx, tenant);
  if (held === undefined) throw tenantGone();
  const limit = held.quotas.max_users;
  if (limit === undefined) return;
  await lockPlaces(trx, tenant);
  if ((await countActiveUsers(trx, tenant)) < limit) return;
  throw new Refusal(
    'quota_exceeded',
    `The tenant already has ${limit} active users, which is its limit. Deactivate or delete a user first.`,
  );
}

const MAX_NAME_LENGTH = 200;
/** The addresses that the API accepts: ASCII, so that lower case is the same in every locale. */
const EMAIL = /^[!-?A-~]+@[!-?A-~]+$/;
const MAX_EMAIL_LENGTH = 254;

/** Returns the address of a directory or an issuer in its stored form; undefined for a text that the API would not accept. */
export function usableEmail(text: string | undefined): string | undefined {
  const email = text?.trim().toLowerCase();
  return email !== undefined && email.length <= MAX_EMAIL_LENGTH && EMAIL.test(email) ? email : undefined;
}

/** Returns the name without control and hidden characters, at most 200 characters long; undefined if none remain. */
export function displayName(text: string | undefined): string | undefined {
  const plain = text === undefined ? undefined : withoutHidden(text.toWellFormed().replaceAll(/\p{Cc}+/gu, ' '));
  const name = plain?.trim().slice(0, MAX_NAME_LENGTH).toWellFormed().trim();
  return name === '' ? undefined : name;
}

type Counted = Pick<Administrator, 'tenantActive' | 'hasPassword'>;

/**
 * Compares the administrators before and after a change. Administrators of suspended tenants do not count. If there was
 * an administrator with a password, administrators without one do not count either: they cannot log in, and their
 * one-time tokens are rejected after the removal of the tokens' makers.
 * @throws Refusal `last_admin` when the change removes the last one
 */
export function refuseWithoutAdministrator(before: readonly Counted[], after: readonly Counted[]): void {
  if (before.some(isReachable) && !after.some(isReachable)) throw lastAdminRefusal();
  if (before.some(canLogIn) && !after.some(canLogIn)) throw lastAdminRefusal();
}

function isReachable({ tenantActive }: Counted): boolean {
  return tenantActive;
}

function canLogIn({ tenantActive, hasPassword }: Counted): boolean {
  return tenantActive && hasPassword;
}
