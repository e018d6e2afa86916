/** The schemas of requests to /v1/iam/api-keys. */

import { Type } from 'typebox';
import { notBoth } from '../schema/grammar.ts';
import { asksAlso, component, nullable } from '../schema/keywords.ts';
import {
  closed,
  countedPage,
  metadata,
  oneOf,
  resourceConstraints,
  somePatterns,
  tenantFilter,
  title,
} from '../schema/schemas.ts';
import { MAX_DAYS } from './expiry.ts';
import { MAX_IMPORTED, MAX_PREFIX_LENGTH } from './import.ts';
import { MAX_REVOKED, type RevocationRequest } from './revoke-several.ts';
import { DEFAULT_GRACE_SECONDS } from './update.ts';

const ownFilters = {
  user_id: Type.Optional(Type.String({ maxLength: 64 })),
  created_by: Type.Optional(
    Type.String({ maxLength: 64, description: 'The id of the user or API key that created the key.' }),
  ),
  expires_before: Type.Optional(Type.String({ format: 'date-time', maxLength: 64 })),
  prefix: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: MAX_PREFIX_LENGTH,
      pattern: '^[!-~]+$',
      description: 'The beginning of the shown `prefix`. Never send more of a key: addresses are logged on their way.',
    }),
  ),
  q: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 200,
      description: 'Any part of the name, description or metadata, in any case.',
    }),
  ),
};

export const filters = Type.Object(
  {
    ...countedPage,
    ...tenantFilter,
    status: Type.Optional(oneOf('active', 'expired', 'revoked')),
    ...ownFilters,
  },
  closed,
);

/** Absent or null = none. */
const keyName = nullable(title(100));

const expiry = {
  expires_at: Type.Optional(nullable(Type.String({ format: 'date-time', maxLength: 64 }))),
  expires_in_days: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_DAYS })),
};

/** PostgreSQL's integer is what it is kept in. */
const rateLimit = Type.Unsafe<number | null>({ type: ['integer', 'null'], minimum: 0, maximum: 2_147_483_647 });

export const newKey = component(
  'NewApiKey',
  Type.Object(
    {
      name: Type.Optional(keyName),
      description: title(500),
      metadata: Type.Optional(metadata),
      scopes: somePatterns,
      ...expiry,
      user_id: Type.Optional(nullable(Type.String({ maxLength: 64 }))),
      resource_constraints: Type.Optional(resourceConstraints),
      rate_limit_rpm: Type.Optional(rateLimit),
    },
    {
      ...closed,
      ...notBoth('expires_at', 'expires_in_days'),
      examples: [{ description: 'chat service', scopes: ['chat:write'], expires_in_days: 90 }],
    },
  ),
);

export const changes = component(
  'ApiKeyChanges',
  Type.Object(
    {
      name: Type.Optional(keyName),
      description: Type.Optional(title(500)),
      metadata: Type.Optional(metadata),
      scopes: Type.Optional(somePatterns),
      ...expiry,
      resource_constraints: Type.Optional(resourceConstraints),
      rate_limit_rpm: Type.Optional(rateLimit),
    },
    { ...closed, ...notBoth('expires_at', 'expires_in_days'), examples: [{ expires_in_days: 30 }] },
  ),
);

/** 30 days. */
const MAX_GRACE_SECONDS = 2_592_000;

export const rotation = component(
  'Rotation',
  Type.Object(
    {
      grace_seconds: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: MAX_GRACE_SECONDS,
          default: DEFAULT_GRACE_SECONDS,
          description:
            'The seconds during which the old secret also works, for platform requests and reads only. 0: the old secret stops working at once.',
        }),
      ),
    },
    closed,
  ),
);

const importedKey = Type.Object(
  {
    digest: Type.String({
      maxLength: 64,
      description: 'SHA-256 of the key in hexadecimal. The key itself is never sent.',
      ...asksAlso({ minLength: 64, pattern: '^[0-9A-Fa-f]{64}$' }),
    }),
    prefix: Type.String({
      minLength: 1,
      maxLength: MAX_PREFIX_LENGTH,
      pattern: '^[!-~]+$',
      description: 'The beginning of the key, shown in lists.',
    }),
    last_four: Type.String({ minLength: 4, maxLength: 4, pattern: '^[!-~]{4}$' }),
    name: Type.Optional(keyName),
    description: title(500),
    metadata: Type.Optional(metadata),
    scopes: somePatterns,
    ...expiry,
    user_id: Type.Optional(
      nullable(Type.String({ maxLength: 64, description: 'The owner; default: the tenant itself.' })),
    ),
    resource_constraints: Type.Optional(resourceConstraints),
    rate_limit_rpm: Type.Optional(rateLimit),
  },
  { ...closed, ...notBoth('expires_at', 'expires_in_days') },
);

export const imports = component(
  'ImportedApiKeys',
  Type.Object(
    { keys: Type.Array(importedKey, { minItems: 1, maxItems: MAX_IMPORTED }) },
    {
      ...closed,
      examples: [
        {
          keys: [
            {
              digest: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
              prefix: 'sk-old-a',
              last_four: '4f1b',
              description: 'chat service',
              scopes: ['chat:write'],
              expires_in_days: 90,
            },
          ],
        },
      ],
    },
  ),
);

/** Exactly one of `ids` and `filter`. */
export const revocation = component(
  'ApiKeysToRevoke',
  Type.Unsafe<RevocationRequest>({
    type: 'object',
    properties: {
      ids: { type: 'array', items: { type: 'string', maxLength: 64 }, minItems: 1, maxItems: MAX_REVOKED },
      filter: Type.Object(
        { status: Type.Optional(oneOf('active', 'expired')), ...ownFilters },
        { ...closed, minProperties: 1, description: 'Keys that match all members. `status` defaults to `active`.' },
      ),
    },
    ...closed,
    minProperties: 1,
    maxProperties: 1,
    examples: [{ filter: { q: 'old gateway' } }],
  }),
);

export const trial = Type.Object(
  {
    dry_run: Type.Optional(
      Type.Boolean({ description: '`true`: the server revokes nothing, and reports what it would revoke.' }),
    ),
  },
  closed,
);
