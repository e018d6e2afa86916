/** The rate limits of one request: its tenant's and its key's. A request consumes a unit of both, or of neither. */

import type { AdmissionRequest, RateRefusal } from './admission.ts';
import type { MeteringCounts } from './counts.ts';
import type { RateLeases, RateResult } from './rate-leases.ts';
import { type RateState, tighter } from './rate-state.ts';

/** `rate`: the state of the tighter limit; undefined if there is none. */
export type RateOutcome = RateRefusal | { readonly kind: 'passed'; readonly rate: RateState | undefined };

export class RateLimits {
  readonly #leases: RateLeases;
  readonly #counts: MeteringCounts;

  constructor(leases: RateLeases, counts: MeteringCounts) {
    this.#leases = leases;
    this.#counts = counts;
  }

  /** Returns a promise if the check must wait for the store. */
  admit(request: AdmissionRequest, now: number): RateOutcome | Promise<RateOutcome> {
    const { tenantId, tenantRpm } = request;
    const tenant = tenantRpm === undefined ? undefined : this.#leases.consume('tenant', tenantId, tenantRpm, now);
    if (tenant instanceof Promise) return this.#afterWait(request, tenant);
    if (tenant?.kind === 'refused') return this.#combine(tenant, undefined);
    const key = this.#consumeOfKey(request, now);
    return key instanceof Promise ? key.then((result) => this.#combine(tenant, result)) : this.#combine(tenant, key);
  }

  async #afterWait(request: AdmissionRequest, pending: Promise<RateResult>): Promise<RateOutcome> {
    const tenant = await pending;
    return this.#combine(tenant, tenant.kind === 'refused' ? undefined : await this.#consumeOfKey(request));
  }

  #consumeOfKey({ keyId, keyRpm }: AdmissionRequest, now?: number): RateResult | Promise<RateResult> | undefined {
    return keyId === undefined || keyRpm === undefined ? undefined : this.#leases.consume('key', keyId, keyRpm, now);
  }

  #combine(tenant: RateResult | undefined, key: RateResult | undefined): RateOutcome {
    if (tenant?.kind === 'refused') return this.#refuse('This tenant', tenant.state);
    if (key?.kind === 'refused') {
      if (tenant !== undefined) this.#leases.release(tenant.windows);
      return this.#refuse('This API key', key.state);
    }
    this.#counts.rateAllowed += 1;
    return { kind: 'passed', rate: tighter(tenant?.state, key?.state) };
  }

  #refuse(subject: string, rate: RateState): RateRefusal {
    this.#counts.rateRefused += 1;
    const detail = `${subject} may send ${rate.limit} requests per minute. Try again in ${rate.resetSeconds} s.`;
    return { kind: 'refused', code: 'rate_limit_exceeded', detail, rate };
  }
}
