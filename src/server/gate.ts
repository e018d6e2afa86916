/**
 * The gate: the credential cache, the limits and the gRPC listener that Envoy calls. The gate hashes no password and
 * parses no body of the management API, so no request of that API can block its event loop.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { hostAndPort, listening } from '../config/listening.ts';
import { notingUses } from '../credential-cache/noting.ts';
import { type CheckHandler, createCheckHandler } from '../extauthz/check-handler.ts';
import { limiterOver, readingLimiter, settlingWith } from '../extauthz/limiter.ts';
import { type ExtAuthzOptions, type ExtAuthzServer, startExtAuthz } from '../extauthz/server.ts';
import { readiness } from '../http/health.ts';
import { watchCalls } from '../telemetry/grpc-metrics.ts';
import { watchAccessLog, watchMetering } from '../telemetry/metering-metrics.ts';
import { certificateEnd, watchQuotas } from '../telemetry/state-metrics.ts';
import { startCredentialCache } from './credential-cache.ts';
import { limitReadings, limitWarnings, startLimits } from './limits.ts';
import { startRefusalAudit } from './refusals.ts';
import { keyUses, otherGateDenials, startDecisionWriters, startReplica } from './store-jobs.ts';
import { upstreamHeaders } from './upstream-headers.ts';
import type { ProcessIdentity, RunningServer, WiringContext } from './wiring-context.ts';

/** How long running checks may take to finish when the process stops. */
const DRAIN_MS = 5_000;
/** How often gRPC health learns whether this process can decide. */
const HEALTH_EVERY_MS = 1_000;

interface GateWiring extends WiringContext {
  readonly identity: ProcessIdentity;
  /** True if other processes share the listener's address, and one of them has removed a stale socket. */
  readonly sharesAddress: boolean;
}

export interface GateServer extends RunningServer {
  /**
   * Resolves when this process decides by every change up to `through`, or by nothing that it had cached. Never
   * rejects.
   * @param through a sequence number of the change feed; undefined = everything committed before the call
   */
  apply(through: number | undefined): Promise<void>;
}

/**
 * Starts the gate. Rejects with one sentence that names the setting if it cannot listen on an address. Then it stops
 * what it started.
 */
export async function startGate(wiring: GateWiring): Promise<GateServer> {
  const { config, telemetry, identity } = wiring;
  await using starting = new AsyncDisposableStack();
  await telemetry.openDecisionLog();
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

  // Stopped after the listener, so that the last uses and decisions are written.
  const uses = keyUses(wiring, starting);
  startDecisionWriters(wiring, starting);
  const refusals = startRefusalAudit(wiring);
  starting.defer(refusals.stop);
  const otherGate = otherGateDenials(wiring, services.now, starting);
  telemetry.metrics.show('postern_other_gate_denials_dropped_total', () => otherGate.dropped);
  const limits = await startLimits(wiring, services, starting);

  const gate = createCheckHandler({
    routes: services.routes,
    resolver: notingUses(live, uses),
    limiter: limiterOver(limits),
    shadow: {
      resolver: { resolve: (...asked) => live.examine(...asked) },
      limiter: readingLimiter(limitReadings(wiring, services)),
    },
    acceptsShadow: config.trial.enabled,
    observer: {
      observe(outcome) {
        telemetry.observer.observe(outcome);
        refusals.observe(outcome);
      },
    },
    trustedHops: config.clientIp.trustedHops,
    now: services.now,
    forwardCredential: config.forwardCredential,
    upstreamHeaders: upstreamHeaders(config, services),
    budgetHeader: config.limits.budgetHeader,
    maxBodyBytes: config.inspect.maxBodyBytes,
    bodyRates: config.inspect,
    tracing: telemetry.tracing,
  });
  const grpc = await startListener(wiring, gate, { listener: settlingWith(limits), otherGate });
  starting.defer(() => grpc.drain(DRAIN_MS));
  watchMetering(telemetry.metrics, () => limits.stats);
  watchAccessLog(telemetry.metrics, () => grpc.accessLog);
  watchCalls(telemetry.metrics, () => grpc.calls);
  watchQuotas(telemetry.metrics, config.metrics.tenantLabel, () => limits.quotas);

  const updateHealth = (): void => grpc.setReady(ready().length === 0);
  updateHealth();
  const ticking = setInterval(updateHealth, HEALTH_EVERY_MS);
  starting.defer(() => clearInterval(ticking));

  const running = starting.move();
  return {
    address: grpc.address,
    ready,
    warnings: () => limitWarnings(limits),
    async apply(through) {
      const { applied } = feed;
      if (through !== undefined && applied !== undefined && applied >= through) return;
      // A process that cannot read the feed must not decide from cached data.
      await feed.catchUp().catch(() => live.forget());
      await feed.settled();
    },
    async close() {
      draining = true;
      grpc.setReady(false);
      if (config.drain.noticeMs > 0) await sleep(config.drain.noticeMs);
      await running.disposeAsync();
    },
  };
}

function startListener(
  { config, telemetry, sharesAddress }: GateWiring,
  gate: CheckHandler,
  reports: Pick<ExtAuthzOptions, 'listener' | 'otherGate'>,
): Promise<ExtAuthzServer> {
  const { listen: address, transport, tls } = config.grpc;
  const listen = address.kind === 'unix' ? `unix:${address.path}` : hostAndPort(address);
  const server = startExtAuthz(gate, {
    ...reports,
    listen,
    transport,
    tls,
    onTlsReload: telemetry.tlsReload,
    onCertificate: tls === undefined ? undefined : certificateEnd(telemetry.metrics),
    shared: sharesAddress,
    maxBodyBytes: config.inspect.maxBodyBytes,
  });
  return listening('grpc.listen', listen, server);
}
