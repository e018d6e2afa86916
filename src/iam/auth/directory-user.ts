/**
 * The user that a person of a directory is here: made at the first login, kept as the directory says at each later one. Who it is, is told
 * by the directory's name and the id that it never changes; an e-mail address makes nobody somebody else.
 */

import type { DirectoryPerson } from '../../directory/model.ts';
import { Fault, type Refusal } from '../../domain/errors.ts';
import { makeId, type RoleName, type TenantId, type UserId } from '../../domain/ids.ts';
import { isBuiltinRole } from '../../domain/roles.ts';
import { withoutHidden } from '../../domain/visible-text.ts';
import { insertAudit } from '../../store/audit-rows.ts';
import type { Queryable } from '../../store/queryable.ts';
import type { Transaction } from '../../store/transaction.ts';
import { holdAlone } from '../caller/queries.ts';
import { kept } from '../change/audit-username.ts';
import { findRoles, lockRoles } from '../roles/queries.ts';
import type { SettledUser } from '../sessions/queries.ts';
import { findTenant } from '../tenants/queries.ts';
import {
  type DirectoryIdentity,
  type DirectoryUser,
  findDirectoryUser,
  giveDirectoryRoles,
  holdDirectoryUser,
  insertDirectoryUser,
  isEmailTaken,
  lockDirectoryIdentity,
  noteDirectoryCheck,
  updateDirectoryUser,
} from '../users/directory-queries.ts';
import { findUser } from '../users/queries.ts';
import { takePlace } from '../users/quota.ts';
import { type UserResource, userResource } from '../users/resource.ts';
import { sortedRoles } from '../users/roles.ts';
import type { AuthParts, Provenance } from './parts.ts';

/** Why Postern turns away somebody whom the directory let in. */
export type TurnedAway =
  | 'deactivated'
  /** The directory's mapping names another tenant than the one in which the user was made: users do not move. */
  | 'tenant_changed'
  | 'unknown_tenant'
  | 'tenant_suspended'
  | Extract<Refusal['code'], 'quota_exceeded'>;

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
  return {
    email: usable ? email : null,
    name: shownName(person.displayName) ?? shownName(person.username) ?? 'Unnamed',
  };
}

function shownName(text: string | undefined): string | undefined {
  const plain = text === undefined ? undefined : withoutHidden(text.toWellFormed().replaceAll(/\p{Cc}+/gu, ' '));
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
 * @throws Refusal `quota_exceeded`: then the transaction must not be committed
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
  if (tenant.status !== 'active')
    return { kind: 'turned_away', why: 'tenant_suspended', id: undefined, tenant: tenantId };
  const id = makeId('usr', from.nowMs, parts.random(10));
  const { known, unknown } = await rolesOf(trx, tenantId, person.roles);
  await takePlace(trx, tenantId);
  await insertDirectoryUser(trx, { id, tenantId, ...profileOf(person), identity: identityOf(person), roles: known });
  const made = await resource(trx, tenantId, id);
  await audit(trx, from, 'user.create', undefined, made, person, unknown);
  await auditConflict(trx, from, undefined, made, person);
  return { kind: 'admitted', user: { id, tenantId }, changed: false };
}

async function update(
  trx: Transaction,
  user: DirectoryUser,
  person: DirectoryPerson,
  from: Provenance,
): Promise<Admission> {
  const { id, tenantId } = user;
  const why = turnedAway(user, person);
  if (why !== undefined) return { kind: 'turned_away', why, id, tenant: tenantId };
  const profile = profileOf(person);
  const changed = await change(trx, user, profile, person, from);
  return { kind: 'admitted', user: { id, tenantId }, changed };
}

/**
 * Gives a user whom the directory was asked about, without a login, the roles that the directory gives now, and ends a suspension. E-mail
 * and name wait for the next login, except that an address with a conflict is taken over once no other user has it.
 * @returns whether anything changed that replicas cache; undefined when the user is gone
 */
export async function refreshUser(
  trx: Transaction,
  person: DirectoryPerson,
  from: Provenance,
): Promise<boolean | undefined> {
  const identity = identityOf(person);
  const found = await findDirectoryUser(trx, identity);
  if (found === undefined) return undefined;
  // Roles may be taken: the user's own changes, one after the other, cannot put that off.
  await holdAlone(trx, found.tenantId, found.id);
  const user = await holdDirectoryUser(trx, identity);
  if (user === undefined) return undefined;
  const email = user.emailConflict === null ? user.email : (profileOf(person).email ?? user.emailConflict);
  return change(trx, user, { email, name: user.name }, person, from);
}

/** Returns whether anything changed that replicas cache: the roles, or the suspension. */
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
  const resumed = user.suspension !== null;
  if (!roles && !resumed && user.name === name && !(await hasNewEmail(trx, user, email))) {
    await noteDirectoryCheck(trx, id);
    return false;
  }
  const before = await resource(trx, tenantId, id);
  if (roles) await giveDirectoryRoles(trx, id, known);
  await updateDirectoryUser(trx, { id, email, name });
  const after = await resource(trx, tenantId, id);
  await audit(trx, from, resumed ? 'user.resume' : 'user.update', before, after, person, unknown);
  await auditConflict(trx, from, before, after, person);
  return roles || resumed;
}

/** Reports whether the address that the directory shows changes anything: a conflict stays as long as another user has the address. */
async function hasNewEmail(trx: Transaction, user: DirectoryUser, email: string | null): Promise<boolean> {
  if (user.emailConflict === null) return user.email !== email;
  return user.emailConflict !== email || !(await isEmailTaken(trx, email));
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

/** Reads a user whose row is held. @throws Fault when there is no such user */
export async function resource(trx: Queryable, tenant: TenantId, id: UserId): Promise<UserResource> {
  const user = await findUser(trx, tenant, id);
  if (user === undefined) throw new Fault('a user whose row is locked does not exist');
  return userResource(user);
}

/** Writes down a conflict when it begins, not at each login that finds it still there. It does not say who has the address. */
async function auditConflict(
  trx: Transaction,
  from: Provenance,
  before: UserResource | undefined,
  after: UserResource,
  person: DirectoryPerson,
): Promise<void> {
  const { email_conflict = null } = after;
  if (email_conflict === null || email_conflict === before?.email_conflict) return;
  await insertAudit(trx, {
    ...bySystem(from, after),
    action: 'user.email_conflict',
    result: 'refused',
    before: undefined,
    after: { email: email_conflict, ...inDirectory(person) },
  });
}

/** The audit row of a change that only the directory caused. */
export function bySystem(from: Provenance, { id, tenant_id }: Pick<UserResource, 'id' | 'tenant_id'>) {
  return {
    actorType: 'system',
    actorId: undefined,
    tenantId: tenant_id,
    address: from.address,
    targetType: 'user',
    targetId: id,
    requestId: from.requestId,
  } as const;
}

async function audit(
  trx: Transaction,
  from: Provenance,
  action: 'user.create' | 'user.update' | 'user.resume',
  before: UserResource | undefined,
  after: UserResource,
  person: DirectoryPerson,
  unknown: readonly RoleName[],
): Promise<void> {
  await insertAudit(trx, {
    ...bySystem(from, after),
    action,
    result: 'success',
    before,
    after: { ...after, ...inDirectory(person), ...(unknown.length === 0 ? {} : { unknown_roles: unknown.join(' ') }) },
  });
}

/** Who somebody is in the directory, for the audit. */
export function inDirectory(person: DirectoryPerson) {
  return { directory: person.directory, directory_id: person.stableId, dn: kept(person.dn.slice(0, MAX_DN_LENGTH)) };
}
