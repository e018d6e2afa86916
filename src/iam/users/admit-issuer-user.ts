/**
 * Admits the user of a verified token of an issuer: the first token of a subject creates the user if the issuer's
 * settings say so, and a newer token replaces the roles that the issuer gives. The issuer and the subject identify the
 * user. An email address identifies no user.
 *
 * A gate and the API process call it with the token that they verified. They verified it by their cached copy of the
 * issuer, so the transaction reads the issuer again.
 */

import type { Admission, AdmittedIssuerUser, IssuerUserAdmission } from '../../credential-cache/ports.ts';
import { Fault, Refusal } from '../../domain/errors.ts';
import { type IssuerId, makeId, type RoleName, type TenantId, type UserId } from '../../domain/ids.ts';
import type { RandomSource } from '../../identity/api-keys.ts';
import { isSubject } from '../../identity/claims.ts';
import { insertAudit } from '../../store/audit-rows.ts';
import type { Database } from '../../store/database.ts';
import { brokenConstraint } from '../../store/faults.ts';
import { type Transaction, tenantTransaction } from '../../store/transaction.ts';
import { holdAlone } from '../caller/queries.ts';
import { shareTenant } from '../tenants/lock-queries.ts';
import { displayName, partitionKnownRoles, reserveSeat, sortedRoles, usableEmail } from './checks.ts';
import { isEmailTaken } from './directory-queries.ts';
import type { UserResource } from './entity.ts';
import {
  findSubject,
  giveIssuerRoles,
  holdLinkedUser,
  type IssuerIdentity,
  insertIssuerUser,
  type LinkedUser,
  lockIdentity,
  noteRoles,
  type SubjectState,
} from './identity-queries.ts';
import { findUser } from './queries.ts';

interface AdmissionParts {
  readonly db: Database;
  readonly random: RandomSource;
  /** The clock of the database, in milliseconds since the epoch. */
  readonly now: () => number;
}

/** Refusals of one issuer that are audited within a window of a process. */
const MAX_AUDITED = 10;
const WINDOW_MS = 60_000;
/** Issuers with a window of their own. Refusals of further issuers are not audited before a window ends. */
const MAX_WINDOWS = 1_000;

/** One for each process. */
export class IssuerUserProvisioning implements IssuerUserAdmission {
  readonly #parts: AdmissionParts;
  /** In ascending order of their ends. */
  readonly #windows = new Map<IssuerId, { readonly endsMs: number; left: number }>();

  constructor(parts: AdmissionParts) {
    this.#parts = parts;
  }

  async admit(person: AdmittedIssuerUser): Promise<Admission> {
    if (!isSubject(person.subject)) return refused('no_principal');
    const { db } = this.#parts;
    const { tenantId } = person.issuer;
    try {
      const result = await tenantTransaction(db, tenantId, (trx) => this.#admitIn(trx, person));
      if (result.kind === 'refused' && result.reason === 'email_in_use') await this.#audit(person, 'email_in_use');
      return result;
    } catch (error) {
      // The address was taken, or the issuer deleted, after the transaction read it.
      if (brokenConstraint(error) === 'users_email_key') {
        await this.#audit(person, 'email_in_use');
        return refused('email_in_use');
      }
      if (brokenConstraint(error) === 'user_identities_issuer_id_fkey') return refused('no_principal');
      if (!(error instanceof Refusal)) throw error;
      await this.#audit(person, error.code);
      return refused('no_principal');
    }
  }

  async #admitIn(trx: Transaction, person: AdmittedIssuerUser): Promise<Admission> {
    const iatMs = Math.floor(person.iatMs);
    const identity = { issuerId: person.issuer.id, subject: person.subject };
    const found = accepting(await findSubject(trx, identity), person, iatMs);
    if (found === undefined) return refused('no_principal');
    if (found.user !== null) return update(trx, identity, found, found.user, person);
    if (!mayCreate(found, iatMs)) return refused('no_principal');
    await lockIdentity(trx, identity);
    const current = accepting(await findSubject(trx, identity), person, iatMs);
    if (current === undefined) return refused('no_principal');
    if (current.user !== null) return update(trx, identity, current, current.user, person);
    if (!mayCreate(current, iatMs)) return refused('no_principal');
    return this.#create(trx, identity, person);
  }

  async #create(trx: Transaction, identity: IssuerIdentity, person: AdmittedIssuerUser): Promise<Admission> {
    const { tenantId, name: issuer } = person.issuer;
    if ((await shareTenant(trx, tenantId))?.status !== 'active') return refused('no_principal');
    const email = usableEmail(person.email);
    if (email !== undefined && (await isEmailTaken(trx, email))) return refused('email_in_use');
    const { known, unknown } = await partitionKnownRoles(trx, tenantId, sortedRoles(person.roles));
    await reserveSeat(trx, tenantId);
    const id = makeId('usr', this.#parts.now(), this.#parts.random(10));
    await insertIssuerUser(trx, {
      ...{ id, tenantId, email, identity },
      name: displayName(person.name) ?? email ?? displayName(person.subject) ?? 'Unnamed',
      source: `issuer:${issuer}`,
      roles: known,
      rolesAsOfMs: Math.floor(person.iatMs),
    });
    await auditChange(trx, 'user.create', undefined, await resource(trx, tenantId, id), person, unknown);
    return { kind: 'admitted' };
  }

