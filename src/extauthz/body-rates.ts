/**
 * Bounds the bytes of bodies that the gate reads for one caller and for one tenant, and so the processor time that they take from others:
 * two token buckets in the memory of this process, asked before a body is read.
 */

import { ByteRates } from '../domain/byte-rates.ts';

/** Bytes per second; each is also the most at once, apart from the body that goes beyond it. */
export interface BodyRateOptions {
  /** For one API key, or for one user with an access token. */
  readonly callerRate: number;
  readonly tenantRate: number;
}

/** Bodies up to this size do not count: the rest of the check takes longer than reading them. */
const FREE_BYTES = 4096;
const BURST_MS = 1000;

export class BodyRates {
  readonly #callers: ByteRates;
  readonly #tenants: ByteRates;

  constructor({ callerRate, tenantRate }: BodyRateOptions) {
    this.#callers = new ByteRates({ bytesPerSecond: callerRate, burstMs: BURST_MS });
    this.#tenants = new ByteRates({ bytesPerSecond: tenantRate, burstMs: BURST_MS });
  }

  /** How many callers and tenants have read bodies that are not yet paid for. */
  get size(): number {
    return this.#callers.size + this.#tenants.size;
  }

  /**
   * Counts a body if the caller's and its tenant's rates allow to read it. A body counts in both rates or in neither.
   * @param nowMs by a clock that never goes back
   * @returns undefined if the body may be read; otherwise whole seconds, at least 1, after which one may be
   */
  take(caller: string, tenant: string, bytes: number, nowMs: number): number | undefined {
    if (bytes <= FREE_BYTES) return undefined;
    const waitMs = Math.max(this.#callers.waitMs(caller, nowMs), this.#tenants.waitMs(tenant, nowMs));
    if (waitMs > 0) return Math.ceil(waitMs / 1000);
    this.#callers.take(caller, bytes, nowMs);
    this.#tenants.take(tenant, bytes, nowMs);
    return undefined;
  }
}
