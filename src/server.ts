/**
 * Joins the rooms: the store, what proves a principal, the live cache, and the doors. With its parts in `server/`, the only place that
 * knows them all.
 *
 * A server starts in three steps, so that commands can take only what they need: `openStore` (a database that answers) and
 * `prepareStore` (schema, first administrator) in `server/store.ts`, `startServer` (the doors) here. What was started last is stopped first.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import type { AuthParts } from './admin/auth/parts.ts';
import { startUpkeep } from './admin/auth/upkeep.ts';
import type { Config, Secrets } from './config/config.ts';
import { hostAndPort, listening } from './config/listening.ts';
import { buildRouteTable, type RouteTable } from './decision/routes.ts';
import { createGate } from './extauthz/gate.ts';
import { limiterOver, settlingWith } from './extauthz/limiter.ts';
import { createRandomPool } from './extauthz/random-pool.ts';
import { startExtAuthz } from './extauthz/server.ts';
import { apiRoutes } from './http/api-routes.ts';
import { trustProxies } from './http/client-address.ts';
import { withDescription } from './http/description.ts';
import { readiness, startHealthServer } from './http/health.ts';
import { createHttp } from './http/server.ts';
import type { Passwords } from './identity/passwords.ts';
import { notingUses } from './live/noting.ts';
import { auditSealer } from './server/audit.ts';
import { configuredDirectories, directoryRoom, warnOfDirectories } from './server/directories.ts';
import type { Joining } from './server/joining.ts';
import { metersItself, startLimits } from './server/limits.ts';
import { joinLive } from './server/live-rooms.ts';
import { DecisionCounts } from './store/decision-counts.ts';
import { KeyUses } from './store/last-use.ts';

/** How long running checks may take to finish when the server is told to stop. */
const DRAIN_MS = 5_000;
/** How often health is told whether this server can decide. */
const HEALTH_EVERY_MS = 1_000;

export interface ServerParts extends Joining {
  readonly secrets: Secrets;
  readonly passwords: Passwords;
  /** False for one of several workers: another process answers for the health of all, and has made way for a socket that they share. */
  readonly health: boolean;
}

export interface Server {
  readonly addresses: { readonly grpc: string; readonly http: string; readonly admin: string | undefined };
  /** What use cases work with: for whoever runs them in this process without a socket. */
  readonly admin: AuthParts;
  /** What keeps this server from deciding now; empty = ready. */
  ready(): Promise<readonly string[]>;
  /** Drains and stops: not ready at once, running checks finish, then the doors and all behind them are closed. The store stays open. */
  close(): Promise<void>;
}

