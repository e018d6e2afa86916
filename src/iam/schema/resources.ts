/** The schemas of the responses of /v1/iam that show users, sessions, roles, policies and tenants. */

import { Type } from 'typebox';
import { CONDITIONS, type Condition } from '../../decision/condition-table.ts';
import type { DirectorySuspension, StoredConditions } from '../../domain/records.ts';
import { component, nullable } from './keywords.ts';

import { instant, Metadata, text, userId, withheld } from './resource-parts.ts';
import { oneOf } from './schemas.ts';

export const directoryStatus = oneOf<'active' | DirectorySuspension>(
  'active',
  'removed',
  'disabled',
  'expired',
  'tenant_changed',
  'several_names',
  'several_ids',
);

const user = {
  id: userId,
  email: nullable(Type.String({ description: 'Null for users whose directory has no email address for them.' })),
  name: text,
  department: nullable(text),
  metadata: Metadata,
  roles: Type.Array(text, { description: 'Assigned through the API.' }),
  directory_roles: Type.Array(text, { description: 'Assigned by the directory. Read-only.' }),
  tenant_id: text,
  status: oneOf('active', 'deactivated'),
  source: Type.Unsafe<'local' | 'ldap'>({
    ...oneOf('local', 'ldap'),
    description: '`ldap`: a user of a directory, which provides its email address, name and password.',
  }),
  directory_status: Type.Optional(
    Type.Unsafe<'active' | DirectorySuspension>({
      ...directoryStatus,
      description:
        'Only of users of a directory: what it said last of the user, whose keys and sessions are rejected unless it is `active`. Read-only.',
    }),
  ),
  email_conflict: Type.Optional(
    nullable(
      Type.String({
        description:
          'Only of users of a directory: the address that it shows, if another user has it. `email` is null then. Read-only.',
      }),
    ),
  ),
  last_login_at: Type.Unsafe({
    ...nullable(instant),
    description: 'The time of the last login that created a session. Null if there was none. Read-only.',
  }),
  locked_until: Type.Unsafe({
    ...nullable(instant),
    description: 'The time until which failed logins lock the account. Null if the account is not locked. Read-only.',
  }),
  created_at: instant,
  updated_at: instant,
};

export const User = component('User', Type.Object(user));

export const CreatedUser = component(
  'CreatedUser',
  Type.Object({
    ...user,
    password_setup_token: Type.Optional(
      Type.String({
        description: 'A token that sets the first password, once and within one hour. Only this response contains it.',
      }),
    ),
    ...withheld,
  }),
);

export const PasswordReset = component(
  'PasswordReset',
  Type.Object({
    password_setup_token: Type.Optional(Type.String({ description: 'Only this response contains it.' })),
    ...withheld,
    expires_at: instant,
  }),
);

/** The operators of a condition as a response shows them: stored operands are older than the bounds that requests have. */
function shownCondition({ operators, schema, description }: Condition) {
  const { items, minItems, maxItems } = schema;
  const operand = Type.Array(
    items.enum === undefined ? text : oneOf(...items.enum),
    minItems === maxItems ? { minItems, maxItems } : {},
  );
  const members = Object.fromEntries(operators.map((operator) => [operator, Type.Optional(operand)]));
  return Type.Optional(Type.Object(members, { description }));
}

export const Conditions = component(
  'PolicyConditions',
  Type.Unsafe<StoredConditions>(Type.Object(
    {
      ...Object.fromEntries(Object.entries(CONDITIONS).map(([key, condition]) => [key, shownCondition(condition)])),
      timezone: Type.Optional(text),
    },
    { description: 'All must hold. Empty: the policy always applies.' },
  )),
);

export const Session = component(
  'Session',
  Type.Object({
    id: Type.String({ pattern: '^ses_[0-9a-z]{26}$', examples: ['ses_01jd5k3v8m2x7q9w4r6t0y1z3b'] }),
    created_at: instant,
    last_used_at: Type.String({
      format: 'date-time',
      description: 'The time at which the session began or was last refreshed.',
    }),
    expires_at: Type.String({
      format: 'date-time',
      description: 'The time at which the session ends even if it is used.',
    }),
    address: nullable(Type.String({ description: 'The client address at login.' })),
    user_agent: nullable(text),
    cookie: Type.Boolean({ description: "The refresh token is kept in a browser's cookie." }),
    current: Type.Boolean({ description: "Whether this is the session of the request's access token." }),
  }),
);
