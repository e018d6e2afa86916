/** The schemas of the responses of /v1/iam that show sessions and the conditions of policies. */

import { Type } from 'typebox';
import { CONDITIONS, type Condition } from '../../decision/condition-table.ts';
import type { StoredConditions } from '../../domain/records.ts';
import { component, nullable } from './keywords.ts';

import { instant, text } from './resource-parts.ts';
import { oneOf } from './schemas.ts';

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
