/** The schemas of what /v1/iam answers with. */

import { type TSchema, Type } from 'typebox';
import { MAX_UNSEALED } from '../../admin/audit/chain.ts';
import { MAX_COUNTED } from '../../admin/list.ts';
import { MAX_NOTICES } from '../../admin/permissions/notices.ts';
import type { UnprovedReason } from '../../decision/explain-steps.ts';
import { ERRORS } from '../../domain/errors.ts';
import { DAY_NAMES, type DirectorySuspension } from '../../domain/records.ts';
import { type Component, component } from '../answers.ts';
import { oneOf } from './schemas.ts';

/** RFC 3339 in UTC. */
const instant = Type.String({ format: 'date-time', examples: ['2026-11-21T09:00:00.000Z'] });
const perhaps = (schema: TSchema & { readonly type: string }) => Type.Unsafe({ ...schema, type: [schema.type, 'null'] });
const text = Type.String();
const texts = Type.Array(text);

export const UserId = Type.String({ pattern: '^usr_[0-9a-z]{26}$', examples: ['usr_01jd5k3v8m2x7q9w4r6t0y1z3b'] });
export const KeyId = Type.String({ pattern: '^key_[0-9a-z]{26}$', examples: ['key_01jd5k3v8m2x7q9w4r6t0y1z3b'] });

const Constraints = component(
  'ResourceConstraints',
  Type.Object(
    { models: Type.Optional(texts), collections: Type.Optional(texts), agents: Type.Optional(texts) },
    {
      description: 'Names or globs by kind. An absent kind is unconstrained, an empty list permits none.',
    },
  ),
);

/** Pairs that people attach to a key, user or tenant. */
export const Metadata = component(
  'Metadata',
  Type.Unsafe<Record<string, string>>({
    type: 'object',
    additionalProperties: { type: 'string' },
    description: 'Pairs of text. No decision reads them.',
  }),
);

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
  id: UserId,
  email: perhaps(Type.String({ description: 'Null for users whose directory has no email address for them.' })),
  name: text,
  department: perhaps(text),
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
    perhaps(
      Type.String({
        description:
          'Only of users of a directory: the address that it shows, if another user has it. `email` is null then. Read-only.',
      }),
    ),
  ),
  last_login_at: Type.Unsafe({
    ...perhaps(instant),
    description: 'The time of the last login that created a session. Null if there was none. Read-only.',
  }),
  locked_until: Type.Unsafe({
    ...perhaps(instant),
    description: 'The time until which failed logins lock the account. Null if the account is not locked. Read-only.',
  }),
  created_at: instant,
  updated_at: instant,
};

export const User = component('User', Type.Object(user));

/** Of an answer given again under its Idempotency-Key, in place of the secret. */
const withheld = {
  secret_available: Type.Optional(
    Type.Unsafe<false>({ const: false, description: 'Present instead of the secret if the server repeats a response.' }),
  ),
};

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

/** Of roles, policies and keys. */
const notices = {
  notices: Type.Optional(
    Type.Array(
      component(
        'Notice',
        Type.Object({
          kind: oneOf('unneeded_pattern', 'binds_no_one'),
          path: Type.String({ description: 'JSON pointer to the member.', examples: ['/permissions/0'] }),
          pattern: perhaps(Type.String({ description: 'The pattern that no route and no endpoint needs.' })),
          nearest: perhaps(Type.String({ description: 'The nearest pattern that covers a permission.' })),
          message: text,
        }),
      ),
      {
        maxItems: MAX_NOTICES + 1,
        description: 'The parts of the resource that have no effect. Absent if there are none. Read-only.',
      },
    ),
  ),
  notice: Type.Optional(Type.String({ description: 'The messages of `notices` as one text; absent without notices.' })),
};

export const Role = component(
  'Role',
  Type.Object({
    name: text,
    description: text,
    permissions: texts,
    resource_constraints: Constraints,
    builtin: Type.Boolean(),
    tenant_id: perhaps(Type.String({ description: 'Null for built-in roles, which are the same in every tenant.' })),
    created_at: perhaps(instant),
    updated_at: perhaps(instant),
    ...notices,
  }),
);

