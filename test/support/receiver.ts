/** A receiver of webhooks on loopback, whose answers a test chooses by path. */

import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface Receiver {
  /** `127.0.0.1:<port>`, for the setting webhooks.allowed-hosts. */
  readonly host: string;
  readonly received: readonly Received[];
  /** Answers the requests to a path. Default: 204. A function that ends nothing lets the sender wait. */
  answer(path: string, how: (response: ServerResponse) => void): void;
  /** Resolves with the requests to a path when there are as many. */
  until(path: string, count: number): Promise<readonly Received[]>;
  close(): Promise<void>;
}

export async function startReceiver(): Promise<Receiver> {
  const received: Received[] = [];
  const answers = new Map<string, (response: ServerResponse) => void>();
  const waiting = new Set<() => void>();
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const path = request.url ?? '';
      received.push({ path, headers: request.headers, body: Buffer.concat(chunks).toString() });
      for (const check of waiting) check();
      const how = answers.get(path);
      if (how === undefined) response.writeHead(204).end();
      else how(response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    host: `127.0.0.1:${port}`,
    received,
    answer: (path, how) => answers.set(path, how),
    async until(path, count) {
      const of = (): readonly Received[] => received.filter((each) => each.path === path);
      const { promise, resolve } = Promise.withResolvers<void>();
      const check = (): void => {
        if (of().length >= count) resolve();
      };
      waiting.add(check);
      check();
      await promise;
      waiting.delete(check);
      return of();
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
