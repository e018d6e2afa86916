/** Links of users to subjects of issuers, and the roles that the mapping of an issuer gives. */

import type { IssuerId, RoleName, TenantId, UserId } from '../../domain/ids.ts';
import { type Prepared, runPrepared } from '../../store/prepared.ts';
import type { Queryable } from '../../store/queryable.ts';

/** A subject of an issuer. An email address identifies no user. */
export interface IssuerIdentity {
  readonly issuerId: IssuerId;
  readonly subject: string;
}

/** An issuer as the transaction sees it, and the user that is linked to one of its subjects. */
export interface SubjectState {
  readonly tenantId: TenantId;
  /** False while the issuer is disabled, or has no `users`. */
  readonly provesUsers: boolean;
  /** True if the first token of a subject creates its user. */
  readonly creates: boolean;
  /** Milliseconds since the epoch, as all times here; null = none. */
  readonly revokedBeforeMs: number | null;
  readonly usersSinceMs: number | null;
  readonly user: LinkedUser | null;
}

export interface LinkedUser {
  readonly id: UserId;
  /** False for a deactivated user, and for one whom its directory suspends. */
  readonly active: boolean;
  /** The newest `iat` of a token of this subject, and of all subjects of the issuer that the user is linked to. */
  readonly rolesAsOfMs: number | null;
  readonly newestRolesAsOfMs: number | null;
  /** Given by the mapping of the issuer, sorted. */
  readonly roles: readonly RoleName[];
}

/** First of the two keys of a lock; the second is the hash of an identity. */
const IDENTITY_LOCK = 726_543_497;

const ms = (time: string): string => `floor(extract(epoch from ${time}) * 1000)::float8`;

/** SQL: the time of `$ms` milliseconds since the epoch. */
const timeOf = (position: number): string => `to_timestamp($${position}::float8 / 1000)`;

const STATEMENTS = {
  find: {
    name: 'find_issuer_subject',
    text: `select i.tenant_id as "tenantId", i.enabled and i.users is not null as "provesUsers",
        coalesce((i.users ->> 'create')::boolean, false) as creates,
        ${ms('i.revoked_before')} as "revokedBeforeMs", ${ms('i.users_since')} as "usersSinceMs",
        case when u.id is not null then json_build_object('id', u.id,
          'active', u.status = 'active' and u.directory_suspension is null, 'rolesAsOfMs', ${ms('l.roles_as_of')},
          'newestRolesAsOfMs', (select ${ms('max(o.roles_as_of)')} from user_identities o where o.user_id = u.id and o.issuer_id = i.id),
          'roles', array(select r.role_name from user_roles r where r.user_id = u.id and r.source = 'issuer:' || i.id
            order by r.role_name collate "C")) end as "user"
      from issuers i left join user_identities l on l.issuer_id = i.id and l.subject = $2 left join users u on u.id = l.user_id
      where i.id = $1`,
  },
  lock: {
    name: 'lock_issuer_subject',
    text: `select pg_advisory_xact_lock(${IDENTITY_LOCK}, hashtext($1 || ' ' || $2))`,
  },
  holdUser: { name: 'hold_issuer_user', text: 'select from users where id = $1 for update' },
  insertUser: {
    name: 'insert_issuer_user',
    text: `insert into users (id, tenant_id, email, name, source, role_names)
      values ($1, $2, $3, $4, $5, array(select distinct name from unnest($6::text[]) name order by name))`,
  },
  linkWithRoles: {
    name: 'link_issuer_subject',
    text: `insert into user_identities (issuer_id, subject, user_id, roles_as_of) values ($1, $2, $3, ${timeOf(4)})`,
  },
  identities: {
    name: 'identities_of_user',
    text: 'select issuer_id as "issuerId", subject from user_identities where user_id = $1',
  },
  link: {
    name: 'link_user',
    text: 'insert into user_identities (issuer_id, subject, user_id) values ($2, $3, $1)',
  },
  unlink: {
    name: 'unlink_user',
    text: 'delete from user_identities where user_id = $1 and issuer_id = $2 and subject = $3',
  },
  takeOrphanedRoles: {
    name: 'take_orphaned_issuer_roles',
    text: `delete from user_roles r where r.user_id = $1 and r.source like 'issuer:%'
      and not exists (select from user_identities l where l.user_id = $1 and r.source = 'issuer:' || l.issuer_id)`,
  },
  noteRoles: {
    name: 'note_issuer_roles',
    text: `update user_identities set roles_as_of = ${timeOf(3)} where issuer_id = $1 and subject = $2`,
  },
  giveRoles: {
    name: 'give_issuer_roles',
    text: `with gone as (
        delete from user_roles where user_id = $1 and source = $2 and role_name <> all($3::text[])
      )
      insert into user_roles (user_id, role_name, source, tenant_id, status)
      select u.id, role, $2, u.tenant_id, u.status from users u cross join unnest($3::text[]) role where u.id = $1
      on conflict do nothing`,
  },
} as const satisfies Readonly<Record<string, Prepared>>;

