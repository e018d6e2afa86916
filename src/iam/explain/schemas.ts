/**
 * The schemas of the requests and responses of /v1/iam/explain, /v1/iam/explain/simulate and /v1/iam/explain/who-can.
 */

import { type Static, Type } from 'typebox';
import { ISSUER_REASONS } from '../../decision/model.ts';
import { RATE_DIMENSIONS } from '../../decision/model-rates.ts';
import { ERRORS } from '../../domain/errors.ts';
import { sizeText } from '../../http/body-limits.ts';
import { budget, period, unit } from '../budgets/entity.ts';
import { newPolicy } from '../policies/entity.ts';
import { newRole } from '../roles/entity.ts';
import { aPermission, aTenantId, notBoth } from '../schema/grammar.ts';
import {
  asksAlso,
  component,
  described,
  filterText,
  flagOf,
  nullable,
  optionalText,
  shownText,
  shownTextOrNull,
} from '../schema/keywords.ts';
import { Conditions, Constraints, instant, keyId, tenantId, text, texts, userId } from '../schema/resource-parts.ts';
import { closed, oneOf, page, timeParameter } from '../schema/schemas.ts';

const request = {
  subject: filterText(
    254,
    'The id of a user or a key, the email address of a user, or the shown prefix or the name of a key. Never a whole key.',
  ),
  credential: optionalText(16_384, 'An API key or an access token.'),
  tenant_id: optionalText(1024, 'The value of X-Tenant-ID.'),
  method: Type.String({ minLength: 1, maxLength: 64 }),
  path: Type.String({ maxLength: 65_536 }),
  client_ip: Type.Optional(
    nullable(
      Type.String({
        maxLength: 128,
        description: "An IPv4 or IPv6 address. Default: the caller's address. Null is an unknown address.",
      }),
    ),
  ),
  time: timeParameter('Default: now.'),
  body: Type.Optional(
    nullable(Type.String({ maxLength: 131_072, description: 'The body of the request as text. Null is no body.' })),
  ),
  content_type: optionalText(1024, 'Default: application/json.'),
};

export const explainRequest = component(
  'ExplainRequest',
  Type.Object(request, { ...closed, ...notBoth('subject', 'credential') }),
);
export type ExplainRequest = Static<typeof explainRequest>;

/** The size of proposed policies and roles together, as JSON without spaces in UTF-8. */
export const MAX_PROPOSAL_BYTES = 65_536;
const TOGETHER = `Policies and roles take at most ${sizeText(MAX_PROPOSAL_BYTES)} together, as JSON without spaces.`;

const removedNames = (description: string) =>
  Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 64 }), { maxItems: 100, description }));

const proposal = {
  policies: Type.Optional(
    Type.Array(newPolicy, { maxItems: 100, description: `Each in full, as to create it. ${TOGETHER}` }),
  ),
  roles: Type.Optional(
    Type.Array(newRole, { maxItems: 100, description: `Each in full, as to create it. ${TOGETHER}` }),
  ),
  remove: Type.Optional(
    Type.Object(
      {
        policies: removedNames('Names of policies that the change deletes.'),
        roles: removedNames('Names of roles that the change deletes. Policies are detached from them.'),
      },
      { ...closed, description: 'The rules that the change deletes.' },
    ),
  ),
};

export const simulateRequest = component(
  'SimulateRequest',
  Type.Object({ ...request, ...proposal }, { ...closed, ...notBoth('subject', 'credential') }),
);

export const differenceRequest = component('DifferenceRequest', Type.Object(proposal, closed));
export type DifferenceRequest = Static<typeof differenceRequest>;

export type SimulateRequest = Static<typeof simulateRequest>;
export type ProposalRequest = DifferenceRequest;

const onePermission = Type.String({
  maxLength: 128,
  ...aPermission,
  description: 'One permission, <resource>:<action>, without wildcards.',
});
const RESOURCE_FORM = { pattern: '^(models|collections|agents)/[^\\u0000-\\u001f\\u007f-\\u009f]*$' };
const RESOURCE_TEXT = '<kind>/<name>; <kind>/ alone for one that the request does not name.';
const oneTenant = Type.Optional(Type.String({ ...aTenantId, description: 'The same as X-Tenant-ID.' }));

