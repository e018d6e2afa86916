/** The API behind a real Envoy with a real gate, where a test can hold a request's body back and see what is stored. */

import { request } from 'node:http';
import { createCheckHandler } from '../../../src/extauthz/check-handler.ts';
import { startExtAuthz } from '../../../src/extauthz/server.ts';
import { type Database, openDatabase } from '../../../src/store/database.ts';
import { type Edge, startEdge } from '../../support/envoy.ts';
import { startNamedServer } from '../../support/http.ts';
import { nowhere } from '../directories.ts';
import { type Harness, startHarness } from '../harness.ts';
import { type Case, type Stored, storedReader } from './cases.ts';
import type { SampleRequest } from './samples.ts';

/** Cases that run beside each other; each takes a connection for its request and one for its ending. */
export const AT_ONCE = 6;

export interface Sending {
  /** `<status> <code>`, with the detail of a problem. */
  readonly answer: Promise<{ readonly outcome: string; readonly detail: string | undefined }>;
  /** Sends the rest of the body. */
  finish(): void;
}

export interface Stand {
  readonly h: Harness;
  readonly edge: Edge;
  /** The same database, by connections that the API does not use. */
  readonly outside: Database;
  readonly stored: Stored;
  /** Resolves when the listener has looked up the credential of a case, from now on. */
  admitted(of: Case): Promise<void>;
  /** Sends the request's head and the first byte of its body through Envoy. */
  begin(sample: SampleRequest, credential: string): Sending;
  close(): Promise<void>;
}

export async function startStand(): Promise<Stand> {
  const lookedUp = new Map<string, () => void>();
  const h = await startHarness({
    directory: nowhere(),
    resolver: (live) => ({
      async resolve(credential, ...rest) {
        const resolution = await live.resolve(credential, ...rest);
        if (credential.kind === 'api_key') lookedUp.get(credential.digest)?.();
        if (credential.kind === 'token') lookedUp.get(credential.token)?.();
        return resolution;
      },
    }),
  });
  const outside = openDatabase({ url: h.databaseUrl, poolMax: 2 * AT_ONCE, queryTimeoutMs: 10_000 });
  const gate = createCheckHandler({
    routes: h.platformRoutes,
    resolver: h.live,
    limiter: { admit: () => ({ kind: 'admitted', reservation: undefined, rate: undefined }), release: () => undefined },
    observer: { observe: () => undefined },
    trustedHops: 0,
    forwardCredential: false,
  });
  const grpc = await startExtAuthz(gate, { listen: '127.0.0.1:0' });
  grpc.setReady(true);
  const upstream = await startNamedServer('upstream');
  const edge = await startEdge({ grpc: grpc.address, http: new URL(h.url).host, upstream: upstream.address });
  const { hostname, port } = new URL(edge.url);
  return {
    h,
    edge,
    outside,
    stored: await storedReader(h),
    admitted: (of) => new Promise<void>((resolve) => lookedUp.set(of.lookedUpAs, resolve)),
    begin({ method, path, body }, credential) {
      const headers = {
        authorization: `Bearer ${credential}`,
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
      };
      const outgoing = request({ hostname, port, method, path, headers, agent: false });
      const answer: Sending['answer'] = new Promise((resolve, reject) => {
        outgoing.on('error', reject);
        outgoing.on('response', async (incoming) => {
          const status = incoming.statusCode ?? 0;
          const text = Buffer.concat(await incoming.toArray()).toString();
          if (status < 400) return resolve({ outcome: String(status), detail: undefined });
          const problem: { readonly code?: string; readonly detail?: string } = JSON.parse(text);
          return resolve({ outcome: `${status} ${problem.code}`, detail: problem.detail });
        });
      });
      outgoing.write(body.slice(0, 1));
      return { answer, finish: () => outgoing.end(body.slice(1)) };
    },
    async close() {
      await edge.stop();
      await grpc.drain(100);
      upstream.close();
      await outside.close();
      await h.close();
    },
  };
}

/** Runs work for each item, several at a time. Resolves with the results by name. */
export async function forEach<T, R>(
  items: readonly T[],
  nameOf: (item: T) => string,
  work: (item: T) => Promise<R>,
): Promise<Readonly<Record<string, R>>> {
  const waiting = [...items];
  const results: Record<string, R> = {};
  const worker = async (): Promise<void> => {
    for (let item = waiting.shift(); item !== undefined; item = waiting.shift())
      results[nameOf(item)] = await work(item);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return results;
}
