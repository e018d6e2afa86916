/**
 * Bounds the bytes of bodies that the gate reads for one caller and for one tenant, and so the processor time that they take from others:
 * two token buckets in the memory of this process, asked before a body is read.
 */

/** Bytes per second; each is also the most at once, apart from the body that goes beyond it. */
export interface BodyRateOptions {
  /** For one API key, or for one user with an access token. */
  readonly callerRate: number;
  readonly tenantRate: number;
}

/** Bodies up to this size do not count: the rest of the check takes longer than reading them. */
const FREE_BYTES = 4096;
const BURST_MS = 1000;
const SWEEP_EVERY_MS = 1000;

/** By id, the time at which the bytes that were read are paid for. Of an id without debt nothing is kept. */
class Bucket {
  readonly #bytesPerMs: number;
  readonly #paidAtMs = new Map<string, number>();

  constructor(bytesPerSecond: number) {
    this.#bytesPerMs = bytesPerSecond / 1000;
  }

  get size(): number {
    return this.#paidAtMs.size;
  }

  waitMs(id: string, nowMs: number): number {
    return (this.#paidAtMs.get(id) ?? nowMs) - nowMs - BURST_MS;
  }

  take(id: string, bytes: number, nowMs: number): void {
    this.#paidAtMs.set(id, Math.max(nowMs, this.#paidAtMs.get(id) ?? nowMs) + bytes / this.#bytesPerMs);
  }

  sweep(nowMs: number): void {
    for (const [id, paidAtMs] of this.#paidAtMs) if (paidAtMs <= nowMs) this.#paidAtMs.delete(id);
  }
}

export class BodyRates {
  readonly #callers: Bucket;
  readonly #tenants: Bucket;
  #sweptAtMs = 0;

  constructor({ callerRate, tenantRate }: BodyRateOptions) {
    this.#callers = new Bucket(callerRate);
    this.#tenants = new Bucket(tenantRate);
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
    if (nowMs - this.#sweptAtMs >= SWEEP_EVERY_MS) {
      this.#sweptAtMs = nowMs;
      this.#callers.sweep(nowMs);
      this.#tenants.sweep(nowMs);
    }
    const waitMs = Math.max(this.#callers.waitMs(caller, nowMs), this.#tenants.waitMs(tenant, nowMs));
    if (waitMs > 0) return Math.ceil(waitMs / 1000);
    this.#callers.take(caller, bytes, nowMs);
    this.#tenants.take(tenant, bytes, nowMs);
    return undefined;
  }
}
