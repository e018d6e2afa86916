/** The schemas of the responses of /v1/iam/explain, /v1/iam/explain/simulate and /v1/iam/explain/who-can. */

import { Type } from 'typebox';
import type { UnprovedReason } from '../../decision/explain-steps.ts';
import { ERRORS } from '../../domain/errors.ts';
import { component, nullable } from '../schema/keywords.ts';

import { Constraints, instant, keyId, text, texts, userId } from '../schema/resource-parts.ts';
import { Conditions } from '../schema/resources.ts';
import { oneOf } from '../schema/schemas.ts';

const perhapsText = Type.Unsafe<string | null>({ type: ['string', 'null'] });

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
  key_id: Type.Optional(nullable(Type.String({ description: 'If step 8 denies: the id of the key.' }))),
  user_id: Type.Optional(
    nullable(Type.String({ description: "If step 8 denies: the key's owner, or the user of the token." })),
  ),
  time: Type.Optional(
    nullable(
      Type.String({ format: 'date-time', description: 'If step 8 denies: the time since when the reason holds.' }),
    ),
  ),
});

const explainedLimit = Type.Object({
  name: oneOf('max_tokens_per_request', 'rate_limit_rpm', 'monthly_tokens', 'max_collections'),
  of: oneOf('tenant', 'api_key'),
  line: Type.Integer({ description: 'The step that checks it: 15, 16 or 17.' }),
  applies: Type.Boolean({ description: '`false`: the request does not count toward the limit.' }),
  limit: nullable(Type.Integer({ description: 'Null: no limit.' })),
  used: nullable(
    Type.Integer({ description: 'The usage in the database. For a rate limit, the amount leased to all gates.' }),
  ),
  reserved: nullable(
    Type.Integer({ description: 'For tokens and collections: the part of `remaining` that is set aside.' }),
  ),
  remaining: nullable(Type.Integer({ description: '`limit` minus `used`.' })),
  resets_at: nullable(instant),
  needed: nullable(
    Type.Integer({
      description:
        'The amount that this request takes: one request, the tokens that it may spend, or one collection. In step 15, the largest limit that the request names.',
    }),
  ),
  exceeded: Type.Boolean(),
});

const grant = Type.Object({
  kind: oneOf('role', 'owner_role', 'scopes'),
  name: nullable(text),
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
      operator: nullable(text),
      operand: texts,
      value: nullable(
        Type.String({ description: 'The value that the condition was compared with. Null if it is missing.' }),
      ),
      timezone: nullable(Type.String({ description: 'The time zone of the value.' })),
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
    policy: nullable(text),
    steps: Type.Array(step),
    route: nullable(text),
    permission: nullable(text),
    resources: texts,
    grants: Type.Array(grant),
    policies: Type.Array(policyStep),
    limits: Type.Array(explainedLimit, {
      description: 'The limits of steps 15 to 17; empty if an earlier step ended the decision. Nothing is counted.',
    }),
  }),
);

const { decision, status, code, detail, policy } = Explanation.properties;

export const Simulation = component(
  'Simulation',
  Type.Object({
    ...Explanation.properties,
    current: Type.Object(
      { decision, status, code, detail, policy },
      { description: 'The decision without the proposal.' },
    ),
  }),
);

const able = {
  verdict: Type.Unsafe<string>({
    type: 'string',
    enum: ['allow', 'conditional'],
    description: '`conditional`: the result depends on the conditions of the policies in `conditions`.',
  }),
  why: Type.Array(
    Type.Object({
      kind: oneOf('role', 'owner_role', 'scopes', 'policy'),
      name: perhapsText,
      constrained: Type.Boolean({ description: 'The grant covers only some resources.' }),
      conditional: Type.Boolean({ description: 'A policy that allows under conditions.' }),
    }),
  ),
  conditions: Type.Array(text, { description: 'Names of policies. `policies` has the policies.' }),
};

const ableUser = Type.Object({
  type: oneOf('user'),
  id: userId,
  email: perhapsText,
  name: text,
  tenant_id: text,
  platform_admin: Type.Boolean(),
  roles: Type.Array(text),
  ...able,
});

const ableKey = Type.Object({
  type: oneOf('api_key'),
  id: keyId,
  description: text,
  user_id: Type.Unsafe<string | null>({ type: ['string', 'null'], description: 'Null if the tenant owns the key.' }),
  expires_at: Type.Unsafe<string | null>({ type: ['string', 'null'], format: 'date-time' }),
  ...able,
});

export const WhoCan = component(
  'WhoCan',
  Type.Object({
    permission: text,
    resource: perhapsText,
    tenant_id: text,
    users: Type.Array(ableUser),
    keys: Type.Array(ableKey),
    policies: Type.Array(
      Type.Object({ name: text, effect: oneOf('allow', 'deny'), global: Type.Boolean(), conditions: Conditions }),
      { description: 'The policies that users and keys on this page name.' },
    ),
    platform_administrators: oneOf('allow', 'conditional', 'deny'),
    has_more: Type.Boolean(),
    next_cursor: Type.Unsafe<string | null>({
      type: ['string', 'null'],
      description: 'The `cursor` of the next page, which may be empty; null on the last.',
    }),
  }),
);
