/** A running directory server of any kind, as the tests use it. */

import type { Places } from './people.ts';

export type DirectoryKind = 'openldap' | '389ds' | 'freeipa' | 'active-directory';

export interface Account {
  readonly dn: string;
  readonly password: string;
}

/** Where it is and how it is spoken to; can be sent to another process. */
export interface DirectoryPlace extends Places {
  readonly kind: DirectoryKind;
  /** Product and how it is set up, for tables. */
  readonly title: string;
  readonly host: string;
  readonly port: number;
  /** `ldap://…`, and `ldaps://…`. */
  readonly url: string;
  readonly secureUrl: string;
  readonly caFile: string;
  /** May only read people and groups. */
  readonly service: Account;
  /** May change everything. */
  readonly manager: Account;
}

export interface DirectoryServer extends DirectoryPlace {
  /** Returns the server's own log of its requests. */
  log(): Promise<string>;
  stop(): Promise<void>;
}
