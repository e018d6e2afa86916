/** Wires the refresh of the keys of issuers. */

import { startPeriodicRuns } from '../concurrency/single-flight.ts';
import { countKeyStates } from '../iam/issuers/key-queries.ts';
import {
  type KeyRefreshParts,
  keyRefreshTurns,
  type RefreshReport,
  startKeyRefresh,
} from '../iam/issuers/refresh-keys.ts';
import { type IssuerKeyReports, issuerKeyReports } from '../telemetry/issuer-metrics.ts';
import type { WiringContext } from './wiring-context.ts';

const COUNT_EVERY_MS = 15_000;
/** Issuers of which this process remembers that it has reported their stale keys. */
const MAX_REPORTED = 10_000;

export interface IssuerKeys extends KeyRefreshParts {
  readonly reports: IssuerKeyReports;
  /** Ends the fetches under way. */
  readonly abort: () => void;
}

export function issuerKeyRefresh({ config, store, telemetry }: WiringContext): IssuerKeys {
  const { allowedHosts, maxStalenessMs } = config.issuers;
  const reports = issuerKeyReports(telemetry.metrics);
  const stop = new AbortController();
  return {
    db: store.db,
    fetch: { allowedHosts, signal: stop.signal },
    maxStalenessMs,
    turns: keyRefreshTurns(),
    onRefresh: refreshLog(telemetry, reports),
    reports,
    abort: () => stop.abort(),
  };
}

/** Logs the first failure of a series, the time at which keys have become stale, and the recovery. */
function refreshLog(
  { log }: WiringContext['telemetry'],
  { fetched }: IssuerKeyReports,
): (report: RefreshReport) => void {
  const stale = new Set<string>();
  return ({ issuer: { id, tenantId, failures }, outcome, isStale }) => {
    const about = { part: 'issuers', issuer: id, tenant: tenantId };
    if (outcome.kind === 'ok') {
      fetched('success');
      stale.delete(id);
      if (failures > 0) log.info(about, 'the keys of the issuer were fetched again');
      return;
    }
    fetched('failure');
    const { reason } = outcome;
    if (failures === 0) log.warn({ ...about, reason }, 'the keys of the issuer could not be fetched');
    if (!isStale || stale.has(id) || stale.size >= MAX_REPORTED) return;
    stale.add(id);
    log.warn({ ...about, event: 'issuer.keys_stale', reason }, 'the issuer has no keys that are new enough to be used');
  };
}

/** Refreshes the keys of issuers, and counts issuers by the state of their keys. @returns the function that stops it */
export function startIssuerKeys({ telemetry }: WiringContext, keys: IssuerKeys): () => Promise<void> {
  let isFailing = false;
  const onFault = (err: unknown): void => {
    if (!isFailing) telemetry.log.warn({ part: 'issuers', err }, 'the keys of issuers could not be read or stored');
    isFailing = true;
  };
  const stopRefresh = startKeyRefresh(keys, onFault);
  const count = async (): Promise<void> => {
    keys.reports.counted(await countKeyStates(keys.db.knex, keys.maxStalenessMs));
    isFailing = false;
  };
  const stopCount = startPeriodicRuns(() => count().catch(onFault), COUNT_EVERY_MS);
  return async () => {
    keys.abort();
    await Promise.all([stopRefresh(), stopCount()]);
  };
}
