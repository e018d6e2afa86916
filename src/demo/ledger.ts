/** The usage that the stand-in upstream reported, for comparison with the metered usage. */

export interface Usage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
}

export interface LedgerEntry extends Usage {
  /** RFC 3339, UTC. */
  readonly time: string;
  /** The id of the answer that carried the usage. */
  readonly id: string;
  readonly path: string;
  readonly model: string;
  readonly stream: boolean;
  /** From Postern's headers x-postern-tenant and x-postern-subject; null if they are absent. */
  readonly tenant: string | null;
  readonly subject: string | null;
}

export interface LedgerReport {
  readonly object: 'list';
  readonly total: Usage & { readonly requests: number };
  /** The newest last. The ledger keeps only the newest entries; the totals count all. */
  readonly data: readonly LedgerEntry[];
}

const KEPT_ENTRIES = 10_000;

export interface Ledger {
  record(entry: LedgerEntry): void;
  report(): LedgerReport;
}

export function createLedger(): Ledger {
  const entries: LedgerEntry[] = [];
  let total = { requests: 0, prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
  return {
    record(entry) {
      entries.push(entry);
      if (entries.length > KEPT_ENTRIES) entries.splice(0, entries.length - KEPT_ENTRIES);
      total = {
        requests: total.requests + 1,
        prompt_tokens: total.prompt_tokens + entry.prompt_tokens,
        completion_tokens: total.completion_tokens + entry.completion_tokens,
        total_tokens: total.total_tokens + entry.total_tokens,
      };
    },
    report: () => ({ object: 'list', total, data: entries }),
  };
}
