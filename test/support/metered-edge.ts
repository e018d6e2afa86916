/** A real Envoy in front of the real gate, with a listener that records the reports of finished requests. */

import { randomBytes } from 'node:crypto';
import { createCheckHandler } from '../../src/extauthz/check-handler.ts';
import type { FinishedRequest } from '../../src/extauthz/ports.ts';
import { type ExtAuthzServer, startExtAuthz } from '../../src/extauthz/server.ts';
import { builtinRoutes, type LittleWorld, littleWorld } from '../extauthz/support/little-world.ts';
import { type Edge, type EditConfig, startEdge } from './envoy.ts';

export interface MeteredEdge {
  readonly world: LittleWorld;
  readonly edge: Edge;
  /** All reports, in order. */
  readonly told: FinishedRequest[];
  /** Reservations given so far, by the model that the request asked for. */
  readonly reservations: ReadonlyMap<string, string>;
  /** Resolves with the report of the request for this model. */
  finished(model: string): Promise<FinishedRequest>;
  /** Stops the server that decides and listens, and starts another at its address. */
  replaceServer(): Promise<void>;
  stop(): Promise<void>;
}

export interface MeteredEdgeOptions {
  /** Changes Envoy's configuration. */
  readonly edit?: EditConfig;
  /** Returns the address at which Envoy's checks, but not its log entries, reach the server at `address`. */
  readonly checksBy?: (address: string) => Promise<string>;
}

/** @param upstream `host:port` */
export async function startMeteredEdge(upstream: string, options: MeteredEdgeOptions = {}): Promise<MeteredEdge> {
  const world = littleWorld({});
  const told: FinishedRequest[] = [];
  const reservations = new Map<string, string>();
  const waiting = new Map<string, (request: FinishedRequest) => void>();
  const gate = createCheckHandler({
    routes: builtinRoutes(),
    resolver: world.resolver,
    limiter: {
      admit(allow) {
        const reservation = allow.route.tokens ? randomBytes(23).toString('hex') : undefined;
        if (reservation !== undefined) reservations.set(allow.model ?? '', reservation);
        return { kind: 'admitted', reservation, rate: undefined };
      },
      release: () => undefined,
    },
    observer: { observe: () => undefined },
    trustedHops: 0,
    forwardCredential: false,
  });
  const listener = {
    finished(request: FinishedRequest): void {
      told.push(request);
      waiting.get(request.reservation)?.(request);
    },
    running: () => undefined,
  };
  const start = async (listen: string): Promise<ExtAuthzServer> => {
    const server = await startExtAuthz(gate, { listen, listener });
    server.setReady(true);
    return server;
  };
  let checks = await start('127.0.0.1:0');
  const grpc = (await options.checksBy?.(checks.address)) ?? checks.address;
  const edge = await startEdge({ grpc, meter: checks.address, http: upstream, upstream }, options.edit);
  return {
    world,
    edge,
    told,
    reservations,
    finished(model) {
      const reservation = reservations.get(model);
      if (reservation === undefined) throw new Error(`no request for ${model} was let through`);
      const known = told.find((request) => request.reservation === reservation);
      if (known !== undefined) return Promise.resolve(known);
      return new Promise((resolve) => waiting.set(reservation, resolve));
    },
    async replaceServer() {
      const { address } = checks;
      await checks.drain(5000);
      checks = await start(address);
    },
    async stop() {
      await edge.stop();
      await checks.drain(1000);
    },
  };
}
