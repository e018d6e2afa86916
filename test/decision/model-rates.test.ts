import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compileGrant, compileTenant } from '../../src/decision/compile.ts';
import type { Principal } from '../../src/decision/model.ts';
import { type ModelRate, modelRatesOf, RATE_DIMENSIONS } from '../../src/decision/model-rates.ts';
import { parseId, parseTenantId } from '../../src/domain/ids.ts';
import type { RateLimitRule } from '../../src/domain/records.ts';
import { runs } from '../support/properties.ts';

function must<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('a constant of the test is invalid');
  return value;
}

const TENANT = must(parseTenantId('acme'));
const USER = must(parseId('usr', `usr_${'0'.repeat(26)}`));
const KEY = must(parseId('key', `key_${'0'.repeat(26)}`));

const glob = fc
  .array(fc.constantFrom('a', 'b', 'ab', '*'), { minLength: 1, maxLength: 4 })
  .map((pieces) => pieces.join(''));
const model = fc.array(fc.constantFrom('a', 'b'), { minLength: 1, maxLength: 5 }).map((letters) => letters.join(''));
const amount = fc.option(fc.nat({ max: 100 }), { nil: undefined });
const rule = fc
  .record({
    models: fc.array(glob, { minLength: 1, maxLength: 3 }),
    requests_per_minute: amount,
    tokens_per_minute: amount,
    parallel: amount,
  })
  .map((members): RateLimitRule => JSON.parse(JSON.stringify(members)));
const rules = fc.option(fc.array(rule, { maxLength: 5 }), { nil: undefined });

function tenantWith(rateLimits: readonly RateLimitRule[] | undefined) {
  const settings = rateLimits === undefined ? {} : { rate_limits: rateLimits };
  return compileTenant({ id: TENANT, status: 'active', settings, quotas: {}, roles: [], policies: [] });
}

function keyWith(own: readonly RateLimitRule[] | undefined, ofOwner: readonly RateLimitRule[] | undefined): Principal {
  const owner = { id: USER, roles: [], rateLimits: ofOwner };
  const grant = compileGrant(['*'], {});
  return { kind: 'api_key', id: KEY, tenantId: TENANT, grant, owner, rateLimitRpm: undefined, rateLimits: own };
}

/** The same by a pass over every rule for every dimension. */
function naive(list: readonly RateLimitRule[] | undefined, name: string) {
  return RATE_DIMENSIONS.flatMap((dimension) => {
    const fits = (list ?? []).flatMap((each) =>
      each[dimension] === undefined
        ? []
        : each.models
            .filter((text) => new RegExp(`^${text.replaceAll('*', '.*')}$`).test(name))
            .map((text) => ({ text, limit: each[dimension], models: each.models })),
    );
    const stars = (text: string): number => [...text].filter((letter) => letter === '*').length;
    const better = (a: string, b: string): boolean => {
      if ((stars(a) === 0) !== (stars(b) === 0)) return stars(a) === 0;
      const [letters, others] = [a.length - stars(a), b.length - stars(b)];
      if (letters !== others) return letters > others;
      return stars(a) === stars(b) ? a < b : stars(a) < stars(b);
    };
    const [first, ...others] = fits;
    if (first === undefined) return [];
    const best = others.reduce((left, right) => (better(right.text, left.text) ? right : left), first);
    return [{ dimension, limit: best.limit, models: best.models }];
  });
}

const shown = (rates: readonly Partial<ModelRate>[]) =>
  rates.map((each) => JSON.stringify(Object.entries(each).sort()));

describe('the limits by model of a request', () => {
  test('are those of the most specific glob for each dimension, at each level', () => {
    fc.assert(
      fc.property(rules, rules, rules, model, (ofTenant, ofOwner, own, name) => {
        const expected = [
          ...naive(ofTenant, name).map((each) => ({ level: 'tenant', id: TENANT, ...each })),
          ...naive(ofOwner, name).map((each) => ({ level: 'user', id: USER, ...each })),
          ...naive(own, name).map((each) => ({ level: 'key', id: KEY, ...each })),
        ];
        const found = modelRatesOf(tenantWith(ofTenant), keyWith(own, ofOwner), name);
        expect(shown(found).toSorted()).toEqual(shown(expected as Partial<ModelRate>[]).toSorted());
      }),
      { numRuns: runs(500) },
    );
  });

  test('are none without a model, and those of a user itself are of the level user', () => {
    const all = [{ models: ['*'], parallel: 1 }];
    const user: Principal = {
      ...{ kind: 'user', id: USER, tenantId: TENANT, roles: [], platformAdmin: false, sessionId: undefined },
      rateLimits: all,
    };
    expect(modelRatesOf(tenantWith(all), user, undefined)).toEqual([]);
    expect(modelRatesOf(tenantWith(all), user, 'a').map(({ level, id }) => [level, id])).toEqual([
      ['tenant', TENANT],
      ['user', USER],
    ]);
  });
});
