/** Parts that the schemas of several responses of /v1/iam share. */

import { Type } from 'typebox';
import { CONDITIONS, type Condition } from '../../decision/condition-table.ts';
import { ERRORS, type ErrorCode } from '../../domain/errors.ts';
import type { PrefixedId, TenantId } from '../../domain/ids.ts';
import type { StoredConditions } from '../../domain/records.ts';
import { MAX_COUNTED } from '../list/list.ts';
import { type Component, component, shownText, shownTextOrNull } from './keywords.ts';
import { oneOf } from './schemas.ts';

/** RFC 3339 in UTC. In code it is a Date, which `JSON.stringify` writes in that form. */
export const instant = Type.Unsafe<Date>({
  type: 'string',
  format: 'date-time',
  examples: ['2026-11-21T09:00:00.000Z'],
});
export const text = Type.String();
export const texts = Type.Unsafe<readonly string[]>(Type.Array(text));

export const limit = Type.Integer({ minimum: 0 });

/** The id of a resource, which begins with the prefix of its kind. */
export function prefixedId<P extends keyof PrefixedId>(prefix: P) {
  return Type.Unsafe<PrefixedId[P]>({
    type: 'string',
    pattern: `^${prefix}_[0-9a-z]{26}$`,
    examples: [`${prefix}_01jd5k3v8m2x7q9w4r6t0y1z3b`],
  });
}
export const userId = prefixedId('usr');
export const keyId = prefixedId('key');
export const tenantId = Type.Unsafe<TenantId>({ type: 'string' });

export const Constraints = component(
  'ResourceConstraints',
  Type.Object(
    { models: Type.Optional(texts), collections: Type.Optional(texts), agents: Type.Optional(texts) },
    {
      description: 'Names or globs by kind. An absent kind is unconstrained, an empty list permits none.',
    },
  ),
);

/** Pairs that people attach to a key, user or tenant. */
export const metadataPairs = component(
  'Metadata',
  Type.Unsafe<Record<string, string>>({
    type: 'object',
    additionalProperties: { type: 'string' },
    description: 'Pairs of text. Budgets can select keys by them. Nothing else in a decision reads them.',
  }),
);

/** The member that takes the place of the secret in a response that the server repeats for an Idempotency-Key. */
export const withheld = {
  secret_available: Type.Optional(
    Type.Unsafe<false>({
      const: false,
      description: 'Present instead of the secret if the server repeats a response.',
    }),
  ),
};

/** Notices of one resource. A list of patterns may hold a thousand. */
export const MAX_NOTICES = 20;

export const noticePart = component(
  'Notice',
  Type.Object({
    kind: oneOf('unneeded_pattern', 'binds_no_one', 'duplicate', 'shadowed', 'no_effect', 'no_price'),
    path: Type.String({
      description: 'JSON pointer to the member; empty: the whole resource.',
      examples: ['/permissions/0'],
    }),
    pattern: shownTextOrNull('The pattern that no route and no endpoint needs, or the model without a price.'),
    nearest: shownTextOrNull('The nearest pattern that covers a permission.'),
    message: text,
  }),
);

/** The members of roles, policies, keys and budgets that name the parts without effect. */
export const notices = {
  notices: Type.Optional(
    Type.Array(noticePart, {
      maxItems: MAX_NOTICES + 2,
      description: 'The parts of the resource that have no effect. Absent if there are none. Read-only.',
    }),
  ),
  notice: Type.Optional(shownText('The messages of `notices` as one text; absent without notices.')),
};

/** The reason why a row of a request was rejected. */
export const rejection = {
  code: Type.Optional(Type.Unsafe<ErrorCode>(oneOf(...Object.keys(ERRORS)))),
  detail: Type.Optional(text),
};

export function listOf(schema: Component) {
  return component(
    `${schema.title}List`,
    Type.Object({
      object: oneOf('list'),
      data: Type.Array(schema),
      has_more: Type.Boolean(),
      next_cursor: shownTextOrNull('The `cursor` of the next page; null on the last.'),
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

/**
 * The operators of a condition as a response shows them: stored operands are older than the bounds that requests have.
 */
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
  Type.Unsafe<StoredConditions>(
    Type.Object(
      {
        ...Object.fromEntries(Object.entries(CONDITIONS).map(([key, condition]) => [key, shownCondition(condition)])),
        timezone: Type.Optional(text),
      },
      { description: 'All must hold. Empty: the policy always applies.' },
    ),
  ),
);