const condition = (operators: readonly [string, string], operand: TSchema) =>
  Type.Partial(Type.Object({ [operators[0]]: operand, [operators[1]]: operand }));

export const Conditions = component(
  'PolicyConditions',
  Type.Object(
    {
      ip_address: Type.Optional(condition(['in', 'not_in'], texts)),
      time: Type.Optional(condition(['between', 'not_between'], Type.Array(text, { minItems: 2, maxItems: 2 }))),
      day_of_week: Type.Optional(condition(['in', 'not_in'], Type.Array(oneOf(...DAY_NAMES)))),
      weekly_hours: Type.Optional(condition(['in', 'not_in'], texts)),
      timezone: Type.Optional(text),
    },
    { description: 'All must hold. Empty: the policy always applies.' },
  ),
);

export const Policy = component(
  'Policy',
  Type.Object({
    name: text,
    description: text,
    effect: oneOf('allow', 'deny'),
    actions: texts,
    resources: texts,
    conditions: Conditions,
    applies_to: oneOf('everyone', 'roles'),
    attached_roles: texts,
    global: Type.Boolean(),
    enabled: Type.Boolean(),
    tenant_id: perhaps(Type.String({ description: 'Null for global policies.' })),
    created_at: instant,
    updated_at: instant,
    ...notices,
  }),
);

const limit = Type.Integer({ minimum: 0 });

export const Tenant = component(
  'Tenant',
  Type.Object({
    id: text,
    name: text,
    status: oneOf('active', 'suspended'),
    settings: component(
      'TenantSettings',
      Type.Object(
        {
          default_model: Type.Optional(text),
          max_tokens_per_request: Type.Optional(limit),
          rate_limit_rpm: Type.Optional(limit),
          timezone: Type.Optional(text),
          allow_keys_without_expiry: Type.Optional(Type.Boolean()),
        },
        { description: 'If a limit is absent, there is none. 0 allows nothing.' },
      ),
    ),
    quotas: component(
      'TenantQuotas',
      Type.Object(
        { monthly_tokens: Type.Optional(limit), max_users: Type.Optional(limit), max_collections: Type.Optional(limit) },
        { description: 'If a limit is absent, there is none. 0 allows nothing.' },
      ),
    ),
    metadata: Metadata,
    created_at: instant,
    updated_at: instant,
  }),
);

const key = {
  id: KeyId,
  tenant_id: text,
  user_id: perhaps(Type.String({ description: 'Null if the tenant owns the key.' })),
  name: perhaps(text),
  description: text,
  metadata: Metadata,
  scopes: texts,
  resource_constraints: Constraints,
  rate_limit_rpm: perhaps(limit),
  prefix: text,
  last_four: text,
  imported: Type.Boolean({
    description:
      'The secret was issued by another system and imported as a digest. A rotation gives the key a secret of Postern.',
  }),
  status: oneOf('active', 'expired', 'revoked'),
  expires_at: perhaps(instant),
  created_at: instant,
  updated_at: instant,
  last_used_at: perhaps(instant),
  ...notices,
};

export const ApiKey = component('ApiKey', Type.Object(key));

export const IssuedApiKey = component(
  'IssuedApiKey',
  Type.Object({
    ...key,
    key: Type.Optional(Type.String({ description: 'The text of the key. Only this response contains it.' })),
    ...withheld,
  }),
);

/** Why a row of a request was rejected. */
const rejection = {
  code: Type.Optional(oneOf(...Object.keys(ERRORS))),
  detail: Type.Optional(text),
};

export const ApiKeyImport = component(
  'ApiKeyImport',
  Type.Object({
    imported: Type.Integer({ minimum: 0, description: 'The number of created keys.' }),
    data: Type.Array(
      Type.Object({
        index: Type.Integer({ minimum: 0, description: 'The index of the row in the request.' }),
        outcome: Type.Unsafe<'imported' | 'exists' | 'rejected'>({
          ...oneOf('imported', 'exists', 'rejected'),
          description: '`exists`: the tenant already has a key with this digest, and the key is unchanged.',
        }),
        id: Type.Unsafe({ ...KeyId, type: ['string', 'null'], description: 'Null for `rejected`.' }),
        ...rejection,
        errors: Type.Optional(Type.Array(Type.Object({ path: text, message: text }))),
      }),
    ),
  }),
);

