/**
 * HTTP as a client sends it, with nothing added, joined or corrected on the way; and small servers to stand behind
 * Envoy.
 */

import { once } from 'node:events';
import {
  type Agent,
  createServer,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type RequestListener,
  request,
} from 'node:http';
import { connect } from 'node:net';

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface Call {
  readonly method?: string;
  /** Sent as it is. */
  readonly path: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string | Uint8Array;
  /** True: each character of the answer's body is one byte. */
  readonly binary?: boolean;
  /** The connections to use; default: a connection for this request alone. */
  readonly agent?: Agent;
}

/** @param url `http://host:port` */
export async function send(url: string, call: Call): Promise<Answer> {
  const { hostname, port } = new URL(url);
  const options = {
    hostname,
    port,
    method: call.method ?? 'GET',
    path: call.path,
    headers: call.headers ?? {},
    agent: call.agent ?? false,
  };
  return new Promise((resolve, reject) => {
    const outgoing = request(options, (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
      incoming.on('error', reject);
      incoming.on('end', () =>
        resolve({
          status: incoming.statusCode ?? 0,
          headers: incoming.headers,
          body: Buffer.concat(chunks).toString(call.binary ? 'latin1' : 'utf8'),
        }),
      );
    });
    outgoing.on('error', reject);
    outgoing.end(call.body);
  });
}

/** Writes bytes to a connection and reads until the server closes it. */
export async function sendRaw(port: number, bytes: string): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  socket.write(bytes, 'latin1');
  await once(socket, 'close');
  return Buffer.concat(chunks).toString('latin1');
}

export interface NamedServer {
  /** `host:port` */
  readonly address: string;
  close(): void;
}

/**
 * Answers everything with `{server, method, path, headers}`, so that a test sees where a request came out and as what.
 */
export function startNamedServer(name: string): Promise<NamedServer> {
  return startServer((incoming, outgoing) => {
    incoming.resume();
    incoming.on('end', () => {
      outgoing.setHeader('content-type', 'application/json');
      outgoing.end(
        JSON.stringify({ server: name, method: incoming.method, path: incoming.url, headers: incoming.headers }),
      );
    });
  });
}

/** On a free port of loopback. */
export async function startServer(answer: RequestListener): Promise<NamedServer> {
  const server = createServer(answer);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('no address');
  return {
    address: `127.0.0.1:${address.port}`,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}
