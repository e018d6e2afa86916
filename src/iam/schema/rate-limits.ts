/** Limits by model: the member `rate_limits` of keys, users and the settings of tenants. */

import { isDeepStrictEqual } from 'node:util';
import { Type } from 'typebox';
import { MAX_RATE_GLOBS, MAX_RATE_RULES, RATE_DIMENSIONS } from '../../decision/model-rates.ts';
import { validateModels } from '../../decision/validate.ts';
import type { FieldError } from '../../domain/problem-details.ts';
import type { RateLimitRule } from '../../domain/records.ts';
import { aResourceName } from './grammar.ts';
import { asksAlso, component } from './keywords.ts';

const amount = (description: string) => ({
  type: 'integer',
  minimum: 0,
  maximum: Number.MAX_SAFE_INTEGER,
  description: `${description} 0 allows nothing. Absent: the rule does not limit them.`,
});

const rule = component(
  'RateLimitRule',
  Type.Unsafe<RateLimitRule>({
    type: 'object',
    required: ['models'],
    additionalProperties: false,
    // The models and a limit.
    ...asksAlso({ minProperties: 2 }),
    properties: {
      models: {
        type: 'array',
        minItems: 1,
        maxItems: MAX_RATE_GLOBS,
        items: { type: 'string', maxLength: 512, ...aResourceName },
        description:
          'Names of models, or globs. All models that they match share the limits. For each limit, the rule with the most specific glob counts.',
      },
      requests_per_minute: amount('Requests per minute.'),
      tokens_per_minute: amount('Tokens per minute.'),
      parallel: amount('Requests that may run at the same time.'),
    },
  }),
);

const list = {
  items: rule,
  maxItems: MAX_RATE_RULES,
  description: `Limits of requests by model; at most ${MAX_RATE_RULES} rules. An update replaces all rules. Null or an empty list: none.`,
};

export const rateLimits = Type.Unsafe<readonly RateLimitRule[]>({ type: 'array', ...list });
export const rateLimitsOrNull = Type.Unsafe<readonly RateLimitRule[] | null>({ type: ['array', 'null'], ...list });

/** @param path the JSON pointer of the list */
export function rateLimitErrors(
  rules: readonly RateLimitRule[] | null | undefined,
  path = '/rate_limits',
): readonly FieldError[] {
  const errors: FieldError[] = [];
  const limited = new Set<string>();
  for (const [i, each] of (rules ?? []).entries()) {
    errors.push(...validateModels(each.models, `${path}/${i}/models`));
    if (RATE_DIMENSIONS.every((dimension) => each[dimension] === undefined))
      errors.push({ path: `${path}/${i}`, message: `must have ${RATE_DIMENSIONS.join(', ')} or several of them` });
    for (const dimension of RATE_DIMENSIONS) {
      if (each[dimension] === undefined) continue;
      for (const [j, glob] of each.models.entries()) {
        const name = `${dimension} ${glob}`;
        const message = `must occur in one rule with ${dimension}, so that it is clear which limit counts`;
        if (limited.has(name)) errors.push({ path: `${path}/${i}/models/${j}`, message });
        limited.add(name);
      }
    }
  }
  return errors;
}

/** Returns the stored form: null if there are no rules. */
export function storedRateLimits(rules: readonly RateLimitRule[] | null): readonly RateLimitRule[] | null {
  return rules === null || rules.length === 0 ? null : rules;
}

export function sameRateLimits(a: readonly RateLimitRule[] | null, b: readonly RateLimitRule[] | null): boolean {
  return isDeepStrictEqual(a, b);
}
