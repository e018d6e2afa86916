/** One real Envoy in front of the real decision, with three keys, and an upstream that records the requests. */

import { readFile } from 'node:fs/promises';
import { connect } from 'node:http2';
import { connect as connectTcp } from 'node:net';
import { placeAddresses } from '../../../src/cli/envoy-config.ts';
import type { Resolution } from '../../../src/credential-cache/resolution.ts';
import { compileGrant, compilePolicies, compileTenant } from '../../../src/decision/compile.ts';
import type { KeyPrincipal } from '../../../src/decision/model.ts';
import { makeId } from '../../../src/domain/ids.ts';
import { createCheckHandler } from '../../../src/extauthz/check-handler.ts';
import { startExtAuthz } from '../../../src/extauthz/server.ts';
import { makeApiKey } from '../../../src/identity/api-keys.ts';
import { ACME, builtinRoutes, NOW_MS } from '../../extauthz/support/little-world.ts';
import { builtinRoles } from '../../support/builtin-roles.ts';
import { DEMO_CONFIG, startConfig } from '../../support/envoy.ts';
import { startServer } from '../../support/http.ts';

/** The request that the upstream, or Postern's HTTP module, received. */
export interface Received {
  readonly server: 'upstream' | 'postern';
  readonly url: string;
  /** Names in the spelling that came; repeated ones apart. */
  readonly headers: readonly (readonly [string, string])[];
}

export interface Reply {
  /** 0: the connection or the stream was closed without an answer. */
  readonly status: number;
  readonly received: Received | undefined;
}

const KEYS = {
  reader: compileGrant(['models:read'], {}),
  openReader: compileGrant(['models:read'], { models: ['open-*'] }),
  everything: compileGrant(['*'], {}),
};

export type Client = keyof typeof KEYS;

/** The listeners of the one Envoy: what is missing in each, of `envoy/demo.yaml`. */
const LISTENERS = ['edge', 'unfiltered', 'bare'] as const;
export type Listener = (typeof LISTENERS)[number];

export interface Stand {
  authorization(client: Client): string;
  /** Everything that came to the upstream so far. */
  readonly upstream: readonly Received[];
  /** Sends a request as it is written here, over HTTP/1.1. */
  http1(target: string, headers: readonly string[], listener?: Listener): Promise<Reply>;
  /** Sends a request for a path, over HTTP/2. */
  http2(path: string, authorization: string): Promise<Reply>;
  stop(): Promise<void>;
}

export async function startStand(): Promise<Stand> {
  const running = new AsyncDisposableStack();
  const texts = new Map<Client, string>();
  const resolutions = new Map<string, Resolution>();
  const tenant = compileTenant({ id: ACME, status: 'active', settings: {}, quotas: {}, roles: [], policies: [] });
  const snapshot = { own: tenant, effective: tenant, global: compilePolicies([]), builtinRoles };
  for (const [index, client] of (['reader', 'openReader', 'everything'] as const).entries()) {
    const { text, digest } = makeApiKey();
    const id = makeId('key', NOW_MS, Buffer.alloc(10, index));
    const principal: KeyPrincipal = {
      kind: 'api_key',
      id,
      tenantId: ACME,
      grant: KEYS[client],
      owner: undefined,
      rateLimitRpm: undefined,
    };
    texts.set(client, text);
    resolutions.set(digest, { identity: { kind: 'proved', principal }, snapshot });
  }
  const gate = createCheckHandler({
    routes: builtinRoutes(),
    resolver: {
      resolve: (credential) =>
        (credential.kind === 'api_key' ? resolutions.get(credential.digest) : undefined) ?? {
          identity: credential.kind === 'missing' ? { kind: 'missing' } : { kind: 'invalid', reason: 'unknown' },
          snapshot: undefined,
        },
    },
    observer: { observe: () => undefined },
    trustedHops: 0,
    forwardCredential: false,
  });
  const checks = await startExtAuthz(gate, { listen: '127.0.0.1:0' });
  running.defer(() => checks.drain(1000));
  checks.setReady(true);
  const seen: Received[] = [];
  const echo = (server: Received['server']) =>
    startServer((incoming, outgoing) => {
      incoming.resume();
      const { rawHeaders } = incoming;
      const headers = rawHeaders.flatMap((name, i) => (i % 2 === 0 ? [[name, rawHeaders[i + 1] ?? ''] as const] : []));
      const received = { server, url: incoming.url ?? '', headers };
      if (server === 'upstream') seen.push(received);
      outgoing.end(JSON.stringify(received));
    });
  const [upstream, postern] = await Promise.all([echo('upstream'), echo('postern')]);
  running.defer(() => upstream.close());
  running.defer(() => postern.close());
  const edge = await startConfig(
    await configuration({ grpc: checks.address, http: postern.address, upstream: upstream.address }),
  );
  running.defer(() => edge.stop());
  const portOf = (listener: Listener): number => Number(edge.listeners.get(listener)?.split(':').at(-1));
  return {
    authorization: (client) => `Bearer ${texts.get(client)}`,
    upstream: seen,
    http1: async (target, headers, listener = 'edge') => {
      return sendHttp1(portOf(listener), [`GET ${target} HTTP/1.1`, 'Host: x', ...headers, '', ''].join('\r\n'));
    },
    http2: (path, authorization) => sendHttp2(edge.url, path, authorization),
    stop: () => running.disposeAsync(),
  };
}

