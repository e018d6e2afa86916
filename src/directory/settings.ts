/** What one directory is configured with (`ldap.*`), parsed and complete. */

import type { RoleName, TenantId } from '../domain/ids.ts';

export type DirectoryType = 'active-directory' | 'openldap' | 'freeipa' | '389ds';

/**
 * How a person's groups are known: `trusted` = as the person's own entry says (`memberOf`); `searched` = only groups that list the person
 * count; `auto` = by the type of the directory.
 */
export type MemberOf = 'auto' | 'trusted' | 'searched';

/** One address of a directory's servers. */
export interface DirectoryUrl {
  /** As it was written, for messages. */
  readonly text: string;
  readonly secure: boolean;
  /** A name or an address, IPv6 without brackets. It is what the server's certificate must name. */
  readonly host: string;
  readonly port: number;
}

export interface AttributeNames {
  readonly username: string;
  readonly email: string;
  readonly displayName: string;
  readonly groups: string;
}

export interface DirectorySettings {
  /** `ldap.name`: unique among the configured directories. */
  readonly name: string;
  /** `auto` = as the server's root entry tells. */
  readonly type: DirectoryType | 'auto';
  /** Tried in order, within the one `timeoutMs`. */
  readonly urls: readonly DirectoryUrl[];
  readonly startTls: boolean;
  /** PEM certificates that are trusted instead of the system's; undefined = the system's. */
  readonly ca: string | undefined;
  readonly baseDn: string;
  /** `uid={0},ou=people,…`, `{0}@corp.example` or `CORP\{0}`; undefined = search first. */
  readonly userDnPattern: string | undefined;
  /** Undefined = anonymous where something must be read before the person has bound. */
  readonly serviceAccount: { readonly dn: string; readonly password: string } | undefined;
  /** Undefined = `baseDn`. */
  readonly userSearchBase: string | undefined;
  /** With `{0}` for the name; undefined = by the type of the directory. */
  readonly userSearchFilter: string | undefined;
  /** Undefined = `baseDn`, where there is anything to search. */
  readonly groupSearchBase: string | undefined;
  /**
   * With `{0}` for the person's DN and `{1}` for the name. Undefined = by the usual attributes of groups where `groupSearchBase` is
   * given, else no search: groups are those of the person's entry.
   */
  readonly groupSearchFilter: string | undefined;
  readonly nestedGroups: boolean;
  readonly memberOf: MemberOf;
  /** What was given of `ldap.attribute-mapping`; the rest is by the type of the directory. */
  readonly attributes: Partial<AttributeNames>;
  /** By normalised DN. */
  readonly groupRoles: ReadonlyMap<string, readonly RoleName[]>;
  readonly tenantId: TenantId;
  /** By normalised DN, in the order of the configuration: the first that a person is in decides. */
  readonly groupTenants: ReadonlyMap<string, TenantId>;
  /** In lower case. A name `…@domain` or `DOMAIN\…` is looked up only in the directory with that domain, without that part. */
  readonly domains: readonly string[];
  /** Whether names without a configured domain are looked up here although several directories are configured. */
  readonly namesWithoutDomain: boolean;
  /** For a whole login or look-up, milliseconds. */
  readonly timeoutMs: number;
}
