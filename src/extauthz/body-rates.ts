/**
 * Bounds the bytes of bodies that a process reads for one caller and for one tenant, and so the processor time that
 * they take from others. Two token buckets in the memory of the process are read before a body.
 */

import { ByteRates } from '../domain/byte-rates.ts';

/** Rates in bytes per second. The burst is one second, and one body may exceed it. */
export interface BodyRateOptions {
  /** The rate of one API key, or of one user with an access token. */
  readonly callerRate: number;
  readonly tenantRate: number;
}

/** Bodies up to this size do not count, because the rest of the check takes longer than reading them. */
const FREE_BYTES = 4096;
const BURST_MS = 1000;

export class BodyRates {
  readonly #callers: ByteRates;
  readonly #tenants: ByteRates;

  constructor({ callerRate, tenantRate }: BodyRateOptions) {
    this.#callers = new ByteRates({ bytesPerSecond: callerRate, burstMs: BURST_MS });
    this.#tenants = new ByteRates({ bytesPerSecond: tenantRate, burstMs: BURST_MS });
  }

  /** The number of callers and tenants whose buckets are not full. */
  get size(): number {
    return this.#callers.size + this.#tenants.size;
  }

  /**
   * Counts a body if the rates of the caller and of its tenant allow it. A body counts in both rates or in neither.
   * @param nowMs the time of a monotonic clock
   * @returns undefined if the body may be read; otherwise the seconds until one may be read, at least 1
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
