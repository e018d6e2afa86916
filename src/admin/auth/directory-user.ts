/**
 * The user that a person of a directory is here: made at the first login, kept as the directory says at each later one. Who it is, is told
 * by the directory's name and the id that it never changes; an e-mail address makes nobody somebody else.
 */

import type { DirectoryPerson } from '../../directory/model.ts';
import { Fault, type Refusal } from '../../domain/errors.ts';
import { makeId, type RoleName, type TenantId, type UserId } from '../../domain/ids.ts';
import { isBuiltinRole } from '../../domain/roles.ts';
import { insertAudit } from '../../store/queries/audit.ts';
import {
  type DirectoryIdentity,
  type DirectoryUser,
  giveDirectoryRoles,
  holdDirectoryUser,
  insertDirectoryUser,
  lockDirectoryIdentity,
  updateDirectoryUser,
} from '../../store/queries/directory-users.ts';
import { findRoles, lockRoles } from '../../store/queries/roles.ts';
import type { SettledUser } from '../../store/queries/sessions.ts';
import { findTenant } from '../../store/queries/tenants.ts';
import { findUser } from '../../store/queries/users.ts';
import type { Queryable } from '../../store/queryable.ts';
import type { Transaction } from '../../store/transaction.ts';
import { withUniqueEmail } from '../users/email.ts';
import { takePlace } from '../users/quota.ts';
import { type UserResource, userResource } from '../users/resource.ts';
import { sortedRoles } from '../users/roles.ts';
import type { AuthParts, Provenance } from './parts.ts';
import { kept } from './shown-name.ts';

/** Why Postern turns away somebody whom the directory let in. */
export type TurnedAway =
  | 'deactivated'
  /** The directory's mapping names another tenant than the one in which the user was made: users do not move. */
  | 'tenant_changed'
  | 'unknown_tenant'
  | 'tenant_suspended'
  /** The e-mail address is another user's. */
  | Extract<Refusal['code'], 'already_exists' | 'quota_exceeded'>;

export type Admission =
  | { readonly kind: 'admitted'; readonly user: Pick<DirectoryUser, 'id' | 'tenantId'>; readonly changed: boolean }
  | {
      readonly kind: 'turned_away';
      readonly why: TurnedAway;
      readonly id: UserId | undefined;
      readonly tenant: TenantId | undefined;
    };

/** What the directory says of a user, as Postern keeps it. */
interface Profile {
  readonly email: string | null;
  readonly name: string;
}

const MAX_NAME_LENGTH = 200;
const MAX_DN_LENGTH = 1024;
/** The addresses that the API takes: ASCII, so that lower case is the same everywhere. */
const EMAIL = /^[!-?A-~]+@[!-?A-~]+$/;
const MAX_EMAIL_LENGTH = 254;

function profileOf(person: DirectoryPerson): Profile {
  const email = person.email?.trim().toLowerCase();
  const usable = email !== undefined && email.length <= MAX_EMAIL_LENGTH && EMAIL.test(email);
  return { email: usable ? email : null, name: shownName(person.displayName) ?? shownName(person.username) ?? 'Unnamed' };
}

function shownName(text: string | undefined): string | undefined {
  const plain = text?.toWellFormed().replaceAll(/\p{Cc}+/gu, ' ');
  const name = plain?.trim().slice(0, MAX_NAME_LENGTH).toWellFormed().trim();
  return name === '' ? undefined : name;
}

/** Whom a directory's look-up is for. */
export function identityOf({ directory, stableId }: DirectoryPerson): DirectoryIdentity {
  return { directory, stableId };
}

/** The user for whom nothing has to be written when this person comes in. */
export function settledUser(person: DirectoryPerson): SettledUser {
  const { tenantId, roles } = person;
  return { identity: identityOf(person), tenantId, ...profileOf(person), roles: sortedRoles(roles) };
}

/** For a user who is there already. */
function turnedAway(user: DirectoryUser, person: DirectoryPerson): TurnedAway | undefined {
  if (!user.active) return 'deactivated';
  if (user.tenantId !== person.tenantId) return 'tenant_changed';
  return user.tenantActive ? undefined : 'tenant_suspended';
}

/**
 * Makes or updates the user, with an audit row of what changed. The user's row is held from then on.
 * @throws Refusal `already_exists` or `quota_exceeded`: then the transaction must not be committed
 */
export async function admit(
  trx: Transaction,
  parts: Pick<AuthParts, 'random'>,
  person: DirectoryPerson,
  from: Provenance,
): Promise<Admission> {
  const identity = identityOf(person);
  const user = await holdDirectoryUser(trx, identity);
  if (user !== undefined) return update(trx, user, person, from);
  await lockDirectoryIdentity(trx, identity);
  const madeMeanwhile = await holdDirectoryUser(trx, identity);
  return madeMeanwhile === undefined ? make(trx, parts, person, from) : update(trx, madeMeanwhile, person, from);
}

