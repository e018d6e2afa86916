/** Metrics of the keys of issuers: their fetches, and how many issuers have usable ones. */

import type { Metrics } from './metrics.ts';

export interface IssuerKeyReports {
  readonly fetched: (outcome: 'success' | 'failure') => void;
  /** Sets the number of issuers by the state of their keys. */
  readonly counted: (states: Readonly<Record<'current' | 'failing' | 'stale', number>>) => void;
}

export function issuerKeyReports(metrics: Metrics): IssuerKeyReports {
  const fetches = { success: 0, failure: 0 };
  let states = { current: 0, failing: 0, stale: 0 };
  metrics.show('postern_issuer_key_fetches_total', () => Object.entries(fetches));
  metrics.show('postern_issuers', () => Object.entries(states));
  return {
    fetched: (outcome) => {
      fetches[outcome]++;
    },
    counted: ({ current, failing, stale }) => {
      states = { current, failing, stale };
    },
  };
}
