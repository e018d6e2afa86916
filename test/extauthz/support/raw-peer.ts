/** A gRPC peer that speaks HTTP/2 by hand, so that tests can break the rules that a gRPC client keeps. */

import { once } from 'node:events';
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  type ClientSessionOptions,
  connect,
  type IncomingHttpHeaders,
  type IncomingHttpStatusHeader,
} from 'node:http2';

export const CHECK_PATH = '/envoy.service.auth.v3.Authorization/Check';

/** How a call ended, as its peer sees it. */
export interface Ended {
  readonly http: number | undefined;
  readonly grpc: string | undefined;
  readonly text: string;
  readonly body: Buffer;
  /** The code of RST_STREAM; 0 = the call closed by itself, or was reset without an error. */
  readonly rstCode: number;
}

/** MB that Node lets the peer keep of what it has not sent yet; beyond it Node resets streams by itself. */
const MAX_SESSION_MEMORY = 2000;

/** Connects to `host:port` in plain text. Rejects when it cannot. */
export async function connectRaw(address: string, options: ClientSessionOptions = {}): Promise<ClientHttp2Session> {
  const session = connect(`http://${address}`, { maxSessionMemory: MAX_SESSION_MEMORY, ...options });
  session.on('error', () => undefined);
  await once(session, 'connect');
  return session;
}

/** Opens a call; the caller writes its bytes. */
export function openCall(
  session: ClientHttp2Session,
  path: string,
  headers: Record<string, string> = {},
): ClientHttp2Stream {
  const stream = session.request({
    ':method': 'POST',
    ':path': path,
    'content-type': 'application/grpc',
    te: 'trailers',
    ...headers,
  });
  stream.on('error', () => undefined);
  return stream;
}

/** Makes the call end its side when the server answers. Returns the call. */
export function endWithAnswer(stream: ClientHttp2Stream): ClientHttp2Stream {
  stream.once('response', () => stream.end());
  return stream;
}

/** Resolves when the call has ended, in any way. */
export async function endOf(stream: ClientHttp2Stream): Promise<Ended> {
  const chunks: Buffer[] = [];
  let head: IncomingHttpHeaders & IncomingHttpStatusHeader = {};
  let tail: IncomingHttpHeaders = {};
  stream.on('response', (headers) => {
    head = headers;
  });
  stream.on('trailers', (headers) => {
    tail = headers;
  });
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  await new Promise((resolve) => stream.once('close', resolve));
  const text = (name: string): string | undefined => [tail[name] ?? head[name]].flat()[0];
  return {
    http: head[':status'],
    grpc: text('grpc-status'),
    text: text('grpc-message') ?? '',
    body: Buffer.concat(chunks),
    rstCode: stream.rstCode ?? 0,
  };
}

/** One whole call: its bytes, and how it ended. */
export function call(
  session: ClientHttp2Session,
  path: string,
  bytes: Buffer,
  headers: Record<string, string> = {},
): Promise<Ended> {
  const stream = openCall(session, path, headers);
  const end = endOf(stream);
  stream.end(bytes);
  return end;
}
