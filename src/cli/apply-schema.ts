/** The form of a setup file, made of the same parts as the schemas of the API, and checked by the same validator. */

import { type TSchema, Type } from 'typebox';
import { didYouMean } from '../config/config-error.ts';
import type { FieldError } from '../domain/problem-details.ts';
import { type Validated, validatorOf } from '../http/validation.ts';
import { nullable } from '../iam/schema/keywords.ts';
import {
  closed,
  description,
  email,
  limitOrNull,
  metadata,
  oneOf,
  patterns,
  resourceConstraints,
  roleNames,
  somePatterns,
  title,
  visibleText,
} from '../iam/schema/schemas.ts';
import { SETUP_VERSION, type SetupDocument } from '../iam/setup/document.ts';

const settings = Type.Object(
  {
    default_model: Type.Optional(nullable(title(512))),
    max_tokens_per_request: Type.Optional(limitOrNull),
    rate_limit_rpm: Type.Optional(limitOrNull),
    timezone: Type.Optional(nullable(Type.String({ maxLength: 64 }))),
    allow_keys_without_expiry: Type.Optional(nullable(Type.Boolean())),
    require_stream_usage: Type.Optional(nullable(Type.Boolean())),
  },
  closed,
);

const quotas = Type.Object(
  {
    monthly_tokens: Type.Optional(limitOrNull),
    max_users: Type.Optional(limitOrNull),
    max_collections: Type.Optional(limitOrNull),
  },
  closed,
);

const role = Type.Object(
  {
    name: Type.String({ maxLength: 64 }),
    description: Type.Optional(nullable(description)),
    permissions: Type.Optional(patterns),
    resource_constraints: Type.Optional(resourceConstraints),
  },
  closed,
);

const policy = Type.Object(
  {
    name: Type.String({ maxLength: 64 }),
    description: Type.Optional(nullable(description)),
    effect: Type.Optional(oneOf('allow', 'deny')),
    actions: Type.Optional(somePatterns),
    resources: Type.Optional(somePatterns),
    conditions: Type.Optional(Type.Unsafe<unknown>({ type: ['object', 'null'] })),
    applies_to: Type.Optional(oneOf('everyone', 'roles')),
    attached_roles: Type.Optional(nullable(roleNames)),
    enabled: Type.Optional(Type.Boolean()),
  },
  closed,
);

const user = Type.Object(
  {
    email,
    name: Type.Optional(title(200)),
    department: Type.Optional(nullable(visibleText(200))),
    metadata: Type.Optional(metadata),
    roles: Type.Optional(nullable(roleNames)),
    status: Type.Optional(oneOf('active', 'deactivated')),
  },
  closed,
);

const tenant = Type.Object(
  {
    id: Type.String({ maxLength: 64 }),
    name: Type.Optional(title(200)),
    status: Type.Optional(oneOf('active', 'suspended')),
    settings: Type.Optional(nullable(settings)),
    quotas: Type.Optional(nullable(quotas)),
    metadata: Type.Optional(metadata),
    roles: Type.Optional(Type.Array(role)),
    policies: Type.Optional(Type.Array(policy)),
    users: Type.Optional(Type.Array(user)),
  },
  closed,
);

export const SETUP_SCHEMA = Type.Object(
  {
    version: Type.Unsafe<typeof SETUP_VERSION>({ type: 'integer', enum: [SETUP_VERSION] }),
    global_policies: Type.Optional(Type.Array(policy)),
    tenants: Type.Optional(Type.Array(tenant)),
  },
  closed,
);

const validate = validatorOf(SETUP_SCHEMA);

/** @param short the input is small enough to look for all its errors rather than the first */
export function checkForm(value: unknown, short: boolean): Validated<SetupDocument> {
  const checked = validate(value, short);
  return checked.kind === 'valid' ? checked : { kind: 'invalid', errors: checked.errors.map(withAdvice) };
}

const SECRET = /password|secret|token|hash|digest|(^|_)keys?$/i;

/** Replaces the message of an unknown member with advice about the member that was probably meant. */
function withAdvice(error: FieldError): FieldError {
  const steps = error.path.split('/').slice(1);
  const name = steps.at(-1);
  if (name === undefined) return error;
  const members = membersAt(SETUP_SCHEMA, steps.slice(0, -1));
  if (members.length === 0 || members.includes(name)) return error;
  if (SECRET.test(name))
    return { ...error, message: 'This member is unknown, and this file must not contain secrets.' };
  const meant = didYouMean(name, members);
  return { ...error, message: meant === '' ? 'This member is unknown.' : `This member is unknown${meant}` };
}

function membersAt(schema: TSchema, steps: readonly string[]): readonly string[] {
  let at: unknown = schema;
  for (const step of steps) at = member(member(at, 'properties'), step) ?? member(at, 'items');
  return Object.keys(Object(member(at, 'properties')));
}

function member(value: unknown, name: string): unknown {
  const members: Readonly<Record<string, unknown>> = typeof value === 'object' && value !== null ? { ...value } : {};
  return Object.hasOwn(members, name) ? members[name] : undefined;
}