export const ApiKeyRevocations = component(
  'ApiKeyRevocations',
  Type.Object({
    dry_run: Type.Boolean(),
    revoked: Type.Integer({
      minimum: 0,
      description: 'The number of keys that were revoked, or that would be revoked in a dry run.',
    }),
    has_more: Type.Boolean({ description: 'The filter matched more keys than one request takes. Send it again for the rest.' }),
    data: Type.Array(
      Type.Object({
        id: text,
        outcome: oneOf('revoked', 'would_revoke', 'already_revoked', 'not_found', 'rejected'),
        ...rejection,
        key: Type.Optional(
          Type.Object({
            name: perhaps(text),
            description: text,
            user_id: perhaps(text),
            prefix: text,
            last_four: text,
            expires_at: perhaps(instant),
            last_used_at: perhaps(instant),
          }),
        ),
      }),
    ),
  }),
);

export const AuditRow = component(
  'AuditRow',
  Type.Object({
    id: text,
    time: instant,
    actor: Type.Object({
      type: oneOf('user', 'api_key', 'system', 'anonymous'),
      id: perhaps(Type.String({ description: 'Null for the system and for requests without a known principal.' })),
    }),
    tenant_id: perhaps(Type.String({ description: 'Null if the event belongs to no tenant.' })),
    address: perhaps(text),
    action: Type.String({ examples: ['user.create', 'auth.login'] }),
    target: Type.Object({ type: perhaps(text), id: perhaps(text) }),
    result: oneOf('success', 'failure', 'refused'),
    before: Type.Unknown({ description: 'The state before the change, without secrets. Null if nothing is recorded.' }),
    after: Type.Unknown({ description: 'The state after the change, or details of the event, without secrets.' }),
    request_id: perhaps(text),
  }),
);

export const AuditChain = component(
  'AuditChain',
  Type.Object({
    rows: Type.Integer({ minimum: 0, description: 'The number of audit rows that are sealed.' }),
    seals: Type.Integer({ minimum: 0 }),
    unsealed: Type.Integer({
      minimum: 0,
      maximum: MAX_UNSEALED,
      description: `Rows that wait for a seal, at most ${MAX_UNSEALED}.`,
    }),
    newest_seal: Type.Unsafe({
      ...Type.Object({
        number: Type.Integer({ minimum: 1 }),
        hash: Type.String({ pattern: '^[0-9a-f]{64}$' }),
        time: instant,
      }),
      type: ['object', 'null'],
      description: 'Null if there is none yet.',
    }),
  }),
);

const step = Type.Object({
  line: Type.Integer(),
  name: text,
  outcome: Type.Unsafe<'passed' | 'denied' | 'allowed' | 'not_evaluated'>({
    ...oneOf('passed', 'denied', 'allowed', 'not_evaluated'),
    description: '`not_evaluated`: an earlier step ended the decision.',
  }),
  detail: text,
  reason: Type.Optional(
    Type.Unsafe<UnprovedReason>({
      ...oneOf('revoked', 'expired', 'rotated', 'checksum', 'unknown', 'owner_deactivated', 'session_ended'),
      description:
        'Of step 8, if it denies: why the credential proves no principal. `unknown` also if you may not manage its key or user.',
    }),
  ),
  key_id: Type.Optional(perhaps(Type.String({ description: 'If step 8 denies: the id of the key.' }))),
  user_id: Type.Optional(perhaps(Type.String({ description: "If step 8 denies: the key's owner, or the user of the token." }))),
  time: Type.Optional(
    perhaps(Type.String({ format: 'date-time', description: 'If step 8 denies: the time since when the reason holds.' })),
  ),
});

