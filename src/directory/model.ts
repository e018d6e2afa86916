/**
 * The interface of this module: the answers of a corporate directory about a person. All values are parsed: DNs are
 * normalised, roles and tenants are those of the mapping, and a reason is a word of the list below.
 */

import type { RoleName, TenantId } from '../domain/ids.ts';

/** The reason of a rejected login, for audit and metrics only. Clients get the same answer for all of them. */
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
  /**
   * The directory authenticated an account of a domain that is not configured, or another account than the entry found.
   */
  | 'other_domain'
  /** Several directories are configured, and the name does not select one. */
  | 'no_domain'
  | 'refused';

export interface DirectoryPerson {
  /** The configured directory's `ldap.name`. */
  readonly directory: string;
  /**
   * An id that does not change if a person is renamed or moved: the identity attribute of the directory's type, a
   * colon, and its lower-case text, such as `entryuuid:7c3f0e52-…`, `objectguid:…`, `ipauniqueid:…` or `nsuniqueid:…`.
   */
  readonly stableId: string;
  readonly dn: string;
  /**
   * The value of `ldap.attribute-mapping.username`, otherwise the typed name. For display. Only the former finds groups
   * that list names.
   */
  readonly username: string;
  readonly email: string | undefined;
  readonly displayName: string | undefined;
  /** Normalised DNs, direct and nested, sorted and unique. */
  readonly groups: readonly string[];
  /** By `ldap.group-role-mapping`, sorted and unique. */
  readonly roles: readonly RoleName[];
  /** By `ldap.group-tenant-mapping`, otherwise `ldap.tenant-id`. */
  readonly tenantId: TenantId;
}

export type DirectoryAnswer =
  | { readonly kind: 'proved'; readonly person: DirectoryPerson }
  /** The directory has confirmed the password, but it must be changed there before it can be used. */
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
      /** The account that the directory rejects because it is `disabled` or `expired`, if its entry was read. */
      readonly stableId?: string;
      /** Information for administrators, without secrets. */
      readonly detail?: string;
    };

export type LookupAnswer =
  | { readonly kind: 'found'; readonly person: DirectoryPerson }
  | { readonly kind: 'gone'; readonly reason: GoneReason };

/**
 * `several_names` and `several_ids`: the entry no longer identifies one person, which only a change of the entry itself
 * can cause. `ambiguous_user`: another entry has the same username.
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

export type TestStepName =
  | 'connect'
  | 'tls'
  | 'service_bind'
  | 'find_user'
  | 'user_bind'
  | 'attributes'
  | 'groups'
  | 'roles'
  | 'tenant';

export interface TestStep {
  readonly step: TestStepName;
  readonly ok: boolean;
  /** The result, without secrets. */
  readonly detail: string;
  /** The change to make, in one sentence. Present if the step failed, or if its result may be wrong. */
  readonly advice?: string;
  readonly data?: Readonly<Record<string, unknown>>;
}

export interface LoginTestRequest {
  readonly username: string;
  /** Absent = all steps except the person's own bind. */
  readonly password?: string;
  /** Absent = the first directory that a login with this name uses. */
  readonly directory?: string;
}

export interface Directories {
  /**
   * Rejects with a Fault if a directory is unreachable or slow, or its TLS is not trusted. An empty name or password
   * opens no connection.
   * @param elapsedMs the time that the person has already waited, which counts toward the timeout; default: 0
   */
  authenticate(username: string, password: string, elapsedMs?: number): Promise<DirectoryAnswer>;
  /**
   * Looks up a person that the directory proved earlier. Rejects with a Fault like `authenticate`, and for a name that
   * is not configured.
   */
  lookup(directory: string, stableId: string): Promise<LookupAnswer>;
  /** Runs the steps of a login, up to the first that fails. Never rejects. */
  test(request: LoginTestRequest): Promise<readonly TestStep[]>;
  /** Sentences for the log at start and for the details of `/readyz`. */
  readonly problems: readonly string[];
}
