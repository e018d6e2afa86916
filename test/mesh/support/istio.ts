/**
 * The part of the bootstrap that Istio generates from the guide's manifests and that a request passes.
 *
 * The filters of the check are those of Istio's own golden files, `custom-grpc-provider-out1.yaml` (rbac) and
 * `extended-custom-grpc-provider-out2.yaml` (ext_authz) in `pilot/pkg/security/authz/builder/testdata/http`. Their
 * order (the check before CORS) and the connection manager follow `pilot/pkg/networking/core/listener_builder.go`, the
 * meaning of the provider's fields that of `mesh/v1alpha1/config.proto` in `istio.io/api` 1.31.1.
 */

import { accessLog, bootstrap, cluster, type Parts, ROUTER, routesOf } from './bootstrap.ts';
import { at, listAt, type Mapping } from './guides.ts';

export interface IstioManifests {
  /** The member `meshConfig` of the values. */
  readonly meshConfig: unknown;
  readonly policy: Mapping;
  readonly httpRoute: Mapping;
  /** Default: none, as if Istio's sidecars at both ends had encrypted and decrypted. */
  readonly destinationRules?: readonly Mapping[];
}

const CHECK_PREFIX = 'istio-ext-authz';
const RBAC = 'type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBAC';
const ANY = { any: true };

function clusterOf(provider: unknown): string {
  return `outbound|${at(provider, 'port')}||${at(provider, 'service')}`;
}

/** Whether a rule matches every request. A rule with conditions is none of the guide's. */
function matchesAll(rule: unknown): boolean {
  return JSON.stringify(rule) === '{}';
}

/** The filter of a workload whose CUSTOM policy names an unknown provider. */
const DENY_ALL = {
  name: 'envoy.filters.http.rbac',
  typed_config: {
    '@type': RBAC,
    rules: {
      action: 'DENY',
      policies: { 'default-deny-all-due-to-bad-CUSTOM-action': { permissions: [ANY], principals: [ANY] } },
    },
  },
};

function checkFilters({ meshConfig, policy }: IstioManifests): object[] {
  const wanted = at(policy, 'spec', 'provider', 'name');
  const provider = at(
    listAt(meshConfig, 'extensionProviders').find((one) => at(one, 'name') === wanted),
    'envoyExtAuthzGrpc',
  );
  if (provider === undefined) return [DENY_ALL];
  const policies = Object.fromEntries(
    listAt(policy, 'spec', 'rules')
      .filter(matchesAll)
      .map((_rule, i) => [
        `${CHECK_PREFIX}-ns[${at(policy, 'metadata', 'namespace')}]-policy[${at(policy, 'metadata', 'name')}]-rule[${i}]`,
        { permissions: [{ and_rules: { rules: [ANY] } }], principals: [{ and_ids: { ids: [ANY] } }] },
      ]),
  );
  const body = at(provider, 'includeRequestBodyInCheck');
  const shadowRules = {
    name: 'envoy.filters.http.rbac',
    typed_config: {
      '@type': RBAC,
      shadow_rules: { action: 'DENY', policies },
      shadow_rules_stat_prefix: 'istio_ext_authz_',
    },
  };
  const check = {
    name: 'envoy.filters.http.ext_authz',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz',
      transport_api_version: 'V3',
      failure_mode_allow: at(provider, 'failOpen') === true,
      clear_route_cache: at(provider, 'clearRouteCache') === true,
      status_on_error: { code: Number(at(provider, 'statusOnError') ?? 403) },
      filter_enabled_metadata: {
        filter: 'envoy.filters.http.rbac',
        path: [{ key: 'istio_ext_authz_shadow_effective_policy_id' }],
        value: { string_match: { prefix: CHECK_PREFIX } },
      },
      grpc_service: {
        envoy_grpc: { cluster_name: clusterOf(provider), authority: String(at(provider, 'service')) },
        timeout: at(provider, 'timeout') ?? '600s',
      },
      ...(body === undefined
        ? {}
        : {
            with_request_body: {
              max_request_bytes: at(body, 'maxRequestBytes'),
              allow_partial_message: at(body, 'allowPartialMessage') === true,
              pack_as_bytes: at(body, 'packAsBytes') === true,
            },
          }),
    },
  };
  return [shadowRules, check];
}

/** Istio adds certificates of both ends. A server without TLS gets no further than the first message. */
const TLS = {
  name: 'tls',
  typed_config: {
    '@type': 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext',
    common_tls_context: { alpn_protocols: ['istio', 'h2'] },
  },
};

/** Paths as `meshConfig.pathNormalization` says, beyond the RFC's normal form. */
function pathSettings(meshConfig: unknown): object {
  switch (at(meshConfig, 'pathNormalization', 'normalization')) {
    case 'DECODE_AND_MERGE_SLASHES':
      return { merge_slashes: true, path_with_escaped_slashes_action: 'UNESCAPE_AND_FORWARD' };
    case 'MERGE_SLASHES':
      return { merge_slashes: true };
    default:
      return {};
  }
}

/** The cluster of a Service, with TLS if a DestinationRule demands it. */
function clusterWithRule(name: string, address: string, rules: readonly Mapping[], http2 = false): object {
  const host = name.split('||')[1];
  const rule = rules.find((one) => at(one, 'spec', 'host') === host);
  return at(rule, 'spec', 'trafficPolicy', 'tls', 'mode') === 'ISTIO_MUTUAL'
    ? { ...cluster(name, address, http2), transport_socket: TLS }
    : cluster(name, address, http2);
}

export function istioBootstrap(manifests: IstioManifests, parts: Parts): object {
  const providers = listAt(manifests.meshConfig, 'extensionProviders');
  const logs = providers.flatMap((one) => (at(one, 'envoyHttpAls') === undefined ? [] : [at(one, 'envoyHttpAls')]));
  const grpcClusters = new Set(
    [...providers.map((one) => at(one, 'envoyExtAuthzGrpc')).filter((one) => one !== undefined), ...logs].map(
      clusterOf,
    ),
  );
  const cors = {
    name: 'envoy.filters.http.cors',
    typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.cors.v3.Cors' },
  };
  return bootstrap(
    {
      ...pathSettings(manifests.meshConfig),
      forward_client_cert_details: 'SANITIZE_SET',
      access_log: logs.map((log) => accessLog(String(at(log, 'logName')), clusterOf(log), String(at(log, 'service')))),
      route_config: {
        name: 'http.80',
        virtual_hosts: [{ name: 'ai', domains: ['*'], routes: routesOf(manifests.httpRoute, () => ({})) }],
      },
      http_filters: [...checkFilters(manifests), cors, ROUTER],
    },
    [
      ...[...grpcClusters].map((name) => clusterWithRule(name, parts.grpc, manifests.destinationRules ?? [], true)),
      cluster('postern-http', parts.http),
      cluster('upstream', parts.upstream),
    ],
  );
}
