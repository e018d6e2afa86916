/** A server that sends scripted answers one after the other, and records the requests. */

import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { text } from 'node:stream/consumers';

export interface ScriptedAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON unless it is text. */
  readonly body?: unknown;
}

/**
 * `hangUp`: the connection ends without an answer; `silence`: there never is one; `half`: the answer breaks off in its
 * body.
 */
export type Step = ScriptedAnswer | 'hangUp' | 'silence' | 'half';

export interface Asked {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface ScriptedServer {
  readonly url: string;
  readonly asked: readonly Asked[];
  /** Resolves when `count` requests have arrived. */
  arrived(count: number): Promise<void>;
  close(): Promise<void>;
}

/** @param script the last step is for all that come after it too */
export async function startScripted(script: readonly Step[]): Promise<ScriptedServer> {
  const asked: Asked[] = [];
  const arrivals = new EventTarget();
  const server = createServer(async (incoming, outgoing) => {
    const { method = '', url = '', headers } = incoming;
    const body = await text(incoming);
    const step = script[Math.min(asked.length, script.length - 1)];
    asked.push({ method, url, headers, body });
    arrivals.dispatchEvent(new Event('arrival'));
    if (step === undefined || step === 'silence') return;
    if (step === 'hangUp') {
      incoming.socket.destroy();
    } else if (step === 'half') {
      outgoing.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' });
      outgoing.write('{"id":', () => incoming.socket.destroy());
    } else {
      const problem = step.status >= 400;
      outgoing.writeHead(step.status, {
        'content-type': `application/${problem ? 'problem+' : ''}json`,
        ...step.headers,
      });
      outgoing.end(step.body === undefined || typeof step.body === 'string' ? step.body : JSON.stringify(step.body));
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('no address');
  return {
    url: `http://127.0.0.1:${address.port}`,
    asked,
    async arrived(count) {
      while (asked.length < count) await once(arrivals, 'arrival');
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** A refusal or fault as Postern writes it. */
export function problem(status: number, code: string, headers: Readonly<Record<string, string>> = {}): ScriptedAnswer {
  const body = {
    type: `https://postern.dev/errors/${code}`,
    title: 'A title',
    status,
    detail: 'A detail.',
    code,
    request_id: 'req_1',
  };
  return { status, headers, body };
}