export const whoCanRequest = component(
  'WhoCanRequest',
  Type.Object(
    {
      permission: onePermission,
      resource: Type.Optional(
        Type.String({
          maxLength: 600,
          ...asksAlso(RESOURCE_FORM),
          description: `${RESOURCE_TEXT} Absent: a request without resources.`,
        }),
      ),
      tenant_id: oneTenant,
    },
    { ...closed, examples: [{ permission: 'chat:write', resource: 'models/llama-3' }] },
  ),
);

export const whoCanQuery = Type.Object(
  {
    ...page,
    tenant_id: oneTenant,
    permission: Type.Optional(onePermission),
    resource: Type.Optional(
      Type.String({
        maxLength: 600,
        ...asksAlso(RESOURCE_FORM),
        description: `${RESOURCE_TEXT} Without \`permission\`: every permission whose routes name such a resource.`,
      }),
    ),
  },
  closed,
);

/** At least one member. */
export type WhoCanRequest = Pick<Static<typeof whoCanQuery>, 'permission' | 'resource'>;
export type WhoCanQuery = Omit<Static<typeof whoCanQuery>, 'tenant_id'>;

const step = Type.Object({
  line: Type.Integer(),
  name: text,
  outcome: described(
    oneOf('passed', 'denied', 'allowed', 'not_evaluated'),
    '`not_evaluated`: an earlier step ended the decision.',
  ),
  detail: text,
  reason: Type.Optional(
    described(
      oneOf(
        'revoked',
        'disabled',
        'expired',
        'rotated',
        'checksum',
        'unknown',
        'owner_deactivated',
        'session_ended',
        'signature',
        ...ISSUER_REASONS,
      ),
      'Of step 8, if it denies: why the credential proves no principal. `unknown` also if you may not manage its key or user.',
    ),
  ),
  key_id: Type.Optional(shownTextOrNull('If step 8 denies: the id of the key.')),
  user_id: Type.Optional(shownTextOrNull("If step 8 denies: the key's owner, or the user of the token.")),
  time: Type.Optional(
    nullable(
      Type.String({ format: 'date-time', description: 'If step 8 denies: the time since when the reason holds.' }),
    ),
  ),
});

