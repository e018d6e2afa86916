/** Users: the definition of their columns and of what the API shows, accepts and may change. */

import { type Static, Type } from 'typebox';
import type { IssuerName, RoleName } from '../../domain/ids.ts';
import { type DirectorySuspension, MAX_SUBJECT_LENGTH } from '../../domain/records.ts';
import {
  changedBy,
  column,
  converted,
  input,
  joined,
  newComponent,
  type ResourceOf,
  type RowOf,
  resourceOf,
  shownComponent,
  type TableOf,
  unselected,
} from '../schema/entity.ts';
import { aName, aPassword, aTenantId } from '../schema/grammar.ts';
import { component, described, nullable, optionalText, shownText, shownTextOrNull } from '../schema/keywords.ts';
import { rateLimits, rateLimitsOrNull } from '../schema/rate-limits.ts';
import { instant, metadataPairs, tenantId, text, userId, withheld } from '../schema/resource-parts.ts';
import { closed, email, metadata, oneOf, only, roleNames, searchText, title, visibleText } from '../schema/schemas.ts';

/** The last statement of the directory about a user. */
const directoryStatus = oneOf<'active' | DirectorySuspension>(
  'active',
  'removed',
  'disabled',
  'expired',
  'tenant_changed',
  'several_names',
  'several_ids',
);

const roles = (options: { readonly description: string }) =>
  Type.Unsafe<readonly RoleName[]>(Type.Array(text, options));

/** `issuer:<name>`: the name that the issuer had when its token created the user. */
export type UserSource = 'local' | 'ldap' | `issuer:${string}`;

/** The largest number of identities of one user. */
const MAX_IDENTITIES = 20;

interface Identity {
  readonly issuer: IssuerName;
  readonly subject: string;
}

const identity = Type.Object(
  {
    issuer: Type.String({ maxLength: 64, description: 'The name of an issuer of the tenant.', ...aName }),
    subject: Type.String({ minLength: 1, maxLength: MAX_SUBJECT_LENGTH }),
  },
  closed,
);
export type IdentityRequest = Static<typeof identity>;

export const user = {
  id: column(userId),
  email: column(shownTextOrNull('Null for users whose directory has no email address for them.'), {
    accepts: email,
    changes: true,
  }),
  name: column(text, { accepts: title(200), changes: true }),
  department: column(nullable(text), { accepts: Type.Optional(nullable(visibleText(200))), changes: true }),
  metadata: column(metadataPairs, { accepts: Type.Optional(metadata), changes: true }),
  rate_limits: column(nullable(rateLimits), { accepts: Type.Optional(rateLimitsOrNull), changes: true }),
  roles: joined(roles({ description: 'Assigned through the API.' }), {
    accepts: Type.Optional(roleNames),
    changes: true,
  }),
  directory_roles: joined(roles({ description: 'Assigned by the directory. Read-only.' })),
  issuer_roles: joined(roles({ description: 'Given by the mappings of issuers. Read-only.' })),
  identities: joined(
    Type.Unsafe<readonly Identity[]>(
      Type.Array(Type.Object({ issuer: text, subject: text }), {
        description: 'The subjects of issuers whose tokens act as the user.',
      }),
    ),
    {
      accepts: Type.Optional(
        Type.Unsafe<readonly IdentityRequest[]>(
          Type.Array(identity, { maxItems: MAX_IDENTITIES, description: 'Replaces all identities of the user.' }),
        ),
      ),
      changes: true,
    },
  ),
  tenant_id: column(tenantId, {
    accepts: Type.Optional(Type.String({ description: 'The same as X-Tenant-ID.', ...aTenantId })),
    changes: false,
  }),
  status: column(oneOf('active', 'deactivated')),
  source: column(
    Type.Unsafe<UserSource>({
      type: 'string',
      pattern: '^(local|ldap|issuer:.+)$',
      description:
        '`ldap`: a user of a directory, which provides its email address, name and password. `issuer:<name>`: created by a token of the issuer with that name. Such a user has no password.',
    }),
  ),
  /** Null for local users. */
  directory_status: {
    ...converted(
      nullable(directoryStatus),
      Type.Optional(
        described(
          directoryStatus,
          'Only of users of a directory: what it said last of the user, whose keys and sessions are rejected unless it is `active`. Read-only.',
        ),
      ),
    ),
    joined: true,
  },
  email_conflict: converted(
    nullable(text),
    Type.Optional(
      shownTextOrNull(
        'Only of users of a directory: the address that it shows, if another user has it. `email` is null then. Read-only.',
      ),
    ),
  ),
  password: input({ accepts: Type.Optional(Type.String({ maxLength: 1024, ...aPassword })), changes: false }),
  last_login_at: joined(
    described(
      nullable(instant),
      'The time of the last login that created a session. Null if there was none. Read-only.',
    ),
  ),
  locked_until: joined(
    described(
      nullable(instant),
      'The time until which failed logins lock the account. Null if the account is not locked. Read-only.',
    ),
  ),
  created_at: column(instant),
  updated_at: column(instant),
  password_hash: unselected<string | null>(),
  password_changed_at: unselected<Date | null>(),
  /** The names of all roles of the user, for searches. */
  role_names: unselected<readonly RoleName[]>(),
};

