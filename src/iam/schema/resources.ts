/** The schemas of the responses of /v1/iam that show sessions and the conditions of policies. */

import { Type } from 'typebox';
import { CONDITIONS, type Condition } from '../../decision/condition-table.ts';
import type { StoredConditions } from '../../domain/records.ts';
import { component } from './keywords.ts';

import { text } from './resource-parts.ts';
import { oneOf } from './schemas.ts';

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