/** Returns undefined if the issuer does not exist. */
export async function findSubject(
  q: Queryable,
  { issuerId, subject }: IssuerIdentity,
): Promise<SubjectState | undefined> {
  const [state] = await runPrepared<SubjectState>(q, STATEMENTS.find, [issuerId, subject]);
  return state;
}

/**
 * Locks an identity until the transaction ends. A transaction takes this lock before it links the identity, so that of
 * two concurrent first tokens one creates the user.
 */
export async function lockIdentity(trx: Queryable, { issuerId, subject }: IssuerIdentity): Promise<void> {
  await runPrepared(trx, STATEMENTS.lock, [issuerId, subject]);
}

/** Locks the row of a user until the transaction ends. @returns false if there is no such user */
export async function holdLinkedUser(trx: Queryable, id: UserId): Promise<boolean> {
  return (await runPrepared(trx, STATEMENTS.holdUser, [id])).length > 0;
}

interface NewIssuerUser {
  readonly id: UserId;
  readonly tenantId: TenantId;
  readonly email: string | undefined;
  readonly name: string;
  readonly source: `issuer:${string}`;
  readonly identity: IssuerIdentity;
  /** Given by the mapping; known to the tenant. */
  readonly roles: readonly RoleName[];
  /** The `iat` of the token, in milliseconds since the epoch. */
  readonly rolesAsOfMs: number;
}

/** Fails with a broken `users_email_key` if another user has the email address. */
export async function insertIssuerUser(trx: Queryable, user: NewIssuerUser): Promise<void> {
  const { id, tenantId, email = null, name, source, identity, roles } = user;
  await runPrepared(trx, STATEMENTS.insertUser, [id, tenantId, email, name, source, roles]);
  await runPrepared(trx, STATEMENTS.linkWithRoles, [identity.issuerId, identity.subject, id, user.rolesAsOfMs]);
  await giveIssuerRoles(trx, id, identity.issuerId, roles);
}

export async function identitiesOf(q: Queryable, id: UserId): Promise<readonly IssuerIdentity[]> {
  return runPrepared<IssuerIdentity>(q, STATEMENTS.identities, [id]);
}

/** The caller has locked the identity, which no user has. */
export async function linkSubject(trx: Queryable, id: UserId, { issuerId, subject }: IssuerIdentity): Promise<void> {
  await runPrepared(trx, STATEMENTS.link, [id, issuerId, subject]);
}

export async function unlinkSubject(trx: Queryable, id: UserId, { issuerId, subject }: IssuerIdentity): Promise<void> {
  await runPrepared(trx, STATEMENTS.unlink, [id, issuerId, subject]);
}

/** Removes the roles of issuers that no longer have a subject of the user. */
export async function takeOrphanedIssuerRoles(trx: Queryable, id: UserId): Promise<void> {
  await runPrepared(trx, STATEMENTS.takeOrphanedRoles, [id]);
}

/** Records the `iat` of the newest token of a subject, in milliseconds since the epoch. */
export async function noteRoles(trx: Queryable, { issuerId, subject }: IssuerIdentity, iatMs: number): Promise<void> {
  await runPrepared(trx, STATEMENTS.noteRoles, [issuerId, subject, iatMs]);
}

/**
 * Replaces the roles that the mapping of an issuer gives. Other roles stay. The caller has locked the user's row and
 * checked the roles.
 */
export async function giveIssuerRoles(
  trx: Queryable,
  id: UserId,
  issuerId: IssuerId,
  roles: readonly RoleName[],
): Promise<void> {
  await runPrepared(trx, STATEMENTS.giveRoles, [id, `issuer:${issuerId}`, roles]);
}
