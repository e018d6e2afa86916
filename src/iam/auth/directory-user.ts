/**
 * Provisions the user of a directory's person: the first login creates the user, and each later login updates it. The
 * directory's name and the person's stable id identify the user. An email address identifies no user.
 */

import type { DirectoryPerson } from '../../directory/model.ts';
import { Fault, type Refusal } from '../../domain/errors.ts';
import { makeId, type RoleName, type TenantId, type UserId } from '../../domain/ids.ts';
import { insertAudit } from '../../store/audit-rows.ts';
import type { Queryable } from '../../store/queryable.ts';
import type { Transaction } from '../../store/transaction.ts';
import { holdAlone } from '../caller/queries.ts';
import { toStorableText } from '../change/audit-row.ts';
import type { UpToDateUser } from '../sessions/queries.ts';
import { findTenant } from '../tenants/queries.ts';
import { displayName, partitionKnownRoles, reserveSeat, sortedRoles, usableEmail } from '../users/checks.ts';
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
import { type UserResource, userResource } from '../users/entity.ts';
import { findUser } from '../users/queries.ts';
import type { AuthParts, Provenance } from './parts.ts';

/** The reason why Postern rejects a person whose login the directory accepted. */
export type ProvisioningRejection =
  | 'deactivated'
  /** The directory's mapping names another tenant than the user's. A user never changes its tenant. */
  | 'tenant_changed'
  | 'unknown_tenant'
  | 'tenant_suspended'
  | Extract<Refusal['code'], 'quota_exceeded'>;

export type ProvisioningResult =
  | { readonly kind: 'provisioned'; readonly user: Pick<DirectoryUser, 'id' | 'tenantId'>; readonly changed: boolean }
  | {
      readonly kind: 'rejected';
      readonly reason: ProvisioningRejection;
      readonly id: UserId | undefined;
      readonly tenant: TenantId | undefined;
    };

/** The directory's facts about a person, in the form that Postern stores. */
interface DirectoryProfile {
  readonly email: string | null;
  readonly name: string;
}

const MAX_DN_LENGTH = 1024;

function profileOf(person: DirectoryPerson): DirectoryProfile {
  return {
    email: usableEmail(person.email) ?? null,
    name: displayName(person.displayName) ?? displayName(person.username) ?? 'Unnamed',
  };
}

/** Returns the identity with which the directory looks the person up. */
export function identityOf({ directory, stableId }: DirectoryPerson): DirectoryIdentity {
  return { directory, stableId };
}

/** Returns the stored user that needs no update when this person logs in. */
export function unchangedUser(person: DirectoryPerson): UpToDateUser {
  const { tenantId, roles } = person;
  return { identity: identityOf(person), tenantId, ...profileOf(person), roles: sortedRoles(roles) };
}

/**
 * Reports whether the directory answered another request about the user after this one began. Which of the answers is
 * newer is unknown, so this one gives nothing back: no role, and no access to a suspended user.
 * @param askedMs the time at which the request to the directory began, by `performance.now()`
 */
function isOvertaken({ checkedAgoMs }: DirectoryUser, askedMs: number): boolean {
  return checkedAgoMs !== null && checkedAgoMs < performance.now() - askedMs;
}

/** Returns why an existing user may not log in; undefined if it may. */
function rejectionOf(user: DirectoryUser, person: DirectoryPerson, askedMs: number): ProvisioningRejection | undefined {
  if (!user.active || (user.suspension !== null && isOvertaken(user, askedMs))) return 'deactivated';
  if (user.tenantId !== person.tenantId) return 'tenant_changed';
  return user.tenantActive ? undefined : 'tenant_suspended';
}

/**
 * Creates or updates the user, with an audit row of the change. The transaction holds the user's row afterwards.
 * @param askedMs as in `isOvertaken`
 * @throws Refusal `quota_exceeded`: then the transaction must not be committed
 */
export async function provisionUser(
  trx: Transaction,
  parts: Pick<AuthParts, 'random'>,
  person: DirectoryPerson,
  from: Provenance,
  askedMs: number,
): Promise<ProvisioningResult> {
  const identity = identityOf(person);
  const user = await holdDirectoryUser(trx, identity);
  if (user !== undefined) return update(trx, user, person, from, askedMs);
  await lockDirectoryIdentity(trx, identity);
  const createdByOther = await holdDirectoryUser(trx, identity);
  return createdByOther === undefined
    ? createUser(trx, parts, person, from)
    : update(trx, createdByOther, person, from, askedMs);
}

