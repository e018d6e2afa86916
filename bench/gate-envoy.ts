/**
 * Latency that ext_authz adds to a request through a real Envoy: Postern beside an empty grpc-go handler, and Envoy
 * without ext_authz.
 */

import { Agent, request } from 'node:http';
import { type Edge, startConfig } from '../test/support/envoy.ts';
import { median, quantile } from './stack.ts';

const ROUNDS = 7;
const REQUESTS = 1500;
const WARM = 500;

export interface Added {
  /** Medians of rounds, in microseconds. */
  readonly plainUs: number;
  readonly posternUs: number;
  readonly floorUs: number;
  /** What Postern adds over what the floor adds, round by round. */
  readonly ratio: number;
}

/** @param body of each request; Envoy sends it with the check */
export async function addedByEnvoy(
  postern: string,
  floor: string,
  authorization: string,
  body: string,
): Promise<Added> {
  await using stack = new AsyncDisposableStack();
  const start = async (grpc: string | undefined): Promise<Edge> => {
    const edge = await startConfig(config(grpc));
    stack.defer(() => edge.stop());
    return edge;
  };
  const edges = [await start(undefined), await start(postern), await start(floor)];
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  stack.defer(() => agent.destroy());
  const p50s: number[][] = edges.map(() => []);
  for (const { port } of edges) await p50Of(agent, port, authorization, body, WARM);
  for (let round = 0; round < ROUNDS; round++) {
    for (const [i, { port }] of edges.entries()) p50s[i]?.push(await p50Of(agent, port, authorization, body, REQUESTS));
  }
  const [plain = [], own = [], empty = []] = p50s;
  return {
    plainUs: median(plain),
    posternUs: median(own),
    floorUs: median(empty),
    ratio: median(plain.map((base, i) => ((own[i] ?? 0) - base) / ((empty[i] ?? 0) - base))),
  };
}

/** One request at a time. @returns microseconds */
async function p50Of(agent: Agent, port: number, authorization: string, body: string, count: number): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < count; i++) {
    const began = performance.now();
    const status = await post(agent, port, authorization, body);
    times.push((performance.now() - began) * 1000);
    if (status !== 200) throw new Error(`Envoy answered ${status}`);
  }
  return quantile(times, 0.5);
}

function post(agent: Agent, port: number, authorization: string, body: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      { agent, host: '127.0.0.1', port, method: 'POST', path: '/v1/chat/completions' },
      (incoming) => {
        incoming.resume().once('end', () => resolve(incoming.statusCode ?? 0));
      },
    );
    outgoing.once('error', reject);
    outgoing.setHeader('authorization', authorization).setHeader('content-type', 'application/json').end(body);
  });
}

const typed = (type: string, more: object): object => ({ '@type': `type.googleapis.com/${type}`, ...more });

/** @param grpc `host:port` of the ext_authz server; undefined = requests are not checked */
function config(grpc: string | undefined): object {
  const [address = '', port = '0'] = (grpc ?? '127.0.0.1:1').split(':');
  const authz = {
    name: 'envoy.filters.http.ext_authz',
    typed_config: typed('envoy.extensions.filters.http.ext_authz.v3.ExtAuthz', {
      transport_api_version: 'V3',
      grpc_service: { envoy_grpc: { cluster_name: 'authz' }, timeout: '2s' },
      failure_mode_allow: false,
      encode_raw_headers: true,
      with_request_body: { max_request_bytes: 65_536, allow_partial_message: false, pack_as_bytes: true },
    }),
  };
  const router = {
    name: 'envoy.filters.http.router',
    typed_config: typed('envoy.extensions.filters.http.router.v3.Router', {}),
  };
  const http = {
    name: 'envoy.filters.network.http_connection_manager',
    typed_config: typed('envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager', {
      stat_prefix: 'edge',
      route_config: {
        virtual_hosts: [
          { name: 'all', domains: ['*'], routes: [{ match: { prefix: '/' }, direct_response: { status: 200 } }] },
        ],
      },
      http_filters: grpc === undefined ? [router] : [authz, router],
    }),
  };
  return {
    admin: { address: { socket_address: { address: '127.0.0.1', port_value: 0 } } },
    static_resources: {
      listeners: [
        {
          name: 'edge',
          address: { socket_address: { address: '127.0.0.1', port_value: 0 } },
          filter_chains: [{ filters: [http] }],
        },
      ],
      clusters: [
        {
          name: 'authz',
          type: 'STATIC',
          typed_extension_protocol_options: {
            'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': typed(
              'envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
              { explicit_http_config: { http2_protocol_options: {} } },
            ),
          },
          load_assignment: {
            cluster_name: 'authz',
            endpoints: [
              { lb_endpoints: [{ endpoint: { address: { socket_address: { address, port_value: Number(port) } } } }] },
            ],
          },
        },
      ],
    },
  };
}
