/** Limits by model of tenants, users and keys: which of them count a request. */

import type { RateLimitRule } from '../domain/records.ts';
import { compileGlob, type Glob, globMatches } from './globs.ts';
import type { Principal, TenantView } from './model.ts';
import { compareSpecificity } from './specificity.ts';

export const MAX_RATE_RULES = 32;
export const MAX_RATE_GLOBS = 16;

type RateLevel = 'tenant' | 'user' | 'key';

export const RATE_DIMENSIONS = ['requests_per_minute', 'tokens_per_minute', 'parallel'] as const;
export type RateDimension = (typeof RATE_DIMENSIONS)[number];

export interface ModelRate {
  readonly level: RateLevel;
  /** The id of the tenant, the user or the key. */
  readonly id: string;
  readonly dimension: RateDimension;
  /** The globs of its rule. All models that they match share one count. */
  readonly models: readonly string[];
  readonly limit: number;
}

/**
 * Returns the limits that count requests of the caller for the model: for each level and dimension, that of the rule
 * with the most specific glob. A key's owner counts as its user.
 * @param model undefined = none, which no rule counts
 */
export function modelRatesOf(tenant: TenantOfRates, principal: Principal, model: string | undefined): ModelRate[] {
  const rates: ModelRate[] = [];
  if (model === undefined) return rates;
  for (const { rules, ...subject } of levelsOf(tenant, principal)) addRates(rates, subject, rules, model);
  return rates;
}

/** Returns every limit of every rule of the tenant, and of the caller. */
export function allModelRates(tenant: TenantOfRates, principal?: Principal): ModelRate[] {
  return levelsOf(tenant, principal).flatMap(({ rules, ...subject }) =>
    rules.flatMap((rule) =>
      RATE_DIMENSIONS.flatMap((dimension) => {
        const limit = rule[dimension];
        return limit === undefined ? [] : [{ ...subject, dimension, models: rule.models, limit }];
      }),
    ),
  );
}

type TenantOfRates = Pick<TenantView, 'id' | 'settings'>;

interface LevelRules {
  readonly level: RateLevel;
  readonly id: string;
  readonly rules: readonly RateLimitRule[];
}

/** Returns the levels that have rules. */
function levelsOf({ id: tenantId, settings }: TenantOfRates, principal: Principal | undefined): LevelRules[] {
  const levels: LevelRules[] = [];
  const add = (level: RateLevel, id: string, rules: readonly RateLimitRule[] | undefined): void => {
    if (rules !== undefined) levels.push({ level, id, rules });
  };
  add('tenant', tenantId, settings.rate_limits);
  const user = principal?.kind === 'api_key' ? principal.owner : principal;
  if (user !== undefined) add('user', user.id, user.rateLimits);
  if (principal?.kind === 'api_key') add('key', principal.id, principal.rateLimits);
  return levels;
}

/** Appends the limit of each dimension that a rule states. */
function addRates(
  rates: ModelRate[],
  subject: Pick<ModelRate, 'level' | 'id'>,
  rules: readonly RateLimitRule[],
  model: string,
): void {
  const left = new Set<RateDimension>(RATE_DIMENSIONS);
  for (const { glob, rule } of orderOf(rules)) {
    if (left.size === 0) return;
    if (!globMatches(glob, model)) continue;
    for (const dimension of left) {
      const limit = rule[dimension];
      if (limit === undefined) continue;
      left.delete(dimension);
      rates.push({ ...subject, dimension, models: rule.models, limit });
    }
  }
}

interface RuleOfGlob {
  readonly glob: Glob;
  readonly rule: RateLimitRule;
}

/** The globs of each list of rules, the most specific first. Of several rules for one glob, the first counts. */
const orders = new WeakMap<readonly RateLimitRule[], readonly RuleOfGlob[]>();

function orderOf(rules: readonly RateLimitRule[]): readonly RuleOfGlob[] {
  const known = orders.get(rules);
  if (known !== undefined) return known;
  const made = rules
    .flatMap((rule) => rule.models.map((text) => ({ glob: compileGlob(text), rule })))
    .sort((a, b) => compareSpecificity(a.glob.text, b.glob.text));
  orders.set(rules, made);
  return made;
}
