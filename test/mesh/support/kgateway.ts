/**
 * The bootstrap that kgateway makes of the guide's manifests, as far as a request passes it.
 *
 * Listener, filters, routes and clusters are those of kgateway's own golden file `extauth-grpc-full-config.yaml` in
 * `pkg/kgateway/translator/gateway/testutils/outputs/traffic-policy`, the meaning of the fields that of
 * `gateway_extension.go` and `extauth_policy.go` in `pkg/kgateway/extensions2/plugins/trafficpolicy`
 * (kgateway-dev/kgateway at commit 049cb625).
 */

import { accessLog, bootstrap, cluster, type Parts, ROUTER, routesOf } from './bootstrap.ts';
import { at, listAt, type Mapping } from './guides.ts';

export interface KgatewayManifests {
  readonly listenerPolicy: Mapping;
  readonly extension: Mapping;
  readonly trafficPolicy: Mapping;
  /** Of the Service of the check and of the reports. */
  readonly backendConfig: Mapping;
  readonly httpRoute: Mapping;
  /** The `extAuth` of a TrafficPolicy for the route. Default: none. */
  readonly routeExtAuth?: unknown;
}

const GRPC_CLUSTER = 'kube_postern_postern-grpc_9191';
const DISABLED = 'dev.kgateway.disable_ext_auth';
const DISABLE_FILTER = 'global_disable/ext_auth';
const SWITCHED_ON = { '@type': 'type.googleapis.com/envoy.config.route.v3.FilterConfig', config: {} };

function bodySettings(extAuth: unknown): object {
  const body = at(extAuth, 'withRequestBody');
  if (body === undefined) return {};
  return {
    with_request_body: {
      max_request_bytes: at(body, 'maxRequestBytes'),
      allow_partial_message: at(body, 'allowPartialMessage') === true,
      pack_as_bytes: at(body, 'packAsBytes') === true,
    },
  };
}

function milliseconds(text: unknown): number {
  const [, digits] = /^(\d+)ms$/.exec(String(text)) ?? [];
  if (digits === undefined) throw new Error(`${text} is no duration of the guide`);
  return Number(digits);
}

/** The filter, switched off; the routes switch it on. */
function checkFilter(name: string, extAuth: unknown): object {
  const retries = at(extAuth, 'grpcService', 'retry', 'attempts');
  return {
    name,
    disabled: true,
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz',
      transport_api_version: 'V3',
      failure_mode_allow: at(extAuth, 'failOpen') === true,
      clear_route_cache: at(extAuth, 'clearRouteCache') === true,
      status_on_error: { code: at(extAuth, 'statusOnError') ?? 403 },
      filter_enabled_metadata: {
        filter: DISABLED,
        invert: true,
        path: [{ key: 'disable' }],
        value: { bool_match: true },
      },
      grpc_service: {
        envoy_grpc: { cluster_name: GRPC_CLUSTER },
        timeout: `${milliseconds(at(extAuth, 'grpcService', 'requestTimeout')) / 1000}s`,
        ...(retries === undefined ? {} : { retry_policy: { num_retries: retries } }),
      },
      ...bodySettings(extAuth),
    },
  };
}

/** Switches a route's check off, or on again by itself. */
function routeSettings(filter: string, extAuth: unknown): object {
  if (extAuth === undefined) return {};
  return { [at(extAuth, 'disable') === undefined ? filter : DISABLE_FILTER]: SWITCHED_ON };
}

function thresholds(backendConfig: Mapping): object {
  const breakers = at(backendConfig, 'spec', 'circuitBreakers');
  return {
    max_connections: at(breakers, 'maxConnections'),
    max_pending_requests: at(breakers, 'maxPendingRequests'),
    max_requests: at(breakers, 'maxRequests'),
  };
}

export function kgatewayBootstrap(manifests: KgatewayManifests, parts: Parts): object {
  const { listenerPolicy, extension, trafficPolicy, backendConfig, httpRoute, routeExtAuth } = manifests;
  const listener = at(listenerPolicy, 'spec', 'default');
  const filter = `ext_auth/${at(extension, 'metadata', 'namespace')}/${at(extension, 'metadata', 'name')}`;
  const isGuarded = at(trafficPolicy, 'spec', 'extAuth', 'extensionRef') !== undefined;
  return bootstrap(
    {
      merge_slashes: true,
      upgrade_configs: listAt(listener, 'httpSettings', 'upgradeConfig', 'enabledUpgrades').map((upgrade_type) => ({
        upgrade_type,
      })),
      access_log: listAt(listener, 'httpSettings', 'accessLog').map((log) =>
        accessLog(String(at(log, 'grpcService', 'logName')), GRPC_CLUSTER),
      ),
      route_config: {
        name: 'listener~80',
        // A policy of the Gateway is a setting of the whole configuration of routes.
        typed_per_filter_config: isGuarded ? { [filter]: SWITCHED_ON } : {},
        virtual_hosts: [
          {
            name: 'listener~80~*',
            domains: ['*'],
            routes: routesOf(httpRoute, () => routeSettings(filter, routeExtAuth)),
          },
        ],
      },
      http_filters: [
        {
          name: DISABLE_FILTER,
          disabled: true,
          typed_config: {
            '@type': 'type.googleapis.com/envoy.extensions.filters.http.set_metadata.v3.Config',
            metadata: [{ metadata_namespace: DISABLED, value: { disable: true } }],
          },
        },
        checkFilter(filter, at(extension, 'spec', 'extAuth')),
        ROUTER,
      ],
    },
    [
      { ...cluster(GRPC_CLUSTER, parts.grpc, true), circuit_breakers: { thresholds: [thresholds(backendConfig)] } },
      cluster('postern-http', parts.http),
      cluster('upstream', parts.upstream),
    ],
    Number(at(listener, 'perConnectionBufferLimitBytes')),
  );
}
