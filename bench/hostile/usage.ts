/** The usage that Postern booked beside the usage that the upstream reported, tenant by tenant. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { LedgerReport } from '../../src/demo/ledger.ts';
import type { Administrator, Sums } from './administrator.ts';

const BOOKING_TIMEOUT_MS = 30_000;
const POLL_MS = 1000;
/** The upstream keeps its last 10,000 entries; the benchmark reads them more often than that. */
const READ_EVERY_MS = 15_000;

export interface Comparison {
  readonly tenant: string;
  readonly booked: Sums;
  readonly ledger: Sums;
}

/** Collects the ledger's entries while the load runs. */
export class LedgerReader {
  readonly #url: string;
  readonly #timer: NodeJS.Timeout;
  readonly #seen = new Set<string>();
  readonly #sums = new Map<string, { requests: number; total_tokens: number }>();

  constructor(url: string) {
    this.#url = url;
    this.#timer = setInterval(() => void this.read().catch(() => undefined), READ_EVERY_MS);
  }

  async read(): Promise<void> {
    const report = (await (await fetch(this.#url)).json()) as LedgerReport;
    for (const { id, tenant, total_tokens } of report.data) {
      if (this.#seen.has(id)) continue;
      this.#seen.add(id);
      const sums = this.#sums.get(tenant ?? '') ?? { requests: 0, total_tokens: 0 };
      this.#sums.set(tenant ?? '', { requests: sums.requests + 1, total_tokens: sums.total_tokens + total_tokens });
    }
  }

  of(tenant: string): Sums {
    return this.#sums.get(tenant) ?? { requests: 0, total_tokens: 0 };
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}

/** Waits until both are equal for every tenant, 30 s at most. */
export async function compareUsage(
  administrator: Administrator,
  reader: LedgerReader,
  tenants: readonly string[],
): Promise<readonly Comparison[]> {
  const deadline = performance.now() + BOOKING_TIMEOUT_MS;
  for (;;) {
    await reader.read();
    const compared: Comparison[] = [];
    for (const tenant of tenants) {
      compared.push({ tenant, booked: await administrator.usage(tenant), ledger: reader.of(tenant) });
    }
    if (compared.every(isEqual) || performance.now() > deadline) return compared;
    await sleep(POLL_MS);
  }
}

export function isEqual({ booked, ledger }: Comparison): boolean {
  return booked.requests === ledger.requests && booked.total_tokens === ledger.total_tokens;
}
