/**
 * The schemas of /v1/iam/api-keys beside those of the resource: lists, rotation, import and revocation of several keys.
 */

import { type Static, Type } from 'typebox';
import type { FieldError } from '../../domain/problem-details.ts';
import { ordersBy } from '../list/sort.ts';
import { notBoth } from '../schema/grammar.ts';
import { asksAlso, component, countOf, described, flagOf, nullable, optionalText } from '../schema/keywords.ts';
import { keyId, rejection, text } from '../schema/resource-parts.ts';
import { closed, countedPage, dryRun, oneOf, only, searchText, tenantFilter } from '../schema/schemas.ts';
import { ApiKey, MAX_LIFETIME_DAYS, newKey } from './entity.ts';
import { KEY_ORDERS } from './list-queries.ts';
import { UNUSED_DAYS } from './platform-permissions.ts';

/** Longest shown prefix of an imported key, in characters. */
const MAX_PREFIX_LENGTH = 32;

export const keyOrders = ordersBy(KEY_ORDERS, '-created_at');

const filters = {
  user_id: Type.Optional(Type.String({ maxLength: 64 })),
  created_by: optionalText(64, 'The id of the user or API key that created the key.'),
  expires_before: Type.Optional(Type.String({ format: 'date-time', maxLength: 64 })),
  without_expiry: only('`true`: keys that never expire.'),
  unused_days: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: MAX_LIFETIME_DAYS,
      description: 'Keys that are at least this many days old and were not used in that time.',
    }),
  ),
  issuer: optionalText(64, 'Keys that tokens of the issuer with this name prove.'),
  prefix: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: MAX_PREFIX_LENGTH,
      pattern: '^[!-~]+$',
      description: 'The beginning of the shown `prefix`. Never send more of a key: addresses are logged on their way.',
    }),
  ),
  q: searchText(
    "Any part of the name, description or metadata, in any case. With `admin:users` also of the owner's name and email address.",
  ),
};

export const keyList = Type.Object(
  {
    ...countedPage,
    ...tenantFilter,
    sort: keyOrders.parameter,
    include: Type.Optional(
      described(
        oneOf('owner'),
        '`owner`: each key also has `owner`, with the name and email address of its user. Needs `admin:users`.',
      ),
    ),
    status: Type.Optional(oneOf('active', 'disabled', 'expired', 'revoked')),
    // Not a filter of revocations, because records of uses may be missing.
    wider_than_used: only(
      `\`true\`: keys that are at least ${UNUSED_DAYS} days old and have a scope for a permission of the platform without a recorded use in the last ${UNUSED_DAYS} days. A hint: records of uses may be missing.`,
    ),
    ...filters,
  },
  closed,
);

export type KeyListQuery = Static<typeof keyList>;
export type KeyFilterQuery = Pick<KeyListQuery, 'status' | keyof typeof filters>;

/** Long enough to give every client of the key the new secret by hand. */
export const DEFAULT_GRACE_SECONDS = 3600;
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

/** An imported key has a secret. */
const { proof: _proof, ...importedMembers } = newKey.properties;

/** The largest number of keys of one import, and of one revocation. */
const MAX_IMPORTED = 1000;
export const MAX_REVOKED = 1000;

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
    ...importedMembers,
    user_id: Type.Optional(
      nullable(Type.String({ maxLength: 64, description: 'The owner; default: the tenant itself.' })),
    ),
  },
  { ...closed, ...notBoth('expires_at', 'expires_in_days') },
);

export type ImportedKey = Static<typeof importedKey>;

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

const revocationFilter = Type.Object(
  { status: Type.Optional(oneOf('active', 'disabled', 'expired')), ...filters },
  { ...closed, minProperties: 1, description: 'Keys that match all members. `status` defaults to `active`.' },
);

/** Exactly one of `ids` and `filter`. */
export const revocation = component(
  'ApiKeysToRevoke',
  Type.Unsafe<{ readonly ids: readonly string[] } | { readonly filter: Static<typeof revocationFilter> }>({
    type: 'object',
    properties: {
      ids: { type: 'array', items: { type: 'string', maxLength: 64 }, minItems: 1, maxItems: MAX_REVOKED },
      filter: revocationFilter,
    },
    ...closed,
    minProperties: 1,
    maxProperties: 1,
    examples: [{ filter: { q: 'old gateway' } }],
  }),
);

export const trial = dryRun('revokes');

export const ApiKeyImport = component(
  'ApiKeyImport',
  Type.Object({
    imported: countOf('The number of created keys.'),
    data: Type.Array(
      Type.Object({
        index: countOf('The index of the row in the request.'),
        outcome: described(
          oneOf('imported', 'exists', 'rejected'),
          '`exists`: the tenant already has a key with this digest, and the key is unchanged.',
        ),
        id: nullable(described(keyId, 'Null for `rejected`.')),
        ...rejection,
        errors: Type.Optional(
          Type.Unsafe<readonly FieldError[]>(Type.Array(Type.Object({ path: text, message: text }))),
        ),
      }),
    ),
  }),
);

/** The members that identify a revoked key to a person. */
const { name, description, user_id, prefix, last_four, expires_at, last_used_at } = ApiKey.properties;
const revokedKey = Type.Object({ name, description, user_id, prefix, last_four, expires_at, last_used_at });

export const ApiKeyRevocations = component(
  'ApiKeyRevocations',
  Type.Object({
    dry_run: Type.Boolean(),
    revoked: countOf('The number of keys that were revoked, or that would be revoked in a dry run.'),
    has_more: flagOf('The filter matched more keys than one request takes. Send it again for the rest.'),
    data: Type.Array(
      Type.Object({
        id: text,
        outcome: oneOf('revoked', 'would_revoke', 'already_revoked', 'not_found', 'rejected'),
        ...rejection,
        key: Type.Optional(revokedKey),
      }),
    ),
  }),
);