/** Opens the doors. Rejects with one sentence naming the setting when an address cannot be had; then nothing stays started. */
export async function startServer(parts: ServerParts): Promise<Server> {
  const { config, secrets, store, passwords, telemetry } = parts;
  await using starting = new AsyncDisposableStack();
  const { keys, tokens, feed, live } = await joinLive(parts, starting);

  let draining = false;
  const ready = readiness({
    draining: () => draining,
    feedAgeMs: () => performance.now() - feed.polledAtMs,
    maxStalenessMs: config.cache.maxStalenessMs,
    signingKeysReady: () => keys.published().length > 0,
  });
  const directories = configuredDirectories(config, secrets);
  if (parts.health) warnOfDirectories(directories, telemetry);
  const random = createRandomPool();
  const admin: AuthParts = {
    db: store.db,
    feed,
    flush: () => live.forget(),
    now: Date.now,
    // A copy, so that nobody holds a view of bytes that are somebody else's.
    random: (size) => random.take(size).slice(),
    passwords,
    tokens,
    secretKey: store.secretKey,
    login: {
      refreshIdleMs: config.token.refreshIdleTtlMs,
      refreshMs: config.token.refreshTtlMs,
      failuresPerAccount: config.login.failuresPerAccount,
      failuresPerAddress: config.login.failuresPerAddress,
    },
    directory: directoryRoom(parts, directories),
  };
  starting.defer(
    startUpkeep(store.db, (error) => {
      telemetry.log.warn({ part: 'upkeep', err: error }, 'what logins leave behind could not be taken away');
    }),
  );
  const sealer = auditSealer(parts);
  sealer.start();
  // Stopped after the doors, so that what the last requests did is sealed too.
  starting.defer(() => sealer.stop());
  const table = routeTable(config);

  const uses = new KeyUses({
    db: store.db,
    maxKeys: config.cache.credentials,
    onError: (error) => {
      telemetry.log.warn({ part: 'last use', err: error, waiting: uses.waiting }, 'the last use of keys could not be written');
    },
  });
  // Stopped after the doors, so that the uses of the last requests are written too.
  starting.defer(() => uses.stop());
  const resolver = notingUses(live, uses);
  const counts = new DecisionCounts({
    db: store.db,
    tally: telemetry.tally,
    onError: (error) => {
      telemetry.log.warn({ part: 'decision counts', err: error }, 'what was decided could not be counted in the database');
    },
  });
  // Stopped after the doors, so that the last decisions are counted too.
  starting.defer(() => counts.stop());

  const http = createHttp(
    {
      live: resolver,
      now: Date.now,
      random: admin.random,
      trusted: trustProxies(config.http.trustedProxies),
      log: telemetry.log.child({ part: 'http' }),
    },
    withDescription(
      apiRoutes({
        ...admin,
        origins: config.http.origins.length === 0 ? undefined : config.http.origins,
        onLogin: telemetry.login,
        live,
        routes: table,
        metering: { windowMs: config.limits.windowMs, metersItself: metersItself(config) },
        keySet: tokens,
      }),
    ),
  );
  const limits = await startLimits(parts, starting);

  let httpClosed: Promise<void> | undefined;
  const closeHttp = (): Promise<void> => {
    httpClosed ??= drainHttp(http);
    return httpClosed;
  };
  starting.defer(closeHttp);
  const { host, port } = config.http.listen;
  const httpAddress = await listening('http.listen', config.http.listen, http.listen({ host, port }));

  const gate = createGate({
    routes: table,
    resolver,
    limiter: limiterOver(limits),
    observer: telemetry.observer,
    trustedHops: config.clientIp.trustedHops,
    forwardCredential: config.forwardCredential,
  });
  const grpcListen = config.grpc.listen.kind === 'unix' ? `unix:${config.grpc.listen.path}` : hostAndPort(config.grpc.listen);
  const grpc = await listening(
    'grpc.listen',
    grpcListen,
    startExtAuthz(gate, {
      listen: grpcListen,
      tls: config.grpc.tls,
      shared: !parts.health,
      listener: settlingWith(limits),
    }),
  );
  starting.defer(() => grpc.drain(DRAIN_MS));
  telemetry.watchMetering(
    () => limits.stats,
    () => grpc.accessLog,
  );

  const health = parts.health
    ? await listening(
        'admin.listen',
        config.admin.listen,
        startHealthServer({
          listen: config.admin.listen,
          ready,
          warnings: directories?.problems ?? [],
          metrics: telemetry.metrics,
        }),
      )
    : undefined;
  if (health !== undefined) starting.defer(() => health.close());

  const tellHealth = async (): Promise<void> => grpc.setReady((await ready()).length === 0);
  await tellHealth();
  const ticking = setInterval(() => void tellHealth(), HEALTH_EVERY_MS);
  starting.defer(() => clearInterval(ticking));

  const running = starting.move();
  return {
    addresses: {
      grpc: grpc.address,
      http: httpAddress.replace(/^http:\/\//, ''),
      admin: health === undefined ? undefined : hostAndPort({ kind: 'tcp', ...health.address }),
    },
    admin,
    ready,
    async close() {
      draining = true;
      grpc.setReady(false);
      if (config.drain.noticeMs > 0) await sleep(config.drain.noticeMs);
      await Promise.all([grpc.drain(DRAIN_MS), closeHttp()]);
      await running.disposeAsync();
    },
  };
}

/** The built-in routes and the configured ones, which `config` has checked. */
export function routeTable(config: Config): RouteTable {
  const result = buildRouteTable(config.routes);
  if (result.kind === 'error') throw new Error(`routes: ${result.message}`);
  return result.table;
}

/** Running requests finish; a client that has been sending one for longer is cut off. */
async function drainHttp(http: ReturnType<typeof createHttp>): Promise<void> {
  const cut = setTimeout(() => http.server.closeAllConnections(), DRAIN_MS);
  await http.close();
  clearTimeout(cut);
}
