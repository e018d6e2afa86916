/** The common parts of the bootstraps of all meshes: addresses, clusters, and the routes of an HTTPRoute. */

import { splitAddress } from '../../../src/cli/envoy-config.ts';
import { at, listAt, type Mapping } from './guides.ts';

/** `host:port` of each part behind the gateway. */
export interface Parts {
  readonly grpc: string;
  readonly http: string;
  readonly upstream: string;
}

function socketAddress(address: string): object {
  const { host, port } = splitAddress(address);
  return { socket_address: { address: host, port_value: port } };
}

/** A cluster of one address. Istio and Envoy Gateway limit the buffers of connections to clusters to 32 KiB. */
export function cluster(name: string, address: string, http2 = false): object {
  return {
    name,
    type: 'STATIC',
    connect_timeout: '10s',
    per_connection_buffer_limit_bytes: 32_768,
    load_assignment: {
      cluster_name: name,
      endpoints: [{ lb_endpoints: [{ endpoint: { address: socketAddress(address) } }] }],
    },
    ...(http2
      ? {
          typed_extension_protocol_options: {
            'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
              '@type': 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
              explicit_http_config: { http2_protocol_options: {} },
            },
          },
        }
      : {}),
  };
}

/**
 * The access logger that both meshes write for an access-log service, with the name of its cluster, and the authority
 * if the mesh sets one.
 */
export function accessLog(logName: string, clusterName: string, authority?: string): object {
  return {
    name: 'envoy.access_loggers.http_grpc',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.access_loggers.grpc.v3.HttpGrpcAccessLogConfig',
      common_config: {
        log_name: logName,
        transport_api_version: 'V3',
        grpc_service: { envoy_grpc: { cluster_name: clusterName, ...(authority === undefined ? {} : { authority }) } },
        // Neither mesh sets it. Default: 1 s.
        buffer_flush_interval: '0.1s',
      },
    },
  };
}

export const ROUTER = {
  name: 'envoy.filters.http.router',
  typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router' },
};

/**
 * One listener whose filter chain is an HTTP connection manager. `edge` is its name, so that tests find its port.
 * @param bufferBytes the limit for the buffers of a connection; default: that of Istio and Envoy Gateway
 */
export function bootstrap(manager: object, clusters: readonly object[], bufferBytes = 32_768): object {
  return {
    admin: { address: socketAddress('127.0.0.1:0') },
    static_resources: {
      listeners: [
        {
          name: 'edge',
          address: socketAddress('127.0.0.1:0'),
          per_connection_buffer_limit_bytes: bufferBytes,
          filter_chains: [
            {
              filters: [
                {
                  name: 'envoy.filters.network.http_connection_manager',
                  typed_config: {
                    '@type':
                      'type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager',
                    stat_prefix: 'edge',
                    // Both meshes take the connection's peer for the client, and append it to X-Forwarded-For.
                    use_remote_address: true,
                    normalize_path: true,
                    upgrade_configs: [{ upgrade_type: 'websocket' }],
                    ...manager,
                  },
                },
              ],
            },
          ],
        },
      ],
      clusters,
    },
  };
}

/**
 * Returns Envoy's routes for an HTTPRoute: one for each prefix, the longest first, to `postern-http` or `upstream`.
 * @param perRoute the filters' settings for a rule
 */
export function routesOf(httpRoute: Mapping, perRoute: (rule: unknown) => object): object[] {
  const routes = listAt(httpRoute, 'spec', 'rules').flatMap((rule) => {
    const target = at(rule, 'backendRefs', 0, 'name') === 'postern-http' ? 'postern-http' : 'upstream';
    const timeout = at(rule, 'timeouts', 'request') ?? '15s';
    return listAt(rule, 'matches').map((match) => ({
      prefix: String(at(match, 'path', 'value')),
      target,
      timeout,
      rule,
    }));
  });
  return routes
    .toSorted((left, right) => right.prefix.length - left.prefix.length)
    .map(({ prefix, target, timeout, rule }) => ({
      match: prefix === '/' ? { prefix } : { path_separated_prefix: prefix },
      route: { cluster: target, timeout },
      typed_per_filter_config: perRoute(rule),
    }));
}