interface Filter {
  name: string;
  typed_config: Record<string, unknown>;
}
interface Listening {
  name: string;
  filter_chains: {
    filters: { typed_config: { http_filters: Filter[]; common_http_protocol_options: Record<string, unknown> } }[];
  }[];
}

/**
 * `envoy/demo.yaml` with two listeners more: `unfiltered` has no header_mutation filter and takes underscores, `bare`
 * besides has nothing that says which headers the check sees or what an answer may change, as other installations of
 * Envoy.
 */
async function configuration(at: {
  readonly grpc: string;
  readonly http: string;
  readonly upstream: string;
}): Promise<object> {
  const text = await readFile(DEMO_CONFIG, 'utf8');
  const places = { edge: '127.0.0.1:0', 'postern-grpc': at.grpc, 'postern-http': at.http, upstream: at.upstream };
  const config = placeAddresses(text, { admin: '127.0.0.1:0', places }) as {
    static_resources: { listeners: Listening[] };
  };
  const { listeners } = config.static_resources;
  const [first] = listeners;
  for (const name of LISTENERS.slice(1)) {
    const listener = structuredClone(first);
    if (listener === undefined) throw new Error('the configuration has no listener');
    listener.name = name;
    for (const { filters } of listener.filter_chains) {
      for (const { typed_config: manager } of filters) {
        delete manager.common_http_protocol_options['headers_with_underscores_action'];
        manager.http_filters = manager.http_filters.filter((one) => one.name !== 'envoy.filters.http.header_mutation');
        const check = manager.http_filters.find((one) => one.name === 'envoy.filters.http.ext_authz');
        if (name === 'bare')
          for (const key of ['allowed_headers', 'decoder_header_mutation_rules']) delete check?.typed_config[key];
      }
    }
    listeners.push(listener);
  }
  return config;
}

function receivedOf(body: string): Received | undefined {
  return body.startsWith('{"server":') ? JSON.parse(body) : undefined;
}

/**
 * Writes a request to a connection and reads one answer. Envoy keeps the connection open for a second after a bad
 * request.
 */
function sendHttp1(port: number, request: string): Promise<Reply> {
  const socket = connectTcp(port, '127.0.0.1');
  return new Promise((resolve) => {
    let answer = '';
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      answer += chunk;
      const end = answer.indexOf('\r\n\r\n');
      const length = Number(/^content-length: (\d+)\r$/im.exec(answer)?.[1] ?? Number.POSITIVE_INFINITY);
      if (end >= 0 && answer.length >= end + 4 + length) socket.destroy();
    });
    // A connection that breaks shows by the answer that is not there.
    socket.on('error', () => undefined);
    socket.on('close', () => {
      const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? 0);
      resolve({ status, received: receivedOf(answer.slice(answer.indexOf('\r\n\r\n') + 4)) });
    });
    socket.write(request, 'latin1');
  });
}

/** Sends one request on a connection of its own, because Envoy ends the whole connection for some targets. */
function sendHttp2(url: string, path: string, authorization: string): Promise<Reply> {
  return new Promise((resolve) => {
    let status = 0;
    const chunks: Buffer[] = [];
    const session = connect(url);
    const end = (): void => session.destroy();
    // A connection that breaks shows by the answer that is not there.
    session.on('error', end).on('goaway', end);
    session.on('close', () => resolve({ status, received: receivedOf(Buffer.concat(chunks).toString()) }));
    const stream = session.request({ ':path': path, authorization });
    stream.on('response', (headers) => {
      status = Number(headers[':status']);
    });
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('error', end).on('end', end);
    stream.end();
  });
}
