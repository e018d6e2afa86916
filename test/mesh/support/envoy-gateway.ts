/**
 * The bootstraps that Envoy Gateway makes of the guide's manifests, and that a gateway on Envoy makes of Gateway API's
 * ExternalAuth, as far as a request passes them.
 *
 * Listener, filters and clusters are those of Envoy Gateway 1.9.1's own golden files, `ext-auth-body.*.yaml`,
 * `cors.*.yaml` and `accesslog-*.yaml` in `internal/xds/translator/testdata/out/xds-ir`, the order of filters that of
 * `httpfilters.go`, and the defaults those of `extauth.go`, both in `internal/xds/translator` of
 * `github.com/envoyproxy/gateway` 1.9.1. ExternalAuth follows the words of `HTTPExternalAuthFilter` in
 * `sigs.k8s.io/gateway-api` 1.7.0, with Envoy Gateway's listener around it.
 */

import { accessLog, bootstrap, cluster, type Parts, ROUTER, routesOf } from './bootstrap.ts';
import { at, listAt, type Mapping } from './guides.ts';

export interface EnvoyGatewayManifests {
  readonly clientTrafficPolicy: Mapping;
  readonly securityPolicy: Mapping;
  readonly envoyProxy: Mapping;
  readonly httpRoute: Mapping;
}

const EXT_AUTHZ = 'type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3';
const CHECK_CLUSTER = 'securitypolicy/ai/postern/extauth/0';
const LOG_CLUSTER = 'accesslog_als_0_1';

/** By `path.escapedSlashesAction`. */
const ESCAPED_SLASHES: Readonly<Record<string, string>> = {
  KeepUnchanged: 'KEEP_UNCHANGED',
  RejectRequest: 'REJECT_REQUEST',
  UnescapeAndForward: 'UNESCAPE_AND_FORWARD',
  UnescapeAndRedirect: 'UNESCAPE_AND_REDIRECT',
};

const LISTENER = {
  merge_slashes: true,
  server_header_transformation: 'PASS_THROUGH',
  common_http_protocol_options: { headers_with_underscores_action: 'REJECT_REQUEST' },
  http2_protocol_options: {
    initial_connection_window_size: 1_048_576,
    initial_stream_window_size: 65_536,
    max_concurrent_streams: 100,
  },
};

/** Of `500ms`, `10s`. */
function duration(text: unknown): string {
  const match = /^(\d+)(ms|s)$/.exec(String(text));
  if (match === null) throw new Error(`${text} is no duration of the guide`);
  return match[2] === 's' ? `${match[1]}s` : `${Number(match[1]) / 1000}s`;
}

function corsPolicy(policy: unknown): object {
  return {
    'envoy.filters.http.cors': {
      '@type': 'type.googleapis.com/envoy.extensions.filters.http.cors.v3.CorsPolicy',
      allow_origin_string_match: listAt(policy, 'allowOrigins').map((exact) => ({ exact })),
      allow_methods: listAt(policy, 'allowMethods').join(', '),
      allow_headers: listAt(policy, 'allowHeaders').join(', '),
      allow_credentials: false,
      forward_not_matching_preflights: false,
    },
  };
}

const CORS = {
  name: 'envoy.filters.http.cors',
  typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.cors.v3.Cors' },
};

interface Check {
  readonly maxBytes: unknown;
  readonly allowedHeaders: readonly unknown[];
  readonly timeout: string;
  readonly failOpen: boolean;
  readonly statusOnError: unknown;
  readonly recomputeRoute: boolean;
}

/** The filter, switched off; the routes switch it on. */
function checkFilter(name: string, check: Check): object {
  const { maxBytes, allowedHeaders, timeout, failOpen, statusOnError, recomputeRoute } = check;
  return {
    name,
    disabled: true,
    typed_config: {
      '@type': `${EXT_AUTHZ}.ExtAuthz`,
      transport_api_version: 'V3',
      failure_mode_allow: failOpen,
      clear_route_cache: recomputeRoute,
      grpc_service: { envoy_grpc: { cluster_name: CHECK_CLUSTER, authority: 'postern-grpc.postern:9191' }, timeout },
      ...(statusOnError === undefined ? {} : { status_on_error: { code: statusOnError } }),
      ...(maxBytes === undefined ? {} : { with_request_body: { max_request_bytes: maxBytes } }),
      ...(allowedHeaders.length === 0
        ? {}
        : { allowed_headers: { patterns: allowedHeaders.map((exact) => ({ exact, ignore_case: true })) } }),
    },
  };
}

