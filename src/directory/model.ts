/**
 * What a corporate directory says about a person, and the one door through which the rest of Postern asks it. Everything here is already
 * parsed: DNs are normalised, roles and tenants are those of the mapping, and a reason is a word of the list below.
 */

import type { RoleName, TenantId } from '../domain/ids.ts';

/** Why a login was turned away. For audit and metrics alone: the answer outside is the same for all of them. */
export type DirectoryReason =
  | 'wrong_password'
  | 'unknown_user'
  | 'ambiguous_user'
  | 'invalid_username'
  | 'empty_password'
  | 'disabled'
  | 'expired'
  | 'locked'
  | 'not_at_this_time'
  | 'not_from_this_station'
  /** The entry has several values of the attribute that names people, or of the one that identifies them. */
  | 'several_names'
  | 'several_ids'
  /** The directory authenticated an account of a domain that is not configured, or another account than the entry found. */
  | 'other_domain'
  /** Several directories are configured, and the name does not say which one is meant. */
  | 'no_domain'
  | 'refused';

export interface DirectoryPerson {
  /** The configured directory's `ldap.name`. */
  readonly directory: string;
  /**
   * What stays when a person is renamed or moved: the identity attribute of the directory's type, a colon, and its lower-case text,
   * such as `entryuuid:7c3f0e52-…`, `objectguid:…`, `ipauniqueid:…` or `nsuniqueid:…`.
   */
  readonly stableId: string;
  readonly dn: string;
  /** By `ldap.attribute-mapping.username`, else the name that was typed. For display; groups that list names are searched by the former only. */
  readonly username: string;
  readonly email: string | undefined;
  readonly displayName: string | undefined;
  /** Normalised DNs, direct and nested, sorted, without repeats. */
  readonly groups: readonly string[];
  /** By `ldap.group-role-mapping`, sorted, without repeats. */
  readonly roles: readonly RoleName[];
  /** By `ldap.group-tenant-mapping`, else `ldap.tenant-id`. */
  readonly tenantId: TenantId;
}

export type DirectoryAnswer =
  | { readonly kind: 'proved'; readonly person: DirectoryPerson }
  /** The password is right, which the directory has confirmed, and may not be used until it is changed there. */
  | {
      readonly kind: 'password_expired';
      readonly reason: 'expired' | 'must_change';
      readonly directory: string;
      readonly person?: DirectoryPerson;
    }
  | {
      readonly kind: 'refused';
      readonly reason: DirectoryReason;
      readonly directory?: string;
      /** The account that the directory does not let in as it is `disabled` or `expired`, as far as its entry was read. */
      readonly stableId?: string;
      /** What an administrator should know about it, without secrets. */
      readonly detail?: string;
    };

export type LookupAnswer =
  | { readonly kind: 'found'; readonly person: DirectoryPerson }
  | { readonly kind: 'gone'; readonly reason: GoneReason };

/**
 * `several_names` and `several_ids`: the entry no longer identifies one person, which only a change of the entry itself can cause.
 * `ambiguous_user`: another entry has the same user name.
 */
export type GoneReason =
  | 'removed'
  | 'disabled'
  | 'expired'
  | 'locked'
  | 'not_readable'
  | 'several_names'
  | 'several_ids'
  | 'ambiguous_user';

export interface TestStep {
  readonly step:
    | 'connect'
    | 'tls'
    | 'service_bind'
    | 'find_user'
    | 'user_bind'
    | 'attributes'
    | 'groups'
    | 'roles'
    | 'tenant';
  readonly ok: boolean;
  /** What happened. Holds no secret. */
  readonly detail: string;
  /** One sentence: what to change. Only with a step that failed or that deserves a second look. */
  readonly advice?: string;
  readonly data?: Readonly<Record<string, unknown>>;
}

export interface TestQuestion {
  readonly username: string;
  /** Absent = everything but the person's own bind is tried. */
  readonly password?: string;
  /** Absent = the directory that a login with this name would ask first. */
  readonly directory?: string;
}

/** One facade over the list of configured directories. */
export interface Directories {
  /**
   * Rejects with Fault when a directory is down, slow, or its TLS is not to be trusted. An empty name or password opens no connection.
   * @param elapsedMs for how long the person has waited: the time-out is for the whole wait; 0 unless told
   */
  authenticate(username: string, password: string, elapsedMs?: number): Promise<DirectoryAnswer>;
  /** What the directory says now of a person it proved earlier. Rejects with Fault like `authenticate`; so does a name that is not configured. */
  lookup(directory: string, stableId: string): Promise<LookupAnswer>;
  /** What a login goes through, step by step, up to the first that fails. Never rejects. */
  test(question: TestQuestion): Promise<readonly TestStep[]>;
  /** Sentences for the log at start and for the details of `/readyz`. */
  readonly problems: readonly string[];
}
