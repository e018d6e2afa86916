/**
 * The listener for monitoring: `/healthz`, `/readyz` and `/metrics`. It has its own address and shares nothing with the
 * API, so a flood or a bug in the API does not affect it.
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import { inTime } from '../concurrency/in-time.ts';

/** Returns the reasons why a replica cannot decide, for the operator. Empty: it is ready. */
type ReadinessCheck = () => readonly string[];

export interface ReadinessParts {
  /** True after the request to stop. */
  readonly draining: () => boolean;
  /**
   * Returns the milliseconds since the last read of the change feed; Infinity before the first. It shows that the
   * database is unreachable. Until then, the replica is ready and decides from cached data.
   */
  readonly feedAgeMs: () => number;
  /** The server trusts no cached data when the feed is older. */
  readonly maxStalenessMs: number;
  /** True when access tokens can be signed and verified. */
  readonly signingKeysReady: () => boolean;
}

// Not by an import, which loads Node's fetch as well and takes 40 ms of each start.
const { createServer } = process.getBuiltinModule('node:http');

const ANSWER_TIMEOUT_MS = 5_000;
const MAX_CONNECTIONS = 64;

function late(): never {
  throw new Error('no answer in time');
}

/** Combines the conditions of readiness. While the process drains, it does not check the others. */
export function readiness(parts: ReadinessParts): ReadinessCheck {
  return () => {
    if (parts.draining()) return ['draining: the process is stopping'];
    const reasons: string[] = [];
    const ageMs = parts.feedAgeMs();
    if (!(ageMs < parts.maxStalenessMs)) {
      reasons.push(
        Number.isFinite(ageMs)
          ? `change feed: last read ${Math.round(ageMs / 1000)} s ago, more than ${Math.round(parts.maxStalenessMs / 1000)} s`
          : 'change feed: not read yet',
      );
    }
    if (!parts.signingKeysReady()) reasons.push('signing keys: none is loaded');
    return reasons;
  };
}

interface HealthParts {
  readonly listen: { readonly host: string; readonly port: number };
  readonly ready: ReadinessCheck;
  /** Returns warnings for the operator that do not make the replica unready. Shown in both responses. */
  readonly warnings: () => readonly string[];
  readonly metrics: () => Promise<string>;
}

export interface HealthServer {
  readonly address: { readonly host: string; readonly port: number };
  close(): Promise<void>;
}

interface Answer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

const JSON_TYPE = 'application/json; charset=utf-8';
const TEXT_FORMAT = 'text/plain; version=0.0.4; charset=utf-8';

function json(status: number, value: unknown): Answer {
  return { status, contentType: JSON_TYPE, body: `${JSON.stringify(value)}\n` };
}

async function answerTo(parts: HealthParts, request: IncomingMessage): Promise<Answer> {
  if (request.method !== 'GET' && request.method !== 'HEAD') return json(405, { status: 'method not allowed' });
  const [path] = (request.url ?? '').split('?');
  switch (path) {
    case '/healthz':
      return json(200, { status: 'ok' });
    case '/readyz': {
      const reasons = parts.ready();
      const warnings = parts.warnings();
      const details = warnings.length === 0 ? {} : { warnings };
      return reasons.length === 0
        ? json(200, { status: 'ready', ...details })
        : json(503, { status: 'not ready', reasons, ...details });
    }
    case '/metrics':
      return { status: 200, contentType: TEXT_FORMAT, body: await parts.metrics() };
    default:
      return json(404, { status: 'not found', paths: ['/healthz', '/readyz', '/metrics'] });
  }
}

function write(response: ServerResponse, request: IncomingMessage, answer: Answer): void {
  const headers: Record<string, string | number> = {
    'content-type': answer.contentType,
    'content-length': Buffer.byteLength(answer.body),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  };
  // The server reads no body here, so the connection ends with the response.
  if (request.headers['content-length'] !== undefined || request.headers['transfer-encoding'] !== undefined) {
    headers['connection'] = 'close';
  }
  response.writeHead(answer.status, headers);
  response.end(request.method === 'HEAD' ? undefined : answer.body);
}

/** Starts the listener. Rejects if it cannot listen on the address. */
export async function startHealthServer(parts: HealthParts): Promise<HealthServer> {
  const server = createServer({
    maxHeaderSize: 8 * 1024,
    headersTimeout: 5_000,
    requestTimeout: 5_000,
    keepAliveTimeout: 15_000,
  });
  server.maxConnections = MAX_CONNECTIONS;
  server.on('request', (request, response) => {
    inTime(answerTo(parts, request), ANSWER_TIMEOUT_MS, late).then(
      (answer) => write(response, request, answer),
      () =>
        write(response, request, json(503, { status: 'not ready', reasons: ['the answer could not be made in time'] })),
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(parts.listen.port, parts.listen.host, () => {
      server.off('error', reject);
      resolve();
    });
  });
  const bound = server.address();
  const isTcp = typeof bound === 'object' && bound !== null;
  const address = isTcp ? { host: bound.address, port: bound.port } : parts.listen;
  return {
    address,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
