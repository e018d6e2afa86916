/**
 * `envoy/production.yaml` filled in for this machine: local addresses, and certificates in a folder laid out as
 * /etc/envoy.
 */

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { findEnvoy } from '../../src/cli/envoy.ts';
import { placeAddresses } from '../../src/cli/envoy-config.ts';
import { type RunningEnvoy, startEnvoy } from '../../src/cli/envoy-process.ts';
import { makeAuthority } from '../../test/support/certificates.ts';

const FILES = join(import.meta.dirname, '../../envoy');
const LISTENER = 'edge';
/** As many threads as Envoy takes by itself on a machine with two cores. */
const WORKER_THREADS = 2;

export interface Certificates {
  readonly folder: string;
  readonly ca: string;
  /** Envoy's own at Postern's gRPC listener. */
  readonly client: { readonly cert: string; readonly key: string };
  /** Files for Postern's configuration. */
  readonly postern: { readonly certFile: string; readonly keyFile: string; readonly caFile: string };
}

/**
 * Makes an authority and the certificates of Envoy and Postern, and lays them out with the files of `envoy/secrets`.
 */
export function makeCertificates(folder: string): Certificates {
  const authority = makeAuthority();
  const [edge, client, server] = [authority.issue('localhost'), authority.issue('edge'), authority.issue('postern')];
  const put = (name: string, text: string): string => {
    const file = join(folder, name);
    writeFileSync(file, text, { mode: 0o600 });
    return file;
  };
  for (const name of ['edge', 'postern', 'secrets', 'server']) mkdirSync(join(folder, name), { recursive: true });
  put('edge/tls.crt', edge.certPem);
  put('edge/tls.key', edge.keyPem);
  put('postern/tls.crt', client.certPem);
  put('postern/tls.key', client.keyPem);
  const caFile = put('postern/ca.crt', authority.certPem);
  for (const name of readdirSync(join(FILES, 'secrets'))) {
    put(`secrets/${name}`, readFileSync(join(FILES, 'secrets', name), 'utf8').replaceAll('/etc/envoy', folder));
  }
  return {
    folder,
    ca: authority.certPem,
    client: { cert: client.certPem, key: client.keyPem },
    postern: { certFile: put('server/tls.crt', server.certPem), keyFile: put('server/tls.key', server.keyPem), caFile },
  };
}

export interface Behind {
  readonly grpc: string;
  readonly http: string;
  readonly upstream: string;
}

export interface ProductionEnvoy extends RunningEnvoy {
  /** The port of its TLS listener. */
  readonly port: number;
}

const OPTIONS = '          access_log_options:';
/** Spans go to the upstream, which takes none: Envoy drops them. */
const TRACING = `          tracing:
            provider:
              name: envoy.tracers.opentelemetry
              typed_config:
                "@type": type.googleapis.com/envoy.config.trace.v3.OpenTelemetryConfig
                service_name: edge
                grpc_service: { envoy_grpc: { cluster_name: upstream } }
`;

/** @param traces true: with a tracer that follows the trace of the client; default: false */
export async function startProduction(
  { folder }: Certificates,
  behind: Behind,
  traces = false,
): Promise<ProductionEnvoy> {
  const search = await findEnvoy(process.env, console.log);
  if (search.kind === 'missing') throw new Error(search.message);
  const file = readFileSync(join(FILES, 'production.yaml'), 'utf8').replaceAll('/etc/envoy', folder);
  if (!file.includes(OPTIONS)) throw new Error('envoy/production.yaml has no place for a tracer');
  const text = traces ? file.replace(OPTIONS, TRACING + OPTIONS) : file;
  const config = placeAddresses(text, { admin: '127.0.0.1:0', places: placesOf(text, behind) });
  const running = await startEnvoy({ binary: search.path, config, concurrency: WORKER_THREADS });
  const port = Number(running.listeners.get(LISTENER)?.split(':').at(-1));
  return { ...running, port };
}

interface FileWithClusters {
  readonly static_resources: {
    readonly clusters: readonly {
      readonly name: string;
      readonly load_assignment: {
        readonly endpoints: readonly {
          readonly lb_endpoints: readonly {
            readonly endpoint: { readonly address: { readonly socket_address: { readonly port_value: number } } };
          }[];
        }[];
      };
    }[];
  };
}

/** The address of each cluster follows from the port in the example, for any number of clusters. */
function placesOf(text: string, { grpc, http, upstream }: Behind): Record<string, string> {
  const byPort: Readonly<Record<number, string>> = { 9191: grpc, 8080: http, 8081: upstream };
  const places: Record<string, string> = { [LISTENER]: '127.0.0.1:0' };
  const { static_resources } = parse(text, { merge: true }) as FileWithClusters;
  for (const { name, load_assignment } of static_resources.clusters) {
    const port = load_assignment.endpoints[0]?.lb_endpoints[0]?.endpoint.address.socket_address.port_value;
    const place = byPort[port ?? 0];
    if (place === undefined)
      throw new Error(`envoy/production.yaml: the cluster ${name} is on a port that the benchmark does not know.`);
    places[name] = place;
  }
  return places;
}
