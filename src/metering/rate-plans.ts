/** The limits per minute by model of callers, for the models that they named last: a bounded number. */

import { createHash } from 'node:crypto';
import type { Principal, TenantView } from '../decision/model.ts';
import { type ModelRate, modelRatesOf } from '../decision/model-rates.ts';
import type { RateLimitRule } from '../domain/records.ts';
import type { AdmissionRequest, ModelLimit } from './admission.ts';
import type { RateSubject } from './rate-subjects.ts';

/** A limit by model and the subject that counts it, which is found when the limit first counts a request. */
interface PlannedRate {
  readonly limit: number;
  readonly label: ModelLimit;
  /** The name of the subject. */
  readonly name: string;
  subject: RateSubject | undefined;
}

type RatePlan = readonly PlannedRate[];

/** The plans of one caller in one tenant. They end with any change of what they were made of. */
interface PlansOfCaller {
  readonly tenant: TenantView;
  readonly userId: string | undefined;
  readonly ofUser: readonly RateLimitRule[] | undefined;
  readonly own: readonly RateLimitRule[] | undefined;
  readonly byModel: Map<string, RatePlan>;
}

const NO_PLAN: RatePlan = [];
const MAX_PLANS = 20_000;

export class RatePlans {
  /** By the id of the caller. A full table is cleared, which costs time and never correctness. */
  readonly #callers = new Map<string, PlansOfCaller>();
  #size = 0;

  /** Returns the limits that count the request, except places of `parallel`. */
  of({ tenant, principal, model, metered, reportsUsage }: AdmissionRequest): RatePlan {
    if (model === undefined || !(metered || reportsUsage)) return NO_PLAN;
    const user = principal.kind === 'user' ? principal : principal.owner;
    const own = principal.kind === 'user' ? undefined : principal.rateLimits;
    const ofUser = user?.rateLimits;
    if (tenant.settings.rate_limits === undefined && own === undefined && ofUser === undefined) return NO_PLAN;
    const known = this.#callers.get(principal.id);
    const isCurrent =
      known !== undefined &&
      known.tenant === tenant &&
      known.userId === user?.id &&
      known.ofUser === ofUser &&
      known.own === own;
    const plan = isCurrent ? known.byModel.get(model) : undefined;
    if (plan !== undefined) return plan;
    if (this.#size >= MAX_PLANS) {
      this.#callers.clear();
      this.#size = 0;
    }
    const byModel = isCurrent ? known.byModel : new Map<string, RatePlan>();
    const made = planOf(tenant, principal, model);
    this.#size += 1;
    this.#callers.set(principal.id, { tenant, userId: user?.id, ofUser, own, byModel: byModel.set(model, made) });
    return made;
  }
}

function planOf(tenant: TenantView, principal: Principal, model: string): RatePlan {
  return modelRatesOf(tenant, principal, model)
    .filter(({ dimension }) => dimension !== 'parallel')
    .map((rate) => {
      const { level, models, dimension, limit } = rate;
      return { limit, label: { level, models, dimension }, name: rateSubjectName(rate), subject: undefined };
    });
}

/**
 * Returns the name of the subject that counts a limit, in every process. A change of the globs begins a new count. The
 * store keeps names in an index, so their length is bounded.
 */
export function rateSubjectName({ level, id, dimension, models }: ModelRate): string {
  const globs = createHash('sha256').update(JSON.stringify(models)).digest('base64url').slice(0, 16);
  return `${level}:${id} ${dimension} ${globs}`;
}
