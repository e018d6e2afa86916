/** Sends HTTP/2 requests to Envoy over TLS, on a connection that is opened again after it has ended. */

import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2';
import { connect as connectTcp } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';

/** Envoy's listener. */
export interface Edge {
  readonly host: string;
  readonly port: number;
  /** The authority that signed Envoy's certificate, PEM. */
  readonly ca: string;
}

export interface Request {
  readonly method: string;
  readonly path: string;
  /** Default: no credential. */
  readonly authorization?: string;
  /** JSON text. Default: no body. */
  readonly body?: string;
  /** Beside those above. */
  readonly headers?: Readonly<Record<string, string>>;
}

export type Outcome =
  | { readonly kind: 'reply'; readonly status: number; readonly body: string }
  /** No complete answer: the stream was reset, the connection broke, or the time passed. */
  | { readonly kind: 'lost'; readonly reason: string };

export class Connection {
  readonly #edge: Edge;
  readonly #localAddress: string;
  #session: ClientHttp2Session | undefined;

  /** @param localAddress an address of 127.0.0.0/8, which is the client's address for Envoy */
  constructor(edge: Edge, localAddress: string) {
    this.#edge = edge;
    this.#localAddress = localAddress;
  }

  send(request: Request, timeoutMs: number): Promise<Outcome> {
    return new Promise((resolve) => {
      const stream = this.open(request);
      let status = 0;
      let reason = 'closed';
      let ended = false;
      let aborted = false;
      const chunks: Buffer[] = [];
      const timer = setTimeout(() => {
        reason = 'timeout';
        stream.destroy();
      }, timeoutMs);
      stream.once('response', (headers) => {
        status = headers[':status'] ?? 0;
      });
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.once('end', () => {
        ended = true;
      });
      // A reset in the middle of an answer may look like its end.
      stream.once('aborted', () => {
        aborted = true;
        if (reason === 'closed') reason = 'reset';
      });
      stream.once('error', (error: Error) => {
        reason = error.message;
      });
      stream.once('close', () => {
        clearTimeout(timer);
        // An answer may come before the whole request was sent; then the server resets the stream without an error.
        const isCut = stream.rstCode !== 0 || (aborted && stream.writableFinished);
        if (!ended || isCut || status === 0) resolve({ kind: 'lost', reason });
        else resolve({ kind: 'reply', status, body: Buffer.concat(chunks).toString() });
      });
      stream.end(request.body);
    });
  }

  /** Sends the head of a request. The caller ends or destroys the stream, and listens for its errors. */
  open(request: Request): ClientHttp2Stream {
    return this.#connected().request({
      ':method': request.method,
      ':path': request.path,
      ...(request.authorization === undefined ? {} : { authorization: request.authorization }),
      ...(request.body === undefined ? {} : { 'content-type': 'application/json' }),
      ...request.headers,
    });
  }

  close(): void {
    this.#session?.destroy();
  }

  #connected(): ClientHttp2Session {
    if (this.#session !== undefined && !this.#session.closed && !this.#session.destroyed) return this.#session;
    const { host, port } = this.#edge;
    const session = connect(`https://${host}:${port}`, {
      createConnection: () => dial(this.#edge, this.#localAddress),
    });
    session.on('error', () => undefined);
    session.once('goaway', () => session.close());
    this.#session = session;
    return session;
  }
}

/** Opens TLS for HTTP/2. The socket's errors are the caller's to listen for. */
export function dial({ host, port, ca }: Edge, localAddress: string): TLSSocket {
  return connectTls({
    socket: connectTcp({ host, port, localAddress }),
    ca,
    servername: 'localhost',
    ALPNProtocols: ['h2'],
  });
}

/** Names an outcome for a count: `200`, `403 denied_by_policy`, `503 empty`, `lost: timeout`. */
export function nameOf(outcome: Outcome): string {
  if (outcome.kind === 'lost') return `lost: ${outcome.reason}`;
  if (outcome.status < 400) return String(outcome.status);
  return `${outcome.status} ${codeOf(outcome.body) ?? (outcome.body === '' ? 'empty' : 'other')}`;
}

/** Returns the `code` of a problem document; undefined for any other body. */
export function codeOf(body: string): string | undefined {
  try {
    const parsed = JSON.parse(body) as { readonly code?: unknown };
    return typeof parsed.code === 'string' ? parsed.code : undefined;
  } catch {
    return undefined;
  }
}
