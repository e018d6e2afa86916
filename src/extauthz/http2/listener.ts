/**
 * Listens for HTTP/2 connections: TCP or a Unix socket, plain with prior knowledge or TLS with ALPN (RFC 9113, sections
 * 3.2 and 3.3).
 */

import { createServer, type Server, type Socket } from 'node:net';
import {
  createSecureContext,
  createServer as createTlsServer,
  type TLSSocket,
  type Server as TlsServer,
} from 'node:tls';
import { MAX_CONNECTIONS, MAX_GREETING_MS, PING_EVERY_MS } from './bounds.ts';
import { Connection, type ConnectionCounts } from './connection.ts';
import type { ReadTarget } from './header-blocks.ts';
import { HeaderMemo } from './header-memo.ts';
import type { Target } from './stream.ts';

/** PEM. */
export interface TlsMaterial {
  readonly cert: Buffer;
  readonly key: Buffer;
  /** If given, only clients with a certificate of this authority can connect. */
  readonly clientCa: Buffer | undefined;
}

/** An address in the form that `net.Server` takes. */
export type ListenAt = { readonly host: string; readonly port: number } | { readonly path: string };

interface ListenerOptions {
  readonly readTarget: ReadTarget;
  readonly tls: TlsMaterial | undefined;
  /** A monotonic clock, in milliseconds. */
  readonly nowMs: () => number;
  /** Default: 4096. */
  readonly maxConnections?: number;
}

const ALPN = 'h2';

export class Http2Listener {
  readonly counts: ConnectionCounts = { refusedStreams: 0, endedConnections: 0, faults: 0 };
  readonly #options: ListenerOptions;
  readonly #server: Server;
  readonly #secured: TlsServer | undefined;
  /** Includes sockets whose TLS handshake is not finished. */
  readonly #sockets = new Set<Socket>();
  readonly #connections = new Set<Connection>();
  readonly #memo = new HeaderMemo<Target>();
  #pingedMs: number;
  #drained: PromiseWithResolvers<void> | undefined;

  constructor(options: ListenerOptions) {
    this.#options = options;
    this.#pingedMs = options.nowMs();
    if (options.tls === undefined) {
      this.#server = createServer({ noDelay: true }, (socket) => this.#accept(socket));
    } else {
      this.#secured = createTlsServer(
        {
          ...secureOptions(options.tls),
          ...clients(options.tls),
          ALPNProtocols: [ALPN],
          handshakeTimeout: MAX_GREETING_MS,
          noDelay: true,
        },
        (socket) => this.#acceptSecured(socket),
      );
      this.#server = this.#secured;
    }
    this.#server.maxConnections = options.maxConnections ?? MAX_CONNECTIONS;
    this.#server.on('connection', (socket: Socket) => this.#track(socket));
  }

  /** Rejects with the system's error if it cannot listen. */
  async listen(at: ListenAt): Promise<void> {
    const server = this.#server;
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(at, () => {
        server.off('error', reject);
        resolve();
      });
    });
    server.on('error', ignore);
  }

  /** The port of the listener; 0 for a Unix socket. */
  get port(): number {
    const address = this.#server.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  }

  get connections(): ReadonlySet<Connection> {
    return this.#connections;
  }

  /**
   * Uses this certificate and client CA for new connections. Open connections continue. Throws OpenSSL's error, and
   * changes nothing, if certificate and key are invalid or do not match.
   */
  setTls(tls: TlsMaterial): void {
    if (this.#secured === undefined) throw new Error('a server without TLS accepts no certificate');
    const options = secureOptions(tls);
    // Throws before it changes the server.
    createSecureContext(options);
    this.#secured.setSecureContext(options);
  }

  /** Enforces the time bounds of every connection and stream. */
  sweep(): void {
    const nowMs = this.#options.nowMs();
    for (const connection of this.#connections) connection.sweep(nowMs);
    if (nowMs - this.#pingedMs < PING_EVERY_MS) return;
    this.#pingedMs = nowMs;
    this.pingAll();
  }

  /** Pings every peer, and cuts those that have not answered the last ping. */
  pingAll(): void {
    for (const connection of this.#connections) connection.ping();
  }

  /**
   * Accepts no more connections. Resolves when all are closed: each after its running streams, all of them after
   * `graceMs`.
   */
  async drain(graceMs: number): Promise<void> {
    this.#server.close();
    this.#drained = Promise.withResolvers<void>();
    if (this.#sockets.size === 0) this.#drained.resolve();
    for (const connection of this.#connections) connection.drain();
    const cut = setTimeout(() => {
      for (const socket of this.#sockets) socket.destroy();
    }, graceMs);
    await this.#drained.promise;
    clearTimeout(cut);
  }

  #track(socket: Socket): void {
    this.#sockets.add(socket);
    socket.once('close', () => {
      this.#sockets.delete(socket);
      if (this.#sockets.size === 0) this.#drained?.resolve();
    });
  }

  #acceptSecured(socket: TLSSocket): void {
    if (socket.alpnProtocol === ALPN) this.#accept(socket);
    else socket.destroy();
  }

  #accept(socket: Socket): void {
    const { readTarget, nowMs } = this.#options;
    const connection = new Connection(socket, { readTarget, memo: this.#memo, nowMs, counts: this.counts }, nowMs());
    this.#connections.add(connection);
    socket.once('close', () => this.#connections.delete(connection));
    if (this.#drained !== undefined) connection.drain();
  }
}

/** Returns the options that can change while the server runs. */
export function secureOptions({ cert, key, clientCa }: TlsMaterial) {
  return { cert, key, minVersion: 'TLSv1.2' as const, ...(clientCa === undefined ? {} : { ca: clientCa }) };
}

/** Returns the options that cannot change: whether the server requires a certificate of clients. */
function clients({ clientCa }: TlsMaterial) {
  return clientCa === undefined ? {} : { requestCert: true, rejectUnauthorized: true };
}

function ignore(): void {
  // A listening socket reports errors of single connections, which do not concern the others.
}