export interface UserRow extends RowOf<typeof user> {}
export interface UserTable extends TableOf<typeof user> {}
export interface UserResource extends ResourceOf<typeof user> {}

/** The filters of the list of users, and of a change of several users. */
export const userFilters = {
  role: optionalText(64, 'Users that hold the role.'),
  status: Type.Optional(user.status.shows),
  email: Type.Optional(Type.String({ maxLength: 254 })),
  q: searchText('Any part of the name, email address or department, in any case.'),
  locked: only('`true`: users whose account is locked by failed logins now.'),
  directory_status: Type.Optional(
    described(directoryStatus, 'Users of directories whose directory last reported this.'),
  ),
  email_conflict: only('`true`: users of a directory whose address another user has.'),
};
export type UserFilters = Static<ReturnType<typeof Type.Object<typeof userFilters>>>;

export const User = shownComponent('User', user);

/** A user with the token that sets a first password, which only the response of the creation contains. */
export const CreatedUser = component(
  'CreatedUser',
  Type.Object({
    ...User.properties,
    password_setup_token: Type.Optional(
      shownText('A token that sets the first password, once and within one hour. Only this response contains it.'),
    ),
    ...withheld,
  }),
);

export const PasswordReset = component(
  'PasswordReset',
  Type.Object({
    password_setup_token: Type.Optional(shownText('Only this response contains it.')),
    ...withheld,
    expires_at: instant,
  }),
);

export const newUser = newComponent('NewUser', user, {
  examples: [{ email: 'ada@acme.example', name: 'Ada', department: 'Research', roles: ['developer'] }],
});

const currentPassword = (change: string) =>
  optionalText(1024, `The caller's current password. Required for ${change}.`);

export const userChanges = component(
  'UserChanges',
  Type.Object(
    { ...changedBy(user), current_password: currentPassword('a new email address or identity of the caller') },
    { ...closed, examples: [{ department: 'Research' }] },
  ),
);

export const passwordResetRequest = component(
  'PasswordResetRequest',
  Type.Object({ current_password: currentPassword("a reset of the caller's own password") }, closed),
);

export type NewUser = Static<typeof newUser>;
export type UserChanges = Omit<Static<typeof userChanges>, 'current_password'>;

/** A user whom its directory suspends counts as deactivated. */
export function isActive({ status, directory_status: directoryStatus }: UserRow): boolean {
  return status === 'active' && (directoryStatus === null || directoryStatus === 'active');
}

/** All roles of a user, each once. */
export function rolesOfUser({ roles, directory_roles, issuer_roles }: UserRow): readonly RoleName[] {
  return [...new Set([...roles, ...directory_roles, ...issuer_roles])];
}

export function userResource(row: UserRow): UserResource {
  const { directory_status, email_conflict } = row;
  return resourceOf(user, row, directory_status === null ? {} : { directory_status, email_conflict });
}
