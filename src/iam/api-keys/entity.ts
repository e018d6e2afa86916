/**
 * API keys: the definition of their columns and of what the API shows, accepts and may change. The text of a key is
 * stored nowhere.
 */

import { type Static, Type } from 'typebox';
import { type IssuerId, parseId, type UserId } from '../../domain/ids.ts';
import { type ClaimRule, MAX_SUBJECT_LENGTH } from '../../domain/records.ts';
import { claimRules } from '../issuers/entity.ts';
import {
  changesComponent,
  column,
  converted,
  derived,
  hidden,
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
import { aName, notBoth } from '../schema/grammar.ts';
import { component, described, flagOf, nullable, shownText, shownTextOrNull } from '../schema/keywords.ts';
import { rateLimits, rateLimitsOrNull } from '../schema/rate-limits.ts';
import {
  Constraints,
  instant,
  keyId,
  limit,
  metadataPairs,
  notices,
  tenantId,
  text,
  texts,
  userId,
  withheld,
} from '../schema/resource-parts.ts';
import { closed, metadata, oneOf, resourceConstraints, somePatterns, title } from '../schema/schemas.ts';

/** The longest lifetime that a request may name in days: ten years. */
export const MAX_LIFETIME_DAYS = 3653;
/** The largest value of PostgreSQL's `integer`. */
const MAX_RATE_LIMIT = 2_147_483_647;

const proof = Type.Object(
  {
    issuer: text,
    subject: text,
    claims: Type.Unsafe<readonly ClaimRule[]>(Type.Array(Type.Object({ claim: text, in: texts }))),
    ambiguous: Type.Optional(
      Type.Unsafe<true>({
        const: true,
        description: 'Present if another key has the same proof: a token that matches proves none of them. Read-only.',
      }),
    ),
  },
  {
    description:
      'The tokens of an issuer that prove the key, in place of a secret. `prefix` and `last_four` are empty then. Null: the key has a secret.',
  },
);

const proofRequest = Type.Object(
  {
    issuer: Type.String({ maxLength: 64, description: 'The name of an issuer of the tenant.', ...aName }),
    subject: Type.String({
      minLength: 1,
      maxLength: MAX_SUBJECT_LENGTH,
      description: 'The subject of the token, or a glob. An exact subject beats a glob.',
      examples: ['system:serviceaccount:agents:*'],
    }),
    claims: Type.Optional(claimRules),
  },
  {
    ...closed,
    description:
      'Tokens of an issuer prove the key, in place of a secret. Needs `admin:keys`. A key keeps its kind: an update changes the proof of a key without a secret only.',
  },
);
export type ProofRequest = Static<typeof proofRequest>;

export const apiKey = {
  id: column(keyId),
  tenant_id: column(tenantId),
  user_id: column(
    nullable(Type.Unsafe<UserId>({ type: 'string', description: 'Null if the tenant owns the key.' })),
    // Absent or null: the caller without `admin:keys`, otherwise the tenant.
    { accepts: Type.Optional(nullable(Type.String({ maxLength: 64 }))), changes: false },
  ),
  name: column(nullable(text), { accepts: Type.Optional(nullable(title(100))), changes: true }),
  description: column(text, { accepts: title(500), changes: true }),
  metadata: column(metadataPairs, { accepts: Type.Optional(metadata), changes: true }),
  scopes: column(texts, { accepts: somePatterns, changes: true }),
  resource_constraints: column(Constraints, { accepts: Type.Optional(resourceConstraints), changes: true }),
  /** Requests per minute. Null: no limit of the key's own. */
  rate_limit_rpm: column(nullable(limit), {
    accepts: Type.Optional(nullable(Type.Integer({ minimum: 0, maximum: MAX_RATE_LIMIT }))),
    changes: true,
  }),
  rate_limits: column(nullable(rateLimits), { accepts: Type.Optional(rateLimitsOrNull), changes: true }),
  prefix: column(text),
  last_four: column(text),
  proof: joined(nullable(proof), { accepts: Type.Optional(nullable(proofRequest)), changes: true }),
  imported: column(
    flagOf(
      'The secret was issued by another system and imported as a digest. A rotation gives the key a secret of Postern.',
    ),
  ),
  status: derived(oneOf('active', 'disabled', 'expired', 'revoked')),
  /** Null: never. */
  expires_at: column(nullable(instant), {
    accepts: Type.Optional(nullable(Type.String({ format: 'date-time', maxLength: 64 }))),
    changes: true,
  }),
  expires_in_days: input({
    accepts: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_LIFETIME_DAYS })),
    changes: true,
  }),
  revoked_at: hidden<Date | null>(),
  disabled_at: hidden<Date | null>(),
  /** The id of a user or a key, or `system`. */
  created_by: converted(
    text,
    Type.Object(
      {
        type: oneOf('user', 'api_key', 'system'),
        id: shownTextOrNull('Null for the system, which creates the keys of a demonstration.'),
      },
      { description: 'The principal that created or imported the key.' },
    ),
  ),
  created_at: column(instant),
  updated_at: column(instant),
  last_used_at: column(nullable(instant)),
  /** SHA-256 of the text of the key, and of the text before the last rotation while that is in its grace period. */
  digest: unselected<Buffer>(),
  previous_digest: unselected<Buffer | null>(),
  previous_until: unselected<Date | null>(),
  /** The stored form of `proof`. */
  proof_issuer_id: unselected<IssuerId | null>(),
  proof_subject: unselected<string | null>(),
  proof_is_glob: unselected<boolean>(),
  /** JSON. */
  proof_claims: unselected<string | null>(),
};