const explainedLimit = Type.Object({
  name: oneOf('max_tokens_per_request', 'rate_limit_rpm', 'monthly_tokens', 'max_collections'),
  of: oneOf('tenant', 'api_key'),
  line: Type.Integer({ description: 'The step that checks it: 15, 16 or 17.' }),
  applies: Type.Boolean({ description: '`false`: the request does not count toward the limit.' }),
  limit: perhaps(Type.Integer({ description: 'Null: no limit.' })),
  used: perhaps(Type.Integer({ description: 'The usage in the database. For a rate limit, the amount leased to all gates.' })),
  reserved: perhaps(Type.Integer({ description: 'For tokens and collections: the part of `remaining` that is set aside.' })),
  remaining: perhaps(Type.Integer({ description: '`limit` minus `used`.' })),
  resets_at: perhaps(instant),
  needed: perhaps(
    Type.Integer({
      description:
        'What this request takes: one request, the tokens that it may spend, one collection; of step 15 the largest limit that it names.',
    }),
  ),
  exceeded: Type.Boolean(),
});

const grant = Type.Object({
  kind: oneOf('role', 'owner_role', 'scopes'),
  name: perhaps(text),
  permissions: texts,
  resource_constraints: Constraints,
  outcome: oneOf('covers', 'no_permission', 'no_resources'),
});

const policyStep = Type.Object({
  name: text,
  effect: oneOf('allow', 'deny'),
  global: Type.Boolean(),
  matched: Type.Boolean(),
  applies: Type.Boolean(),
  actions: Type.Boolean(),
  resources: Type.Boolean(),
  conditions: Type.Array(
    Type.Object({
      kind: text,
      operator: perhaps(text),
      operand: texts,
      value: perhaps(Type.String({ description: 'The value that the condition was compared with. Null if it is missing.' })),
      timezone: perhaps(Type.String({ description: 'The time zone of the value.' })),
      matched: Type.Boolean(),
      missing: Type.Boolean(),
    }),
  ),
});

export const Explanation = component(
  'Explanation',
  Type.Object({
    decision: oneOf('allow', 'deny'),
    status: Type.Integer(),
    code: oneOf('allow', ...Object.keys(ERRORS)),
    detail: text,
    policy: perhaps(text),
    steps: Type.Array(step),
    route: perhaps(text),
    permission: perhaps(text),
    resources: texts,
    grants: Type.Array(grant),
    policies: Type.Array(policyStep),
    limits: Type.Array(explainedLimit, {
      description: 'The limits of steps 15 to 17; empty if an earlier step ended the decision. Nothing is counted.',
    }),
  }),
);

export const Session = component(
  'Session',
  Type.Object({
    id: Type.String({ pattern: '^ses_[0-9a-z]{26}$', examples: ['ses_01jd5k3v8m2x7q9w4r6t0y1z3b'] }),
    created_at: instant,
    last_used_at: Type.String({ format: 'date-time', description: 'The time at which the session began or was last refreshed.' }),
    expires_at: Type.String({ format: 'date-time', description: 'The time at which the session ends even if it is used.' }),
    address: perhaps(Type.String({ description: 'The client address at login.' })),
    user_agent: perhaps(text),
    cookie: Type.Boolean({ description: "The refresh token is kept in a browser's cookie." }),
    current: Type.Boolean({ description: "Whether this is the session of the request's access token." }),
  }),
);

/** One page of a list. */
export function listOf(schema: Component) {
  return component(
    `${schema.title}List`,
    Type.Object({
      object: oneOf('list'),
      data: Type.Array(schema),
      has_more: Type.Boolean(),
      next_cursor: perhaps(Type.String({ description: 'The `cursor` of the next page; null on the last.' })),
      total: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: MAX_COUNTED,
          description: 'The number of rows of the whole list. Present with `count=true`, for up to 10,000 rows.',
        }),
      ),
      total_exceeds: Type.Optional(
        Type.Unsafe<number>({
          const: MAX_COUNTED,
          description: 'Present instead of `total` if the list has more rows than this.',
        }),
      ),
    }),
  );
}
