/**
 * Joins the rooms: the store, what proves a principal, the live cache, and the doors. The only file that knows them all.
 *
 * A server starts in three steps, so that commands can take only what they need: `openStore` (a database that answers),
 * `prepareStore` (schema, first administrator), `startServer` (the doors). What was started last is stopped first.
 */

import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type DirectoryRoom, openDirectoryRoom } from './admin/auth/directory-room.ts';
import type { AuthParts } from './admin/auth/parts.ts';
import { startUpkeep } from './admin/auth/upkeep.ts';
import { type BootstrapOutcome, bootstrap } from './admin/bootstrap.ts';
import type { Config, Secrets } from './config/config.ts';
import { directorySettings } from './config/directories.ts';
import { hostAndPort, listening } from './config/listening.ts';
import { buildRouteTable, type RouteTable } from './decision/routes.ts';
import { openDirectories } from './directory/directories.ts';
import type { Directories } from './directory/model.ts';
import { createGate } from './extauthz/gate.ts';
import { limiterOver, settlingWith } from './extauthz/limiter.ts';
import { createRandomPool } from './extauthz/random-pool.ts';
import { startExtAuthz } from './extauthz/server.ts';
import { apiRoutes } from './http/api-routes.ts';
import { trustProxies } from './http/client-address.ts';
import { withDescription } from './http/description.ts';
import { readiness, startHealthServer } from './http/health.ts';
import { createHttp } from './http/server.ts';
import { macUnder } from './identity/mac.ts';
import type { Passwords } from './identity/passwords.ts';
import { deriveKey } from './identity/seal.ts';
import { rotationTimes } from './identity/signing-key-plan.ts';
import { SigningKeys } from './identity/signing-keys.ts';
import { AccessTokens } from './identity/tokens.ts';
import { Live } from './live/live.ts';
import { notingUses } from './live/noting.ts';
import type { ChangeListener } from './live/ports.ts';
import { Limits } from './metering/limits.ts';
import { holderName, RESERVATION_KEY_BYTES } from './metering/reservation-ids.ts';
import type { Mac } from './store/audit-chain.ts';
import { AuditSealer } from './store/audit-sealer.ts';
import { type Database, openDatabase } from './store/database.ts';
import { startEmbedded } from './store/embedded/embedded.ts';
import { embeddedSecretKey } from './store/embedded/secret-key.ts';
import { ChangeFeed } from './store/feed.ts';
import { KeyUses } from './store/last-use.ts';
import { PostgresLiveSource } from './store/live-source.ts';
import { checkSecretKey, installationIssuer } from './store/meta.ts';
import { openMetering, postgresMetering } from './store/metering/metering.ts';
import { migrate } from './store/migrate.ts';
import { signingKeyStore } from './store/signing-keys.ts';
import type { Telemetry } from './telemetry/telemetry.ts';

/** How long running checks may take to finish when the server is told to stop. */
const DRAIN_MS = 5_000;
/** How often health is told whether this server can decide. */
const HEALTH_EVERY_MS = 1_000;

export interface Store {
  readonly db: Database;
  /** For another process on the same database. */
  readonly url: string;
  readonly secretKey: string;
  close(): Promise<void>;
}

/** Where the database is and what seals its secrets, when it is not for this process to find out. */
export interface StoreAddress {
  readonly url: string;
  readonly secretKey: string;
}

/** A database that answers. Rejects with an EmbeddedError, or a Fault when a remote one does not answer. */
export async function openStore(config: Config, secrets: Secrets, telemetry: Telemetry, given?: StoreAddress): Promise<Store> {
  const address = given ?? remoteAddress(secrets);
  if (address !== undefined) {
    const db = openDatabase({ url: address.url, poolMax: config.database.poolSize });
    return { ...address, db, close: () => db.close() };
  }
  await using opening = new AsyncDisposableStack();
  const embedded = await startEmbedded({
    dataDir: config.dataDir,
    log: (message) => telemetry.log.info({ part: 'postgresql' }, message),
  });
  opening.defer(() => embedded.stop());
  const secretKey = secrets.secretKey ?? (await embeddedSecretKey(config.dataDir));
  const db = openDatabase({ url: embedded.url, poolMax: config.database.poolSize });
  opening.defer(() => db.close());
  const opened = opening.move();
  return { db, url: embedded.url, secretKey, close: () => opened.disposeAsync() };
}

function remoteAddress({ databaseUrl, secretKey }: Secrets): StoreAddress | undefined {
  if (databaseUrl === undefined) return undefined;
  if (secretKey === undefined) throw new Error('secret-key is required with database.url');
  return { url: databaseUrl, secretKey };
}

/** Brings the schema up to this program, checks the secret key, and makes the first administrator when there is none. */
export async function prepareStore(
  config: Config,
  secrets: Secrets,
  store: Store,
  passwords: Passwords,
): Promise<BootstrapOutcome> {
  await migrate(store.db);
  await checkSecretKey(store.db, store.secretKey);
  const parts = { db: store.db, passwords, now: Date.now, random: (size: number) => randomBytes(size) };
  return bootstrap(parts, { email: config.bootstrap.email, password: secrets.bootstrapPassword });
}

