/**
 * The API: `/v1/auth`, `/v1/iam` and their documentation. It shares no event loop with the gate. It also runs jobs:
 * sealing the audit log, fetching
 * the keys of issuers, sending the events of webhooks, and removing rows that are no longer needed.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import type { Secrets } from '../config/config.ts';
import { listening } from '../config/listening.ts';
import { notingUses } from '../credential-cache/noting.ts';
import { proxyWarnings, watchForwarding } from '../http/forwarding.ts';
import { readiness } from '../http/health.ts';
import { DELETED_ROLES_UPKEEP, endedKeysUpkeep, RECENT_DECISIONS_UPKEEP, startUpkeep } from '../iam/auth/upkeep.ts';
import { WriteRate } from '../iam/caller/write-rate.ts';
import type { Passwords } from '../identity/passwords.ts';
import { type WiredApi, wireApi } from './api-wiring.ts';
import type { LocalGates } from './applied.ts';
import { auditSealer } from './audit.ts';
import { startCredentialCache } from './credential-cache.ts';
import { configuredDirectories, directoryLookups, directoryService } from './directories.ts';
import { startIssuerKeys } from './issuer-keys.ts';
import { startRefusalAudit } from './refusals.ts';
import { keyUses, startReplica } from './store-jobs.ts';
import { startWebhooks } from './webhooks.ts';
import type { ProcessIdentity, RunningServer, WiringContext } from './wiring-context.ts';

/** How long running requests may take to finish when the process stops. */
const DRAIN_MS = 5_000;

interface ApiWiring extends WiringContext {
  readonly secrets: Secrets;
  readonly passwords: Passwords;
  readonly identity: ProcessIdentity;
  readonly gates: LocalGates;
}

/**
 * Starts the API. Rejects with one sentence that names the setting if it cannot listen on an address. Then it stops
 * what it started.
 */
export async function startApi(wiring: ApiWiring): Promise<RunningServer> {
  const { config, secrets, store, telemetry, identity } = wiring;
  await using starting = new AsyncDisposableStack();
  const services = await startCredentialCache(wiring, starting);
  const { keys, feed, live } = services;
  await startReplica(wiring, feed, identity, starting);

  let draining = false;
  const ready = readiness({
    draining: () => draining,
    feedAgeMs: () => performance.now() - feed.polledAtMs,
    maxStalenessMs: config.cache.maxStalenessMs,
    signingKeysReady: () => keys.published().length > 0,
  });
  const directories = configuredDirectories(config, secrets, services.now);
  for (const problem of directories?.problems ?? []) telemetry.log.warn({ part: 'directory' }, problem);
  const warn = (message: string): void => telemetry.log.warn({ part: 'http' }, message);
  const settingWarnings = proxyWarnings(config.http);
  for (const warning of settingWarnings) warn(warning);
  const forwarding = watchForwarding(warn);
  const sealer = auditSealer(wiring);
  sealer.start();
  // Stopped after the listener, so that it also seals the rows of the last requests.
  starting.defer(() => sealer.stop());
  const refusals = startRefusalAudit(wiring);
  starting.defer(refusals.stop);
  const { admin, issuerKeys, webhooks, http } = wireApi(wiring, {
    services,
    tokens: services.tokens,
    resolver: notingUses(live, keyUses(wiring, starting)),
    passwords: wiring.passwords,
    gates: wiring.gates,
    directory: directoryService(wiring, directories),
    writes: new WriteRate(() => performance.now()),
    draining: () => draining,
    onUntrustedForwarding: forwarding.onUntrustedForwarding,
    onRefused: refusals.note,
  });
  const onUpkeepFault = (error: unknown): void => {
    telemetry.log.warn({ part: 'upkeep', err: error }, 'expired rows could not be removed');
  };
  starting.defer(startUpkeep(store.db, onUpkeepFault));
  for (const plan of [RECENT_DECISIONS_UPKEEP, DELETED_ROLES_UPKEEP])
    starting.defer(startUpkeep(store.db, onUpkeepFault, plan));
  const { retentionMs } = config.apiKeys;
  if (retentionMs !== undefined) starting.defer(startUpkeep(store.db, onUpkeepFault, endedKeysUpkeep(retentionMs)));
  const stopLookups = directoryLookups(admin, telemetry);
  if (stopLookups !== undefined) starting.defer(stopLookups);

  starting.defer(startIssuerKeys(wiring, issuerKeys));
  const webhookJobs = startWebhooks(wiring, webhooks);
  starting.defer(webhookJobs.stop);

  starting.defer(() => drainHttp(http));
  const { host, port } = config.http.listen;
  // Exclusive, so that the cluster module does not accept the connections in the supervisor.
  const address = await listening('http.listen', config.http.listen, http.listen({ host, port, exclusive: true }));

  const running = starting.move();
  return {
    address: address.replace(/^http:\/\//, ''),
    ready,
    warnings: () => [
      ...(directories?.problems ?? []),
      ...settingWarnings,
      ...forwarding.warnings(),
      ...webhookJobs.warnings(),
    ],
    async close() {
      draining = true;
      if (config.drain.noticeMs > 0) await sleep(config.drain.noticeMs);
      await running.disposeAsync();
    },
  };
}

async function drainHttp(http: WiredApi['http']): Promise<void> {
  const cut = setTimeout(() => http.server.closeAllConnections(), DRAIN_MS);
  await http.close();
  clearTimeout(cut);
}