const explainedLimit = Type.Object({
  name: oneOf('max_tokens_per_request', 'rate_limit_rpm', ...RATE_DIMENSIONS, 'monthly_tokens', 'max_collections'),
  of: oneOf('tenant', 'user', 'api_key'),
  models: Type.Optional(described(texts, 'The globs of a limit by model. Absent: the limit is of all requests.')),
  line: Type.Integer({ description: 'The step that checks it: 15, 16 or 17.' }),
  applies: flagOf('`false`: the request does not count toward the limit.'),
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

const amount = (description: string) =>
  Type.Unsafe<string | number | null>({ type: ['string', 'integer', 'null'], description });

const explainedBudget = component(
  'ExplainedBudget',
  Type.Object({
    id: budget.id.shows,
    name: text,
    unit,
    period,
    action: budget.action.shows,
    caller: shownTextOrNull('The key or user whose own amount it is. Null: a shared one.'),
    limit: amount(
      'A decimal text for money, otherwise a number. Null without `usage:read`, unless the amount is that of the caller alone.',
    ),
    spent: amount('Booked in the period. Null as `limit`.'),
    reserved: amount('Set aside for requests in progress, and fetched ahead of need. Null as `limit`.'),
    needed: Type.Unsafe<string | number>({
      type: ['string', 'integer'],
      description: 'The amount that this request sets aside.',
    }),
    resets_at: nullable(instant),
    exceeded: flagOf('More than the rest of the limit is needed. It denies if `action` is `block`.'),
  }),
);

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
  mode: described(oneOf('enforce', 'report'), '`report`: the policy has no effect.'),
  matched: Type.Boolean(),
  applies: Type.Boolean(),
  actions: Type.Boolean(),
  resources: Type.Boolean(),
  conditions: Type.Array(
    Type.Object({
      kind: text,
      operator: nullable(text),
      operand: texts,
      value: shownTextOrNull('The value that the condition was compared with. Null if it is missing.'),
      timezone: shownTextOrNull('The time zone of the value.'),
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
    would_deny: shownTextOrNull(
      'The report-only policy that would have denied the request. Null: none, the request is denied, or you lack `admin:policies`.',
    ),
    would_allow: shownTextOrNull(
      'The report-only policy that would have allowed the request. Null: none, the request is allowed, or you lack `admin:policies`.',
    ),
    steps: Type.Array(step),
    route: nullable(text),
    permission: nullable(text),
    resources: texts,
    grants: Type.Array(grant),
    policies: Type.Array(policyStep),
    limits: Type.Array(explainedLimit, {
      description: 'The limits of steps 15 to 17; empty if an earlier step ended the decision. Nothing is counted.',
    }),
    budgets: Type.Array(explainedBudget, {
      description: 'The budgets of step 17 that count the request, by name; empty likewise.',
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

const access = {
  verdict: described(
    oneOf('allow', 'conditional'),
    '`conditional`: the result depends on the conditions of the policies in `conditions`.',
  ),
  by: shownText('The rule that gives it: the first role or policy in `why`, or `scopes` for a key of the tenant.'),
  permissions: described(texts, 'The permissions of the question that it has, at least under conditions.'),
  why: Type.Array(
    Type.Object({
      kind: oneOf('role', 'owner_role', 'scopes', 'policy'),
      name: nullable(text),
      constrained: flagOf('The grant covers only some resources.'),
      conditional: flagOf('A policy that allows under conditions.'),
    }),
  ),
  conditions: Type.Array(text, { description: 'Names of policies. `policies` has the policies.' }),
};
const grantedAccess = Type.Object(access);
export type GrantedAccess = Static<typeof grantedAccess>;
export type AccessReason = GrantedAccess['why'][number];

const userWithAccess = Type.Object({
  type: oneOf('user'),
  id: userId,
  email: nullable(text),
  name: text,
  tenant_id: tenantId,
  platform_admin: Type.Boolean(),
  roles: texts,
  ...access,
});
export type UserWithAccess = Static<typeof userWithAccess>;

const keyWithAccess = Type.Object({
  type: oneOf('api_key'),
  id: keyId,
  description: text,
  user_id: shownTextOrNull('Null if the tenant owns the key.'),
  expires_at: Type.Unsafe<Date | null>({ type: ['string', 'null'], format: 'date-time' }),
  ...access,
});
export type KeyWithAccess = Static<typeof keyWithAccess>;

const roleWithAccess = Type.Object({
  type: oneOf('role'),
  name: text,
  builtin: Type.Boolean(),
  ...access,
});
export type RoleWithAccess = Static<typeof roleWithAccess>;

const namedPolicy = Type.Object({
  name: text,
  effect: oneOf('allow', 'deny'),
  global: Type.Boolean(),
  conditions: Conditions,
});
export type NamedPolicy = Static<typeof namedPolicy>;

export const WhoCan = component(
  'WhoCan',
  Type.Object({
    permission: nullable(text),
    resource: nullable(text),
    tenant_id: tenantId,
    users: Type.Array(userWithAccess),
    keys: Type.Array(keyWithAccess),
    roles: Type.Optional(
      Type.Array(roleWithAccess, {
        description: 'GET only. The roles that give the access to a user without other roles.',
      }),
    ),
    policies: Type.Array(namedPolicy, { description: 'The policies that the rows of this page name.' }),
    platform_administrators: oneOf('allow', 'conditional', 'deny'),
    has_more: Type.Boolean(),
    next_cursor: shownTextOrNull('The `cursor` of the next page, which may be empty; null on the last.'),
  }),
);
export type WhoCan = Static<typeof WhoCan>;