const switchedOn = (name: string): object => ({
  [name]: { '@type': `${EXT_AUTHZ}.ExtAuthzPerRoute`, check_settings: {} },
});

/** @param breaker the `circuitBreaker` of the check's backend: the thresholds of its cluster */
function clusters(parts: Parts, breaker?: unknown): object[] {
  const threshold = {
    max_connections: at(breaker, 'maxConnections'),
    max_pending_requests: at(breaker, 'maxPendingRequests'),
    max_requests: at(breaker, 'maxParallelRequests'),
    max_retries: 1024,
  };
  return [
    { ...cluster(CHECK_CLUSTER, parts.grpc, true), circuit_breakers: { thresholds: [threshold] } },
    cluster(LOG_CLUSTER, parts.grpc, true),
    cluster('postern-http', parts.http),
    cluster('upstream', parts.upstream),
  ];
}

export function envoyGatewayBootstrap(manifests: EnvoyGatewayManifests, parts: Parts): object {
  const { clientTrafficPolicy, securityPolicy, envoyProxy, httpRoute } = manifests;
  const extAuth = at(securityPolicy, 'spec', 'extAuth');
  const cors = at(securityPolicy, 'spec', 'cors');
  const name = `envoy.filters.http.ext_authz/securitypolicy/${at(securityPolicy, 'metadata', 'namespace')}/${at(securityPolicy, 'metadata', 'name')}`;
  const slashes = String(at(clientTrafficPolicy, 'spec', 'path', 'escapedSlashesAction') ?? 'UnescapeAndRedirect');
  const sinks = listAt(envoyProxy, 'spec', 'telemetry', 'accessLog', 'settings', 0, 'sinks').filter(
    (sink) => at(sink, 'type') === 'ALS',
  );
  const perRoute = { ...switchedOn(name), ...(cors === undefined ? {} : corsPolicy(cors)) };
  return bootstrap(
    {
      ...LISTENER,
      path_with_escaped_slashes_action: ESCAPED_SLASHES[slashes],
      access_log: sinks.map((sink) => accessLog(String(at(sink, 'als', 'logName')), LOG_CLUSTER)),
      route_config: {
        name: 'ai/ai/http',
        virtual_hosts: [{ name: 'ai/ai/http/*', domains: ['*'], routes: routesOf(httpRoute, () => perRoute) }],
      },
      http_filters: [
        CORS,
        checkFilter(name, {
          maxBytes: at(extAuth, 'bodyToExtAuth', 'maxRequestBytes'),
          allowedHeaders: listAt(extAuth, 'headersToExtAuth'),
          timeout: duration(at(extAuth, 'timeout') ?? '10s'),
          failOpen: at(extAuth, 'failOpen') === true,
          statusOnError: at(extAuth, 'statusOnError'),
          recomputeRoute: at(extAuth, 'recomputeRoute') === true,
        }),
        ROUTER,
      ],
    },
    clusters(parts, at(extAuth, 'grpc', 'backendSettings', 'circuitBreaker')),
  );
}

/** @param httpRoute the guide's route without the check @param filtered the one whose first rule has the filter */
export function externalAuthBootstrap(httpRoute: Mapping, filtered: Mapping, parts: Parts): object {
  const filter = listAt(filtered, 'spec', 'rules', 0, 'filters').find((one) => at(one, 'type') === 'ExternalAuth');
  const externalAuth = at(filter, 'externalAuth');
  const name = 'envoy.filters.http.ext_authz/httproute/ai/external-auth';
  return bootstrap(
    {
      ...LISTENER,
      // An implementation's own choice: the API says nothing of it.
      path_with_escaped_slashes_action: 'KEEP_UNCHANGED',
      route_config: {
        name: 'ai/ai/http',
        virtual_hosts: [{ name: 'ai/ai/http/*', domains: ['*'], routes: routesOf(httpRoute, () => switchedOn(name)) }],
      },
      http_filters: [
        checkFilter(name, {
          maxBytes: at(externalAuth, 'forwardBody', 'maxSize'),
          allowedHeaders: listAt(externalAuth, 'grpc', 'allowedHeaders'),
          timeout: '10s',
          failOpen: false,
          statusOnError: undefined,
          recomputeRoute: false,
        }),
        ROUTER,
      ],
    },
    clusters(parts),
  );
}