async function createUser(
  trx: Transaction,
  parts: Pick<AuthParts, 'random'>,
  person: DirectoryPerson,
  from: Provenance,
): Promise<ProvisioningResult> {
  const { tenantId } = person;
  const tenant = await findTenant(trx, tenantId);
  if (tenant === undefined) return { kind: 'rejected', reason: 'unknown_tenant', id: undefined, tenant: undefined };
  if (tenant.status !== 'active')
    return { kind: 'rejected', reason: 'tenant_suspended', id: undefined, tenant: tenantId };
  const id = makeId('usr', from.nowMs, parts.random(10));
  const { known, unknown } = await partitionKnownRoles(trx, tenantId, person.roles);
  await reserveSeat(trx, tenantId);
  await insertDirectoryUser(trx, { id, tenantId, ...profileOf(person), identity: identityOf(person), roles: known });
  const made = await resource(trx, tenantId, id);
  await audit(trx, from, 'user.create', undefined, made, person, unknown);
  await auditConflict(trx, from, undefined, made, person);
  return { kind: 'provisioned', user: { id, tenantId }, changed: false };
}

async function update(
  trx: Transaction,
  user: DirectoryUser,
  person: DirectoryPerson,
  from: Provenance,
  askedMs: number,
): Promise<ProvisioningResult> {
  const { id, tenantId } = user;
  const reason = rejectionOf(user, person, askedMs);
  if (reason !== undefined) return { kind: 'rejected', reason, id, tenant: tenantId };
  const profile = profileOf(person);
  const changed = await change(trx, user, profile, { person, askedMs }, from);
  return { kind: 'provisioned', user: { id, tenantId }, changed };
}

/**
 * Updates a user after a lookup without a login: it gets its current roles, and a suspension ends. Email address and
 * name change at the next login, except that an address with a conflict is stored once no other user has it.
 * @param askedMs as in `isOvertaken`
 * @returns whether cached data changed; undefined if the user does not exist
 */
export async function refreshUser(
  trx: Transaction,
  person: DirectoryPerson,
  from: Provenance,
  askedMs: number,
): Promise<boolean | undefined> {
  const identity = identityOf(person);
  const found = await findDirectoryUser(trx, identity);
  if (found === undefined) return undefined;
  // The user may lose roles. It must not be able to delay that by a series of its own changes.
  await holdAlone(trx, found.tenantId, found.id);
  const user = await holdDirectoryUser(trx, identity);
  if (user === undefined) return undefined;
  const email = user.emailConflict === null ? user.email : (profileOf(person).email ?? user.emailConflict);
  return change(trx, user, { email, name: user.name }, { person, askedMs }, from);
}

/** Returns whether cached data changed: the roles or the suspension. */
async function change(
  trx: Transaction,
  user: DirectoryUser,
  { email, name }: DirectoryProfile,
  { person, askedMs }: { readonly person: DirectoryPerson; readonly askedMs: number },
  from: Provenance,
): Promise<boolean> {
  const { id, tenantId } = user;
  const overtaken = isOvertaken(user, askedMs);
  if (overtaken && user.suspension !== null) return false;
  const { known: all, unknown } = await partitionKnownRoles(trx, tenantId, person.roles);
  const known = overtaken ? all.filter((role) => user.roles.includes(role)) : all;
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

/** Reports whether the directory's address needs an update. A conflict remains while another user has the address. */
async function hasNewEmail(trx: Transaction, user: DirectoryUser, email: string | null): Promise<boolean> {
  if (user.emailConflict === null) return user.email !== email;
  return user.emailConflict !== email || !(await isEmailTaken(trx, email));
}

function sameRoles(one: readonly RoleName[], other: readonly RoleName[]): boolean {
  const names = new Set(one);
  return names.size === new Set(other).size && other.every((name) => names.has(name));
}

/** Returns a user whose row the transaction holds. @throws Fault if it does not exist */
export async function resource(trx: Queryable, tenant: TenantId, id: UserId): Promise<UserResource> {
  const user = await findUser(trx, tenant, id);
  if (user === undefined) throw new Fault('a user whose row is locked does not exist');
  return userResource(user);
}

/** Audits a conflict when it begins, not at each login. The row does not name the user that has the address. */
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
    after: { email: email_conflict, ...inDirectory(person) },
  });
}

/** The audit row of a change that only the directory caused. */
export function bySystem(from: Provenance, { id, tenant_id }: Pick<UserResource, 'id' | 'tenant_id'>) {
  return {
    actorType: 'system',
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

/** Returns the person's identity in the directory, for the audit row. */
export function inDirectory(person: DirectoryPerson) {
  return {
    directory: person.directory,
    directory_id: person.stableId,
    dn: toStorableText(person.dn.slice(0, MAX_DN_LENGTH)),
  };
}
