/** Clients that go away before their request is complete. */

import { connect, type Socket } from 'node:net';
import { Type } from 'typebox';
import { expect, onTestFinished, test } from 'vitest';
import { Fault } from '../../src/domain/errors.ts';
import { trustProxies } from '../../src/http/client-address.ts';
import { callerEndpoint, type Endpoint, publicEndpoint } from '../../src/http/endpoint.ts';
import { createHttp } from '../../src/http/server.ts';
import { createTelemetry } from '../../src/telemetry/telemetry.ts';

interface Stand {
  readonly port: number;
  /** Every line of the log, parsed. */
  readonly lines: readonly Record<string, unknown>[];
  /** Requests whose head the server has read. */
  readonly begun: () => number;
  readonly counted: () => Promise<string | undefined>;
}

const described = {
  method: 'POST',
  operationId: 'upload',
  summary: 'Takes a body.',
  answers: { 204: { description: 'Taken.' } },
} as const;

async function serve(routes: readonly Endpoint[], resolve: () => Promise<never>): Promise<Stand> {
  const lines: Record<string, unknown>[] = [];
  const telemetry = createTelemetry({ level: 'debug', stream: { write: (line) => void lines.push(JSON.parse(line)) } });
  const http = createHttp(
    {
      resolver: { resolve },
      now: Date.now,
      random: (size) => new Uint8Array(size),
      trusted: trustProxies([]),
      onAbortedUpload: telemetry.abortedUpload,
      log: telemetry.log,
    },
    routes,
  );
  let begun = 0;
  http.server.on('request', () => begun++);
  await http.listen({ host: '127.0.0.1', port: 0 });
  onTestFinished(() => http.close());
  // Without what the start itself logs.
  lines.length = 0;
  const address = http.server.address();
  if (typeof address !== 'object' || address === null) throw new Error('no port');
  return {
    port: address.port,
    lines,
    begun: () => begun,
    counted: async () => /^postern_http_aborted_uploads_total (\d+)$/m.exec(await telemetry.metrics.exposition())?.[1],
  };
}

const anyBody = Type.Object({});
const upload = publicEndpoint({ ...described, path: '/upload', body: anyBody, handler: async () => ({ status: 204 }) });
const nobody = () => Promise.reject(new Error('no caller is resolved'));

const HEAD = 'Host: api\r\nContent-Type: application/json\r\n';

async function sent(port: number, text: string): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  await new Promise<void>((resolve) => socket.write(text, () => resolve()));
  return socket;
}

test.each([
  ['with a length', `Content-Length: 100\r\n\r\n{"a":`],
  ['in chunks', 'Transfer-Encoding: chunked\r\n\r\n5\r\n{"a":\r\n'],
  ['of which no byte came', 'Content-Length: 100\r\n\r\n'],
])('an upload %s that its client aborts is counted, and logged below info without a stack', async (_form, rest) => {
  const { port, lines, begun, counted } = await serve([upload], nobody);
  for (const [before, end] of (['destroy', 'resetAndDestroy'] as const).entries()) {
    const socket = await sent(port, `POST /upload HTTP/1.1\r\n${HEAD}${rest}`);
    await expect.poll(begun).toBe(before + 1);
    socket[end]();
  }
  await expect.poll(counted).toBe('2');
  expect(lines.map(({ level, err }) => [level, err])).toEqual([
    ['debug', undefined],
    ['debug', undefined],
  ]);
  expect(JSON.stringify(lines)).not.toContain('stack');
});

test('a fault while the body is under way is still an error in the log', async () => {
  const asked = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<never>();
  const route = callerEndpoint({
    ...described,
    path: '/upload',
    permission: 'any',
    body: anyBody,
    handler: async () => ({ status: 204 }),
  });
  const { port, lines, counted } = await serve([route], () => {
    asked.resolve();
    return answer.promise;
  });
  const socket = await sent(
    port,
    `POST /upload HTTP/1.1\r\n${HEAD}Authorization: Bearer x\r\nContent-Length: 100\r\n\r\n{"a":`,
  );
  await asked.promise;
  socket.resetAndDestroy();
  answer.reject(new Fault('the database did not answer'));
  await expect.poll(() => lines.map(({ level }) => level)).toEqual(['error']);
  expect(await counted()).toBe('0');
});