async function make(
  trx: Transaction,
  parts: Pick<AuthParts, 'random'>,
  person: DirectoryPerson,
  from: Provenance,
): Promise<Admission> {
  const { tenantId } = person;
  const tenant = await findTenant(trx, tenantId);
  if (tenant === undefined) return { kind: 'turned_away', why: 'unknown_tenant', id: undefined, tenant: undefined };
  if (tenant.status !== 'active') return { kind: 'turned_away', why: 'tenant_suspended', id: undefined, tenant: tenantId };
  const id = makeId('usr', from.nowMs, parts.random(10));
  const { known, unknown } = await rolesOf(trx, tenantId, person.roles);
  await takePlace(trx, tenantId);
  await withUniqueEmail(
    insertDirectoryUser(trx, { id, tenantId, ...profileOf(person), identity: identityOf(person), roles: known }),
  );
  await audit(trx, from, 'user.create', undefined, await resource(trx, tenantId, id), person, unknown);
  return { kind: 'admitted', user: { id, tenantId }, changed: false };
}

async function update(trx: Transaction, user: DirectoryUser, person: DirectoryPerson, from: Provenance): Promise<Admission> {
  const { id, tenantId } = user;
  const why = turnedAway(user, person);
  if (why !== undefined) return { kind: 'turned_away', why, id, tenant: tenantId };
  const profile = profileOf(person);
  const changed = await change(trx, user, profile, person, from);
  return { kind: 'admitted', user: { id, tenantId }, changed };
}

/**
 * Gives a user whose session is refreshed the roles that the directory gives now; e-mail and name wait for the next login.
 * @returns whether anything changed; undefined when the user is gone
 */
export async function refreshRoles(trx: Transaction, person: DirectoryPerson, from: Provenance): Promise<boolean | undefined> {
  const user = await holdDirectoryUser(trx, identityOf(person));
  return user === undefined ? undefined : change(trx, user, user, person, from);
}

/** Whether the roles changed, which is all that a replica caches of it. */
async function change(
  trx: Transaction,
  user: DirectoryUser,
  { email, name }: Profile,
  person: DirectoryPerson,
  from: Provenance,
): Promise<boolean> {
  const { id, tenantId } = user;
  const { known, unknown } = await rolesOf(trx, tenantId, person.roles);
  const roles = !sameRoles(user.roles, known);
  if (!roles && user.email === email && user.name === name) return false;
  const before = await resource(trx, tenantId, id);
  if (roles) await giveDirectoryRoles(trx, id, known);
  await withUniqueEmail(updateDirectoryUser(trx, { id, tenantId, email, name }));
  await audit(trx, from, 'user.update', before, await resource(trx, tenantId, id), person, unknown);
  return roles;
}

/** The mapping may name roles that the tenant does not have; nobody is given a name that others may fill later. */
async function rolesOf(
  trx: Transaction,
  tenant: TenantId,
  names: readonly RoleName[],
): Promise<{ readonly known: readonly RoleName[]; readonly unknown: readonly RoleName[] }> {
  const custom = names.filter((name) => !isBuiltinRole(name));
  if (custom.length === 0) return { known: names, unknown: [] };
  await lockRoles(trx, tenant, custom, 'share');
  const found = new Set((await findRoles(trx, tenant, custom)).map((role) => role.name));
  const isKnown = (name: RoleName): boolean => isBuiltinRole(name) || found.has(name);
  return { known: names.filter(isKnown), unknown: names.filter((name) => !isKnown(name)) };
}

function sameRoles(one: readonly RoleName[], other: readonly RoleName[]): boolean {
  const names = new Set(one);
  return names.size === new Set(other).size && other.every((name) => names.has(name));
}

async function resource(trx: Queryable, tenant: TenantId, id: UserId): Promise<UserResource> {
  const user = await findUser(trx, tenant, id);
  if (user === undefined) throw new Fault('a user that is held is not there');
  return userResource(user);
}

/** Nobody asked for it but the directory, so the system did it. */
async function audit(
  trx: Transaction,
  from: Provenance,
  action: 'user.create' | 'user.update',
  before: UserResource | undefined,
  after: UserResource,
  person: DirectoryPerson,
  unknown: readonly RoleName[],
): Promise<void> {
  await insertAudit(trx, {
    actorType: 'system',
    actorId: undefined,
    tenantId: after.tenant_id,
    address: from.address,
    action,
    targetType: 'user',
    targetId: after.id,
    result: 'success',
    before,
    after: { ...after, ...inDirectory(person), ...(unknown.length === 0 ? {} : { unknown_roles: unknown.join(' ') }) },
    requestId: from.requestId,
  });
}

/** Who somebody is in the directory, for the audit. */
export function inDirectory(person: DirectoryPerson) {
  return { directory: person.directory, directory_id: person.stableId, dn: kept(person.dn.slice(0, MAX_DN_LENGTH)) };
}