export interface ServerParts {
  readonly config: Config;
  readonly secrets: Secrets;
  readonly store: Store;
  readonly passwords: Passwords;
  readonly telemetry: Telemetry;
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

export interface LiveRooms {
  readonly keys: SigningKeys;
  readonly tokens: AccessTokens;
  readonly feed: ChangeFeed;
  readonly live: Live;
}

/** What can prove a credential and keep the world hot, without any door. Stopped with the stack. */
export async function joinLive(
  { config, store, telemetry }: Pick<ServerParts, 'config' | 'store' | 'telemetry'>,
  stack: AsyncDisposableStack,
): Promise<LiveRooms> {
  const monotonicMs = (): number => performance.now();
  const keys = new SigningKeys({
    store: signingKeyStore(store.db),
    secretKey: store.secretKey,
    times: rotationTimes(config.token.accessTtlMs),
    clock: Date.now,
    monotonicMs,
    onFault: (error) => telemetry.log.warn({ part: 'signing keys', err: error }, 'the signing keys could not be looked after'),
  });
  stack.defer(() => keys.close());
  const tokens = new AccessTokens({
    keys,
    issuer: config.issuer ?? (await installationIssuer(store.db)),
    audience: config.audience,
    ttlSeconds: Math.floor(config.token.accessTtlMs / 1000),
    clock: Date.now,
  });
  const listeners: ChangeListener[] = [];
  const feed = new ChangeFeed({
    db: store.db,
    listeners,
    notifications: config.database.notifications,
    events: telemetry.feedEvents,
  });
  stack.defer(() => feed.stop());
  const live = new Live({
    source: new PostgresLiveSource(store.db),
    verifier: tokens,
    feed,
    maxCredentials: config.cache.credentials,
    maxStalenessMs: config.cache.maxStalenessMs,
    monotonicMs,
  });
  listeners.push(live, keys);
  telemetry.watch({ live: () => live.stats(), feedAgeMs: () => monotonicMs() - feed.polledAtMs });
  await feed.start();
  await keys.start();
  return { keys, tokens, feed, live };
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

/** What the audit log is sealed under. */
export function auditMac(store: Pick<Store, 'secretKey'>): Mac {
  return macUnder(store.secretKey, 'audit-chain');
}

function auditSealer({ config, store, telemetry }: Pick<ServerParts, 'config' | 'store' | 'telemetry'>): AuditSealer {
  const log = telemetry.log.child({ part: 'audit' });
  return new AuditSealer({
    db: store.db,
    mac: auditMac(store),
    keepMs: config.audit.retentionMs,
    events: {
      onError: (err) => log.warn({ err }, 'the audit log could not be sealed'),
      onBroken: (what) => log.error({ what }, 'the chain of the audit log is broken: run postern verify-audit'),
      onAnchor: (anchor) => log.info({ anchor }, 'the newest seal of the audit log'),
      onRemoved: (rows) => log.info({ rows }, 'audit rows older than audit.retention were removed'),
    },
  });
}

/** Stopped with the stack: after the doors, so that what the last requests spent is booked too. */
async function startLimits(
  { config, store, telemetry }: Pick<ServerParts, 'config' | 'store' | 'telemetry'>,
  stack: AsyncDisposableStack,
): Promise<Limits> {
  const log = telemetry.log.child({ part: 'limits' });
  const db = openMetering(store.db);
  stack.defer(() => db.close());
  const limits = new Limits({
    ...config.limits,
    store: postgresMetering(db),
    holder: holderName(randomBytes(8)),
    reservationKey: deriveKey(store.secretKey, 'reservation-ids').subarray(0, RESERVATION_KEY_BYTES),
    now: Date.now,
    monotonicMs: () => performance.now(),
    metersItself: metersItself(config),
    onFault: (err) => log.warn({ err }, 'what limits and usage asked of the database failed'),
  });
  stack.defer(() => limits.stop());
  await limits.start();
  return limits;
}

/** Undefined where none is configured. Nothing is connected to before somebody logs in. */
export function configuredDirectories(
  config: Pick<Config, 'directories'>,
  secrets: Pick<Secrets, 'directoryPasswords'>,
): Directories | undefined {
  const settings = directorySettings(config, secrets);
  return settings.length === 0 ? undefined : openDirectories(settings);
}

/** Says in the log what may be wrong with their configuration and keeps nobody out. */
export function warnOfDirectories(directories: Directories | undefined, { log }: Pick<Telemetry, 'log'>): void {
  for (const problem of directories?.problems ?? []) log.warn({ part: 'directory' }, problem);
}

function directoryRoom(
  { config, telemetry }: Pick<ServerParts, 'config' | 'telemetry'>,
  directories: Directories | undefined,
): DirectoryRoom | undefined {
  if (directories === undefined) return undefined;
  const names = config.directories.map(({ name }) => name);
  return openDirectoryRoom({ directories, names, report: telemetry.directory });
}

/** The built-in routes and the configured ones, which `config` has checked. */
export function routeTable(config: Config): RouteTable {
  const result = buildRouteTable(config.routes);
  if (result.kind === 'error') throw new Error(`routes: ${result.message}`);
  return result.table;
}

/** Whether a tenant's usage comes by events: what Envoy reports of it is not booked then. */
export function metersItself({ usage }: Pick<Config, 'usage'>): (tenant: string) => boolean {
  const tenants = new Set(usage.eventsTenants);
  return usage.source === 'events' ? () => true : (tenant) => tenants.has(tenant);
}

/** Running requests finish; a client that has been sending one for longer is cut off. */
async function drainHttp(http: ReturnType<typeof createHttp>): Promise<void> {
  const cut = setTimeout(() => http.server.closeAllConnections(), DRAIN_MS);
  await http.close();
  clearTimeout(cut);
}
