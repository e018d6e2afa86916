/** A real Envoy for one test file, with a configuration of `envoy/` on free ports. */

import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findEnvoy } from '../../src/cli/envoy.ts';
import { placeAddresses } from '../../src/cli/envoy-config.ts';
import { type RunningEnvoy, startEnvoy } from '../../src/cli/envoy-process.ts';
import { eventually } from '../server/support/eventually.ts';

export const DEMO_CONFIG = new URL('../../envoy/demo.yaml', import.meta.url);
export const PRODUCTION_CONFIG = new URL('../../envoy/production.yaml', import.meta.url);

let known: Promise<string> | undefined;

/** The path of an Envoy 1.40, fetched when the machine has none. Rejects rather than have a test skipped. */
export function envoyBinary(): Promise<string> {
  known ??= findEnvoy(process.env).then((search) => {
    if (search.kind === 'missing') throw new Error(search.message);
    return search.path;
  });
  return known;
}

export interface EdgeParts {
  /** `host:port` or `unix:/path` of the gRPC server that decides. */
  readonly grpc: string;
  /** The same server as the meter's connections reach it; default: `grpc`. */
  readonly meter?: string;
  /** `host:port` of Postern's HTTP side. */
  readonly http: string;
  /** `host:port` behind it all. */
  readonly upstream: string;
  /** `host:port` of Envoy itself; default: a free port of 127.0.0.1. */
  readonly listen?: string;
  /** True if nothing answers at `grpc`; default: false, and the edge is ready when Envoy has found it healthy. */
  readonly isGrpcDown?: boolean;
}

export interface Edge extends RunningEnvoy {
  /** `http://127.0.0.1:port` */
  readonly url: string;
  readonly port: number;
}

/** Changes the text of a configuration. */
export type EditConfig = (text: string) => string;

/** Starts `envoy/demo.yaml`, changed by `edit`, its listener on a free port. */
export async function startEdge(parts: EdgeParts, edit: EditConfig = (text) => text): Promise<Edge> {
  const text = edit(await readFile(DEMO_CONFIG, 'utf8'));
  const { grpc, meter = grpc, http, upstream, listen = '127.0.0.1:0', isGrpcDown = false } = parts;
  const places = { edge: listen, 'postern-grpc': grpc, 'postern-meter': meter, 'postern-http': http, upstream };
  const edge = await startConfig(placeAddresses(text, { admin: '127.0.0.1:0', places }));
  if (!isGrpcDown) await untilHealthy(edge).catch((error: unknown) => edge.stop().then(() => Promise.reject(error)));
  return edge;
}

/**
 * On a busy machine, Envoy's first health check may run into its half second. Until the next one, Envoy answers 503 by
 * itself.
 */
async function untilHealthy(edge: Edge): Promise<void> {
  const stat = 'cluster.postern-grpc.membership_healthy';
  await eventually('Envoy finds Postern healthy', async () => (await statOf(edge, stat)) > 0);
}

/**
 * Returns an edit that puts other values in place of the file's: each key is a piece of its text.
 * The edit throws when a piece is not in the text, so that a test cannot go on with a setting that was renamed.
 */
export function replacing(pieces: Readonly<Record<string, string>>): EditConfig {
  return (text) =>
    Object.entries(pieces).reduce((edited, [piece, replacement]) => {
      if (!edited.includes(piece)) throw new Error(`the configuration has no ${piece}`);
      return edited.replaceAll(piece, replacement);
    }, text);
}

/** Returns one of Envoy's counters or gauges; 0 when it has none of that name. */
export async function statOf(edge: Edge, name: string): Promise<number> {
  const answer = await fetch(`${edge.adminUrl}/stats?filter=${encodeURIComponent(`^${name.replaceAll('.', '\\.')}$`)}`);
  return Number(/: (\d+)/.exec(await answer.text())?.[1] ?? 0);
}

/** Starts any configuration that has a listener named `edge`. */
export async function startConfig(config: object): Promise<Edge> {
  const running = await startEnvoy({ binary: await envoyBinary(), config });
  const address = running.listeners.get('edge');
  if (address === undefined) throw new Error(`Envoy has no listener named edge: ${running.output()}`);
  return { ...running, url: `http://${address}`, port: Number(address.split(':').at(-1)) };
}

export interface Validation {
  readonly ok: boolean;
  readonly output: string;
}

/** `envoy --mode validate` of a configuration: everything that Envoy checks at its start, without listening. */
export async function validateConfig(config: object): Promise<Validation> {
  const binary = await envoyBinary();
  const folder = await mkdtemp(join(tmpdir(), 'postern-validate-'));
  const file = join(folder, 'envoy.json');
  await writeFile(file, JSON.stringify(config));
  try {
    return await new Promise<Validation>((resolve) => {
      const args = ['--mode', 'validate', '--disable-hot-restart', '-c', file];
      execFile(binary, args, { timeout: 30_000 }, (error, stdout, stderr) =>
        resolve({ ok: error === null, output: stdout + stderr }),
      );
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
