/** The configuration of one directory (`ldap.*`), parsed and complete. */

import type { RoleName, TenantId } from '../domain/ids.ts';

export type DirectoryType = 'active-directory' | 'openldap' | 'freeipa' | '389ds';

/**
 * The source of a person's groups: `trusted` = the person's own entry (`memberOf`); `searched` = only groups that list
 * the person; `auto` = depends on the type of the directory.
 */
export type MemberOf = 'auto' | 'trusted' | 'searched';

/** One address of a directory's servers. */
export interface DirectoryUrl {
  /** The configured text, for messages. */
  readonly text: string;
  readonly secure: boolean;
  /** A name or an address, IPv6 without brackets. The server's certificate must name it. */
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
  /** `auto` = detected from the server's root entry. */
  readonly type: DirectoryType | 'auto';
  /** Tried in order, within the one `timeoutMs`. */
  readonly urls: readonly DirectoryUrl[];
  readonly startTls: boolean;
  /** PEM certificates that are trusted instead of the system's; undefined = the system's. */
  readonly ca: string | undefined;
  readonly baseDn: string;
  /** `uid={0},ou=people,…`, `{0}@corp.example` or `CORP\{0}`; undefined = search first. */
  readonly userDnPattern: string | undefined;
  /** Undefined = reads before the person's bind are anonymous. */
  readonly serviceAccount: { readonly dn: string; readonly password: string } | undefined;
  /** Undefined = `baseDn`. */
  readonly userSearchBase: string | undefined;
  /** With `{0}` for the name; undefined = the filter of the directory's type. */
  readonly userSearchFilter: string | undefined;
  /** Undefined = `baseDn`. */
  readonly groupSearchBase: string | undefined;
  /**
   * With `{0}` for the person's DN and `{1}` for the name. Undefined = the usual attributes of groups if
   * `groupSearchBase` is set, otherwise no search: the groups are those of the person's entry.
   */
  readonly groupSearchFilter: string | undefined;
  readonly nestedGroups: boolean;
  readonly memberOf: MemberOf;
  /** The configured part of `ldap.attribute-mapping`; the rest comes from the type of the directory. */
  readonly attributes: Partial<AttributeNames>;
  /** By normalised DN. */
  readonly groupRoles: ReadonlyMap<string, readonly RoleName[]>;
  readonly tenantId: TenantId;
  /** By normalised DN, in the order of the configuration. The first group that has the person decides. */
  readonly groupTenants: ReadonlyMap<string, TenantId>;
  /**
   * In lower case. A name `…@domain` or `DOMAIN\…` is looked up only in the directory with that domain, without the
   * domain.
   */
  readonly domains: readonly string[];
  /** Whether names without a configured domain are looked up here although several directories are configured. */
  readonly namesWithoutDomain: boolean;
  /** The timeout of a whole login or lookup. */
  readonly timeoutMs: number;
}