  /** Audits a refusal to create a user. The row does not name the user that has the address. */
  async #audit({ issuer, subject, email }: AdmittedIssuerUser, code: string): Promise<void> {
    if (!this.#mayAudit(issuer.id)) return;
    const after = { code, issuer: issuer.name, subject, email: usableEmail(email) };
    await tenantTransaction(this.#parts.db, issuer.tenantId, (trx) =>
      insertAudit(trx, {
        ...{ actorType: 'system', tenantId: issuer.tenantId },
        ...{ action: 'user.create', targetType: 'user', result: 'refused', after },
      }),
    );
  }

  #mayAudit(id: IssuerId): boolean {
    const nowMs = this.#parts.now();
    for (const [issuer, { endsMs }] of this.#windows) {
      if (endsMs > nowMs) break;
      this.#windows.delete(issuer);
    }
    const window = this.#windows.get(id);
    if (window !== undefined) return window.left-- > 0;
    if (this.#windows.size >= MAX_WINDOWS) return false;
    this.#windows.set(id, { endsMs: nowMs + WINDOW_MS, left: MAX_AUDITED - 1 });
    return true;
  }
}

function refused(reason: 'email_in_use' | 'no_principal'): Admission {
  return { kind: 'refused', reason };
}

/** Returns the state if the issuer still accepts the token as the proof of a user. */
function accepting(
  state: SubjectState | undefined,
  { issuer }: AdmittedIssuerUser,
  iatMs: number,
): SubjectState | undefined {
  if (state === undefined || !state.provesUsers || state.tenantId !== issuer.tenantId) return undefined;
  return state.revokedBeforeMs === null || iatMs >= state.revokedBeforeMs ? state : undefined;
}

function mayCreate({ creates, usersSinceMs }: SubjectState, iatMs: number): boolean {
  return creates && (usersSinceMs === null || iatMs >= usersSinceMs);
}

/** Replaces the roles of a linked user if the token is the newest. A deactivated user stays as it is. */
async function update(
  trx: Transaction,
  identity: IssuerIdentity,
  state: SubjectState,
  user: LinkedUser,
  person: AdmittedIssuerUser,
): Promise<Admission> {
  const iatMs = Math.floor(person.iatMs);
  if (!isDue(state, user, iatMs)) return { kind: 'admitted' };
  // The user may lose roles. It must not be able to delay that by a series of its own changes.
  await holdAlone(trx, state.tenantId, user.id);
  await holdLinkedUser(trx, user.id);
  const current = accepting(await findSubject(trx, identity), person, iatMs);
  if (current?.user?.id !== user.id) return refused('no_principal');
  if (!isDue(current, current.user, iatMs)) return { kind: 'admitted' };
  // A token of another subject of the same user may be newer.
  if (iatMs > (current.user.newestRolesAsOfMs ?? Number.NEGATIVE_INFINITY)) {
    await replaceRoles(trx, identity, current.tenantId, current.user, person);
  }
  await noteRoles(trx, identity, iatMs);
  return { kind: 'admitted' };
}

function isDue({ usersSinceMs }: SubjectState, { active, rolesAsOfMs }: LinkedUser, iatMs: number): boolean {
  if (!active || (usersSinceMs !== null && iatMs < usersSinceMs)) return false;
  return rolesAsOfMs === null || iatMs > rolesAsOfMs;
}

async function replaceRoles(
  trx: Transaction,
  { issuerId }: IssuerIdentity,
  tenantId: TenantId,
  { id, roles }: LinkedUser,
  person: AdmittedIssuerUser,
): Promise<void> {
  const { known, unknown } = await partitionKnownRoles(trx, tenantId, sortedRoles(person.roles));
  if (known.length === roles.length && known.every((role) => roles.includes(role))) return;
  const before = await resource(trx, tenantId, id);
  await giveIssuerRoles(trx, id, issuerId, known);
  await auditChange(trx, 'user.update', before, await resource(trx, tenantId, id), person, unknown);
}

/** Returns what `userResource` returns, without the definition of a user: a gate loads no schemas. */
async function resource(trx: Transaction, tenant: TenantId, id: UserId): Promise<UserResource> {
  const user = await findUser(trx, tenant, id);
  if (user === undefined) throw new Fault('a user whose row is locked does not exist');
  const { directory_status, email_conflict, ...members } = user;
  return directory_status === null ? members : { ...members, directory_status, email_conflict };
}

async function auditChange(
  trx: Transaction,
  action: 'user.create' | 'user.update',
  before: UserResource | undefined,
  after: UserResource,
  { issuer, subject }: AdmittedIssuerUser,
  unknown: readonly RoleName[],
): Promise<void> {
  const unknownRoles = unknown.length === 0 ? {} : { unknown_roles: unknown.join(' ') };
  await insertAudit(trx, {
    ...{ actorType: 'system', tenantId: after.tenant_id },
    ...{ action, targetType: 'user', targetId: after.id, result: 'success', before },
    after: { ...after, issuer: issuer.name, subject, ...unknownRoles },
  });
}
