/** The schemas of the responses of /v1/iam/api-keys. */

import { Type } from 'typebox';
import { ERRORS } from '../../domain/errors.ts';
import { component, nullable } from '../schema/keywords.ts';

import {
  Constraints,
  instant,
  keyId,
  limit,
  Metadata,
  notices,
  text,
  texts,
  withheld,
} from '../schema/resource-parts.ts';
import { oneOf } from '../schema/schemas.ts';

const key = {
  id: keyId,
  tenant_id: text,
  user_id: nullable(Type.String({ description: 'Null if the tenant owns the key.' })),
  name: nullable(text),
  description: text,
  metadata: Metadata,
  scopes: texts,
  resource_constraints: Constraints,
  rate_limit_rpm: nullable(limit),
  prefix: text,
  last_four: text,
  imported: Type.Boolean({
    description:
      'The secret was issued by another system and imported as a digest. A rotation gives the key a secret of Postern.',
  }),
  status: oneOf('active', 'expired', 'revoked'),
  expires_at: nullable(instant),
  created_by: Type.Object(
    {
      type: oneOf('user', 'api_key', 'system'),
      id: nullable(Type.String({ description: 'Null for the system, which creates the keys of a demonstration.' })),
    },
    { description: 'The principal that created or imported the key.' },
  ),
  created_at: instant,
  updated_at: instant,
  last_used_at: nullable(instant),
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
        id: Type.Unsafe({ ...keyId, type: ['string', 'null'], description: 'Null for `rejected`.' }),
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
    has_more: Type.Boolean({
      description: 'The filter matched more keys than one request takes. Send it again for the rest.',
    }),
    data: Type.Array(
      Type.Object({
        id: text,
        outcome: oneOf('revoked', 'would_revoke', 'already_revoked', 'not_found', 'rejected'),
        ...rejection,
        key: Type.Optional(
          Type.Object({
            name: nullable(text),
            description: text,
            user_id: nullable(text),
            prefix: text,
            last_four: text,
            expires_at: nullable(instant),
            last_used_at: nullable(instant),
          }),
        ),
      }),
    ),
  }),
);
