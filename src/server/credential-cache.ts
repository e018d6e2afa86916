/**
 * Wires the modules that resolve a credential from memory: signing keys, access tokens, change feed, credential cache.
 */

import { randomBytes } from 'node:crypto';
import type { Config } from '../config/config.ts';
import { CredentialCache } from '../credential-cache/credential-cache.ts';
import type { ChangeListener } from '../credential-cache/ports.ts';
import { buildRouteTable, type RouteTable } from '../decision/routes.ts';
import { StoreClock } from '../domain/store-clock.ts';
import { IssuerUserProvisioning } from '../iam/users/admit-issuer-user.ts';
import { issuerTokenReader } from '../identity/issuer-token-reader.ts';
import { rotationTimes } from '../identity/signing-key-plan.ts';
import { SigningKeys } from '../identity/signing-keys.ts';
import { AccessTokens } from '../identity/tokens.ts';
import { PostgresCacheLoader } from '../store/cache-loader.ts';
import { ChangeFeed, type FlushReason } from '../store/feed.ts';
import { issuerKeyRequests } from '../store/issuer-key-requests.ts';
import { installationIssuer } from '../store/meta.ts';
import { signingKeyStore } from '../store/signing-keys.ts';
import { watchSigningKey } from '../telemetry/state-metrics.ts';
import { Prices } from './prices.ts';
import { tracedSource } from './traced.ts';
import type { WiringContext } from './wiring-context.ts';

export interface CredentialServices {
  readonly keys: SigningKeys;
  readonly tokens: AccessTokens;
  readonly feed: ChangeFeed;
  readonly live: CredentialCache;
  readonly prices: Prices;
  readonly routes: RouteTable;
  /** The clock of the database. Each read of the feed, at least one a second, updates it. */
  readonly clock: StoreClock;
  /**
   * Returns the database's time in milliseconds since the epoch, for comparison with times in the store. Before the
   * first read of the feed: this machine's time.
   */
  readonly now: () => number;
  /** Registers a listener for a database that may lack the last changes, after a restore or a failover. */
  readonly onStoreReplaced: (listener: () => void) => void;
}

const STORE_REPLACED: ReadonlySet<FlushReason> = new Set(['epoch', 'timeline', 'behind']);

/** Starts the modules, which stop with the stack. They have no listener. */
export async function startCredentialCache(
  wiring: WiringContext,
  stack: AsyncDisposableStack,
): Promise<CredentialServices> {
  const { config, store, telemetry } = wiring;
  const monotonicMs = (): number => performance.now();
  const clock = new StoreClock();
  const now = (): number => clock.nowMs(monotonicMs(), Date.now);
  const keys = signingKeys(wiring, now, monotonicMs);
  stack.defer(() => keys.close());
  const tokens = new AccessTokens({
    keys,
    issuer: config.issuer ?? (await installationIssuer(store.db)),
    audience: config.audience,
    ttlSeconds: Math.floor(config.token.accessTtlMs / 1000),
    clock: now,
  });
  const listeners: ChangeListener[] = [];
  const replacedListeners: (() => void)[] = [];
  const feed = new ChangeFeed({
    db: store.db,
    listeners,
    notifications: config.database.notifications,
    clock,
    events: {
      ...telemetry.feedEvents,
      onFlush: (reason) => {
        telemetry.feedEvents.onFlush(reason);
        if (STORE_REPLACED.has(reason)) for (const listener of replacedListeners) listener();
      },
    },
  });
  stack.defer(() => feed.stop());
  const routes = routeTable(config);
  const live = new CredentialCache({
    builtinRoles: routes.builtinRoles,
    source: tracedSource(new PostgresCacheLoader(store.db), telemetry.tracing),
    verifier: tokens,
    issuers: {
      reader: issuerTokenReader,
      admission: new IssuerUserProvisioning({ db: store.db, random: randomBytes, now }),
      refresh: issuerKeyRequests({
        db: store.db,
        monotonicMs,
        onFault: (err) => telemetry.log.warn({ part: 'issuers', err }, 'the keys of an issuer could not be asked for'),
      }),
      maxKeyAgeMs: config.issuers.maxStalenessMs,
    },
    feed,
    maxCredentials: config.cache.credentials,
    maxStalenessMs: config.cache.maxStalenessMs,
    monotonicMs,
  });
  const prices = new Prices({
    db: store.db,
    onFault: (err) => telemetry.log.warn({ part: 'prices', err }, 'the prices could not be read'),
  });
  stack.defer(() => prices.close());
  listeners.push(live, keys, prices);
  telemetry.watch({ live: () => live.stats(), feedAgeMs: () => monotonicMs() - feed.polledAtMs, now });
  watchSigningKey(telemetry.metrics, () => keys.ageMs());
  await feed.start();
  await keys.start();
  await prices.start();
  return {
    keys,
    tokens,
    feed,
    live,
    prices,
    routes,
    clock,
    now,
    onStoreReplaced: (listener) => void replacedListeners.push(listener),
  };
}

function signingKeys(
  { config, store, telemetry }: WiringContext,
  clock: () => number,
  monotonicMs: () => number,
): SigningKeys {
  return new SigningKeys({
    store: signingKeyStore(store.db),
    secretKey: store.secretKey,
    otherSecretKey: store.otherSecretKey,
    times: rotationTimes(config.token.accessTtlMs),
    clock,
    monotonicMs,
    onFault: (err) => telemetry.log.warn({ part: 'signing keys', err }, 'the signing keys could not be renewed'),
  });
}

/** Compiles the built-in routes and the configured ones, which `config` has checked. */
export function routeTable({ routes }: Pick<Config, 'routes'>): RouteTable {
  const result = buildRouteTable(routes);
  if (result.kind === 'error') throw new Error(`routes: ${result.message}`);
  return result.table;
}
