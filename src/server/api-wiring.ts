/** Wires the API without its listener and its jobs: the use cases, their endpoints and the HTTP server. */

import { join } from 'node:path';
import type { CredentialResolver } from '../credential-cache/resolution.ts';
import { createRandomPool } from '../extauthz/random-pool.ts';
import { trustProxies } from '../http/client-address.ts';
import { consoleEndpoints } from '../http/console/routes.ts';
import type { Endpoint } from '../http/endpoint.ts';
import type { PublishedKeys } from '../http/jwks.ts';
import { withDescription } from '../http/openapi/endpoint.ts';
import { createHttp } from '../http/server.ts';
import { apiEndpoints } from '../iam/api-routes.ts';
import type { DirectoryService } from '../iam/auth/directory-service.ts';
import type { AccessTokenParts, AuthParts, PasswordVerifier } from '../iam/auth/parts.ts';
import { homeOf } from '../iam/caller/home.ts';
import type { WriteRate } from '../iam/caller/write-rate.ts';
import type { RefusedRequest } from '../iam/change/refusal-windows.ts';
import { appliedEverywhere, feedOfServer, type LocalGates } from './applied.ts';
import type { CredentialServices } from './credential-cache.ts';
import { type IssuerKeys, issuerKeyRefresh } from './issuer-keys.ts';
import { meteringSettings } from './limits.ts';
import { ssoSettings } from './sso.ts';
import { type Webhooks, webhookSending } from './webhooks.ts';
import type { WiringContext } from './wiring-context.ts';

const CONSOLE_FOLDER = join(import.meta.dirname, '../../console/dist');

interface ApiParts {
  readonly services: Pick<CredentialServices, 'feed' | 'live' | 'routes' | 'prices' | 'now'>;
  readonly tokens: AccessTokenParts & PublishedKeys;
  /** Resolves the credentials of requests. */
  readonly resolver: CredentialResolver;
  readonly passwords: PasswordVerifier;
  readonly gates: LocalGates;
  /** Undefined if no directory is configured. */
  readonly directory: DirectoryService | undefined;
  readonly writes: WriteRate;
  readonly draining: () => boolean;
  /** Called for each request with X-Forwarded-For from a peer that is not trusted. */
  readonly onUntrustedForwarding: (peer: string) => void;
  /** Called for each request that is answered 401 or 403. */
  readonly onRefused: (refused: RefusedRequest) => void;
}

export interface WiredApi {
  readonly admin: AuthParts;
  readonly issuerKeys: IssuerKeys;
  readonly webhooks: Webhooks;
  /** The endpoints that the API's description covers. */
  readonly endpoints: readonly Endpoint[];
  /** Not listening yet. */
  readonly http: ReturnType<typeof createHttp>;
}

export function wireApi(wiring: WiringContext, parts: ApiParts): WiredApi {
  const { config, store, telemetry } = wiring;
  const issuerKeys = issuerKeyRefresh(wiring);
  const { tokens } = parts;
  const { feed, live, routes: platformRoutes, prices, now } = parts.services;
  const webhooks = webhookSending(wiring, now);
  const pool = createRandomPool();
  const admin: AuthParts = {
    db: store.db,
    feed: feedOfServer(feed, parts.gates),
    flush: () => live.forget(),
    now,
    // A copy, so that no caller holds a view of another caller's bytes.
    random: (size) => pool.take(size).slice(),
    passwords: parts.passwords,
    tokens,
    secretKey: store.secretKey,
    otherSecretKey: store.otherSecretKey,
    login: {
      refreshIdleMs: config.token.refreshIdleTtlMs,
      refreshMs: config.token.refreshTtlMs,
      ...config.login,
    },
    builtinRoles: platformRoutes.builtinRoles,
    directory: parts.directory,
    onRefreshReuse: () => telemetry.logins.refreshReuse(),
    writes: parts.writes,
  };
  const { random } = admin;
  const endpoints = withDescription(
    apiEndpoints({
      ...admin,
      origins: config.http.origins.length === 0 ? undefined : config.http.origins,
      resolver: parts.resolver,
      onLogin: (outcome) => telemetry.logins.login(outcome),
      live,
      routes: platformRoutes,
      metering: meteringSettings(config),
      prices: config.prices,
      priceTable: () => prices.table,
      issuers: { keys: issuerKeys, ...config.issuers },
      webhooks,
      sso: ssoSettings(wiring, issuerKeys, admin),
      keySet: tokens,
    }),
  );
  const http = createHttp(
    {
      resolver: parts.resolver,
      now,
      random,
      trusted: trustProxies(config.http.trustedProxies),
      onUntrustedForwarding: parts.onUntrustedForwarding,
      homeOf: (id) => homeOf(admin, id),
      appliedEverywhere: appliedEverywhere(store, feed),
      onAbortedUpload: () => telemetry.abortedUpload(),
      onAnswered: telemetry.httpRequest,
      onRefused: parts.onRefused,
      draining: parts.draining,
      log: telemetry.log.child({ part: 'http' }),
      tracing: telemetry.tracing,
    },
    [...consoleEndpoints({ folder: CONSOLE_FOLDER, random }), ...endpoints],
  );
  return { admin, issuerKeys, webhooks, endpoints, http };
}