export interface KeyRow extends RowOf<typeof apiKey> {}
/** The columns of the table that statements may name. */
export interface KeyTable extends TableOf<typeof apiKey> {}
export interface KeyResource extends ResourceOf<typeof apiKey> {}
export type KeyStatus = KeyResource['status'];

/** The user that owns a key, as a list with `include=owner` shows it. */
const keyOwner = Type.Object({ id: userId, name: text, email: nullable(text) });
export type KeyOwnerResource = Static<typeof keyOwner>;

export const ApiKey = shownComponent('ApiKey', apiKey, {
  owner: Type.Optional(
    described(
      nullable(keyOwner),
      'The user that owns the key, in lists with `include=owner`. Null if the tenant owns the key.',
    ),
  ),
  ...notices,
});

/** A key with its text, which only the response of its creation or rotation contains. */
export const IssuedApiKey = component(
  'IssuedApiKey',
  Type.Object({
    ...ApiKey.properties,
    key: Type.Optional(shownText('The text of the key. Only this response contains it.')),
    ...withheld,
  }),
);

export type IssuedKey = Static<typeof IssuedApiKey>;

const oneExpiry = notBoth('expires_at', 'expires_in_days');

export const newKey = newComponent('NewApiKey', apiKey, {
  ...oneExpiry,
  examples: [{ description: 'chat service', scopes: ['chat:write'], expires_in_days: 90 }],
});

export const keyChanges = changesComponent('ApiKeyChanges', apiKey, {
  ...oneExpiry,
  examples: [{ expires_in_days: 30 }],
});

export type NewKey = Static<typeof newKey>;
export type KeyChanges = Static<typeof keyChanges>;

export function keyResource(key: KeyRow, nowMs: number): KeyResource {
  return resourceOf(apiKey, key, { status: statusOf(key, nowMs), created_by: creatorOf(key) });
}

function statusOf(key: KeyRow, nowMs: number): KeyStatus {
  if (key.revoked_at !== null) return 'revoked';
  if (key.disabled_at !== null) return 'disabled';
  return isExpired(key, nowMs) ? 'expired' : 'active';
}

export function isExpired({ expires_at: expiresAt }: Pick<KeyRow, 'expires_at'>, nowMs: number): boolean {
  return expiresAt !== null && expiresAt.getTime() <= nowMs;
}

function creatorOf({ created_by: id }: KeyRow): KeyResource['created_by'] {
  if (parseId('usr', id) !== undefined) return { type: 'user', id };
  if (parseId('key', id) !== undefined) return { type: 'api_key', id };
  return { type: 'system', id: null };
}
