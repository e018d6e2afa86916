/**
 * Steady load through Envoy: a few clients that keep their connections and send the next request when the last one is
 * answered.
 */

import { Agent, type RequestOptions, request } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';

export interface LoadRequest {
  /** How its counts are named. */
  readonly name: string;
  readonly method: 'GET' | 'POST' | 'PUT';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Clients that send it. */
  readonly clients: number;
}

export interface Failure {
  readonly name: string;
  /** Milliseconds since the load began. */
  readonly atMs: number;
  /** The status and the body, or the error of the connection. */
  readonly says: string;
}

export interface Load {
  /** Requests answered with a status from 200 to 299, by name. */
  readonly answered: ReadonlyMap<string, number>;
  /** Requests that were not, by name. */
  readonly failed: ReadonlyMap<string, number>;
  /** The first of them. */
  readonly failures: readonly Failure[];
  /** Resolves when so many more requests of each kind have been answered or have failed. */
  more(count: number): Promise<void>;
  /** Resolves when the requests under way are answered. */
  stop(): Promise<void>;
}

/** Between two requests of one client: steady, and not all of the machine. */
const PAUSE_MS = 40;
const MAX_KEPT_FAILURES = 10;
const MAX_SHOWN_CHARS = 300;
const POLL_MS = 10;

/** @param ca of Envoy's certificate, which must be for `localhost` */
export function startLoad(
  at: { readonly host: string; readonly port: number; readonly ca: string },
  requests: readonly LoadRequest[],
  pauseMs = PAUSE_MS,
): Load {
  const agent = new Agent({ keepAlive: true, ca: at.ca, servername: 'localhost' });
  const began = performance.now();
  const answered = new Map(requests.map(({ name }) => [name, 0]));
  const failures: Failure[] = [];
  const failed = new Map(requests.map(({ name }) => [name, 0]));
  let stopped = false;
  const client = async (each: LoadRequest): Promise<void> => {
    while (!stopped) {
      const atMs = Math.round(performance.now() - began);
      const says = await send({ ...at, agent }, each);
      const counts = says === undefined ? answered : failed;
      counts.set(each.name, (counts.get(each.name) ?? 0) + 1);
      if (says !== undefined && failures.length < MAX_KEPT_FAILURES) failures.push({ name: each.name, atMs, says });
      await sleep(pauseMs);
    }
  };
  const clients = requests.flatMap((each) => Array.from({ length: each.clients }, () => client(each)));
  return {
    answered,
    failed,
    failures,
    async more(count) {
      const ended = (name: string): number => (answered.get(name) ?? 0) + (failed.get(name) ?? 0);
      const goals = requests.map(({ name }) => ({ name, goal: ended(name) + count }));
      while (goals.some(({ name, goal }) => ended(name) < goal)) await sleep(POLL_MS);
    },
    async stop() {
      stopped = true;
      await Promise.all(clients);
      agent.destroy();
    },
  };
}

/** Undefined if it was answered well. */
function send(options: RequestOptions, { method, path, headers, body = '' }: LoadRequest): Promise<string | undefined> {
  return new Promise((resolve) => {
    const outgoing = request(
      { ...options, method, path, headers: { ...headers, 'content-length': Buffer.byteLength(body) } },
      (incoming) => {
        let text = '';
        incoming.setEncoding('utf8').on('data', (chunk: string) => {
          if (text.length < MAX_SHOWN_CHARS) text += chunk;
        });
        incoming.on('error', (error) => resolve(`the answer broke off: ${error.message}`));
        incoming.on('end', () => {
          const { statusCode: status = 0 } = incoming;
          resolve(status >= 200 && status < 300 ? undefined : `${status} ${text.slice(0, MAX_SHOWN_CHARS)}`);
        });
      },
    );
    outgoing.on('error', (error) => resolve(error.message));
    outgoing.end(body);
  });
}
