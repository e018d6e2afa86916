/** Envoy with envoy/production.yaml, its certificates, and two servers behind each cluster of Postern's. */

import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { placeAddresses, splitAddress } from '../../../src/cli/envoy-config.ts';
import { type RunningEnvoy, startEnvoy } from '../../../src/cli/envoy-process.ts';
import { makeAuthority } from '../../../test/support/certificates.ts';
import type { Place } from './server.ts';

const ENVOY_FOLDER = join(import.meta.dirname, '../../../envoy');
/** As the file names the servers. */
const EXAMPLE = 'postern.example.internal';
const CLUSTERS = ['postern-grpc', 'postern-meter', 'postern-http'];
const WORKER_THREADS = 2;

export interface Certificates {
  /** Of the authority of all of them. */
  readonly ca: string;
  /** Paths for `grpc.tls`. */
  readonly server: { readonly cert: string; readonly key: string; readonly clientCa: string };
  /** Laid out as the file expects /etc/envoy to be. */
  readonly etc: string;
}

/** Writes the files that production.yaml and its secrets expect, and those of the servers. */
export async function writeCertificates(folder: string): Promise<Certificates> {
  const authority = makeAuthority();
  const etc = join(folder, 'etc-envoy');
  for (const name of ['edge', 'postern', 'secrets']) await mkdir(join(etc, name), { recursive: true });
  const [edge, client, server] = [authority.issue('localhost'), authority.issue('edge'), authority.issue('postern')];
  const paths = { cert: join(folder, 'server.crt'), key: join(folder, 'server.key'), clientCa: join(folder, 'ca.crt') };
  const files: readonly (readonly [string, string])[] = [
    [join(etc, 'edge/tls.crt'), edge.certPem],
    [join(etc, 'edge/tls.key'), edge.keyPem],
    [join(etc, 'postern/tls.crt'), client.certPem],
    [join(etc, 'postern/tls.key'), client.keyPem],
    [join(etc, 'postern/ca.crt'), authority.certPem],
    [paths.cert, server.certPem],
    [paths.key, server.keyPem],
    [paths.clientCa, authority.certPem],
  ];
  for (const [path, text] of files) await writeFile(path, text);
  for (const name of ['edge.yaml', 'postern-client.yaml', 'postern-authority.yaml']) {
    const text = await readFile(join(ENVOY_FOLDER, 'secrets', name), 'utf8');
    await writeFile(join(etc, 'secrets', name), text.replaceAll('/etc/envoy', etc));
  }
  return { ca: authority.certPem, server: paths, etc };
}

function socketAddress(address: string): object {
  const { host, port } = splitAddress(address);
  return { socket_address: { address: host, port_value: port } };
}

export interface Edge extends RunningEnvoy {
  readonly host: string;
  readonly port: number;
  /** Servers that Envoy's health checks find healthy, in the cluster that has the fewest. */
  healthy(): Promise<number>;
}

export interface EdgeParts {
  readonly binary: string;
  readonly etc: string;
  readonly servers: readonly Place[];
  readonly upstream: string;
  /** Default: the file's own. */
  readonly healthCheckInterval?: string;
  /** Of a check and a health check. Default: the file's own. */
  readonly checkTimeout?: string;
}

/** Starts Envoy with the file as it is but for the addresses, and the interval and the timeout that are given. */
export async function startProductionEdge({
  binary,
  etc,
  servers,
  upstream,
  healthCheckInterval,
  checkTimeout,
}: EdgeParts): Promise<Edge> {
  const text = (await readFile(join(ENVOY_FOLDER, 'production.yaml'), 'utf8')).replaceAll('/etc/envoy', etc);
  const placed = JSON.stringify(
    placeAddresses(text, { admin: '127.0.0.1:0', places: { edge: '127.0.0.1:0', upstream } }),
  );
  let clusters = 0;
  const config: object = JSON.parse(placed, (key: string, value: unknown) => {
    if (key === 'lb_endpoints' && JSON.stringify(value).includes(EXAMPLE)) {
      clusters++;
      const isHttp = JSON.stringify(value).includes('8080');
      return servers.map(({ grpc, http, admin }) => ({
        endpoint: {
          address: socketAddress(isHttp ? http : grpc),
          ...(isHttp ? { health_check_config: { port_value: splitAddress(admin).port } } : {}),
        },
      }));
    }
    if (key === 'timeout' && value === '0.5s') return checkTimeout ?? value;
    if (healthCheckInterval === undefined || (key !== 'interval' && key !== 'no_traffic_interval')) return value;
    return value === '2s' ? healthCheckInterval : value;
  });
  if (clusters !== CLUSTERS.length)
    throw new Error(`production.yaml has ${clusters} clusters at ${EXAMPLE}, not those expected`);
  const running = await startEnvoy({ binary, config, concurrency: WORKER_THREADS });
  const { host, port } = splitAddress(running.listeners.get('edge') ?? '');
  return {
    ...running,
    host,
    port,
    async healthy() {
      const stats = await (await fetch(`${running.adminUrl}/stats?filter=membership_healthy`)).text();
      const counts = CLUSTERS.map((name) =>
        Number(new RegExp(`cluster\\.${name}\\.membership_healthy: (\\d+)`).exec(stats)?.[1] ?? 0),
      );
      return Math.min(...counts);
    },
  };
}
