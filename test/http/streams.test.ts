/** Answers that are sent piece by piece. */

import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { trustProxies } from '../../src/http/client-address.ts';
import { publicEndpoint } from '../../src/http/endpoint.ts';
import { createHttp } from '../../src/http/server.ts';
import { send } from '../support/http.ts';

async function serve(pieces: () => AsyncIterable<string>, longestMs = 60_000): Promise<string> {
  const route = publicEndpoint({
    method: 'GET',
    path: '/pieces',
    operationId: 'pieces',
    summary: 'Pieces.',
    answers: { 200: { description: 'Pieces.' } },
    handler: async () => ({ status: 200, stream: { type: 'text/plain; charset=utf-8', pieces: pieces(), longestMs } }),
  });
  const unused = () => Promise.reject(new Error('nobody is asked who calls'));
  const http = createHttp(
    { resolver: { resolve: unused }, now: Date.now, random: (size) => new Uint8Array(size), trusted: trustProxies([]) },
    [route],
  );
  await http.listen({ host: '127.0.0.1', port: 0 });
  onTestFinished(() => http.close());
  const address = http.server.address() as AddressInfo;
  return `http://127.0.0.1:${address.port}`;
}

test('arrive whole and in order', async () => {
  const url = await serve(async function* () {
    for (let i = 0; i < 1000; i++) yield `piece ${i} ü\n`;
  });
  const answer = await send(url, { path: '/pieces' });
  expect(answer.headers['content-type']).toBe('text/plain; charset=utf-8');
  expect(answer.headers['cache-control']).toBe('no-store');
  expect(answer.body).toBe(Array.from({ length: 1000 }, (_, i) => `piece ${i} ü\n`).join(''));
});

test('stop being made when the client goes away', async () => {
  const ended = Promise.withResolvers<void>();
  const url = await serve(async function* () {
    try {
      for (;;) yield 'x'.repeat(100_000);
    } finally {
      ended.resolve();
    }
  });
  const asked = request(`${url}/pieces`);
  asked.on('error', () => undefined);
  asked.end();
  const [answer]: IncomingMessage[] = await once(asked, 'response');
  expect(answer?.statusCode).toBe(200);
  asked.destroy();
  await ended.promise;
});

test('are not made for HEAD, which shows their headers', async () => {
  let made = 0;
  const url = await serve(async function* () {
    made++;
    yield 'a piece';
  });
  const answer = await send(url, { method: 'HEAD', path: '/pieces' });
  expect([answer.status, answer.headers['content-type'], answer.body, made]).toEqual([
    200,
    'text/plain; charset=utf-8',
    '',
    0,
  ]);
});

/** Returns the bytes of a connection whose reader begins late. */
async function readLate(url: string, wait: (answer: IncomingMessage) => Promise<void>) {
  const asked = request(`${url}/pieces`, { agent: false });
  asked.end();
  const [answer]: IncomingMessage[] = await once(asked, 'response');
  if (answer === undefined) throw new Error('no answer');
  answer.on('error', () => undefined);
  await wait(answer);
  let bytes = 0;
  answer.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
  });
  await new Promise((resolve) => answer.on('close', resolve));
  return { bytes, whole: answer.complete };
}

test('that break off deliver every byte from before the break, also to a slow reader', async () => {
  const PIECES = 100;
  const url = await serve(async function* () {
    for (let i = 0; i < PIECES; i++) yield 'x'.repeat(200_000);
    throw new Error('the source has gone');
  });
  const late = await readLate(url, () => new Promise((resolve) => setImmediate(resolve)));
  expect(late).toEqual({ bytes: PIECES * 200_000, whole: false });
});

test('break off after their longest duration, also without a reader', async () => {
  const ended = Promise.withResolvers<void>();
  const url = await serve(async function* () {
    try {
      for (;;) yield 'x'.repeat(200_000);
    } finally {
      ended.resolve();
    }
  }, 300);
  const late = await readLate(url, () => ended.promise);
  expect(late.whole).toBe(false);
});

test('that break off in the middle are incomplete for the client', async () => {
  const url = await serve(async function* () {
    yield 'a first piece\n';
    throw new Error('the source has gone');
  });
  await expect(send(url, { path: '/pieces' })).rejects.toThrow();
});
