/** Metrics of the keys of issuers: their fetches, and how many issuers have usable ones. */

import { counter, gauge } from './metric-definition.ts';
import type { Metrics } from './metrics.ts';

export const ISSUER_METRICS = {
  postern_issuer_key_fetches_total: counter(['outcome'], 'Fetches of the keys of an issuer, by outcome.', {
    explanation: '`success` or `failure`. The log and the issuer name the reason.',
  }),
  postern_issuers: gauge(['keys'], 'Enabled issuers whose keys are fetched, by the state of their keys.', {
    together: 'max',
    explanation:
      '`current`, `failing` (the last fetch failed, the last good keys are in use) or `stale` (never fetched, or older than `issuers.max-staleness`: tokens of these issuers are answered 503). Counted every 15 s. Alert on `failing` that lasts an hour.',
  }),
} as const;

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
