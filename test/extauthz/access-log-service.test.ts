import { once } from 'node:events';
import { Client, type ClientWritableStream, credentials, status } from '@grpc/grpc-js';
import { afterEach, describe, expect, test } from 'vitest';
import type { FinishedRequest } from '../../src/extauthz/access-log/entry.ts';
import { createAccessLog } from '../../src/extauthz/access-log/service.ts';
import { type ExtAuthzServer, startExtAuthz } from '../../src/extauthz/server.ts';
import { accessLog, RESERVATION } from './support/access-log.ts';

const METHOD = '/envoy.service.accesslog.v3.AccessLogService/StreamAccessLogs';
const GARBAGE = Buffer.from('garbage');

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const finished: string[] = [];
const entry = (reservation: string) => ({ decision: { reservation, tenant: 'acme' } });
const listener = {
  finished({ reservation }: FinishedRequest): void {
    if (reservation === 'bad') throw new Error('cannot be booked');
    finished.push(reservation);
  },
};

async function serve(): Promise<ExtAuthzServer> {
  finished.length = 0;
  const server = await startExtAuthz(() => Buffer.alloc(0), { listen: '127.0.0.1:0', listener });
  cleanups.push(() => server.drain(100));
  return server;
}

interface Stream {
  readonly call: ClientWritableStream<Buffer>;
  /** The status that it ends with. */
  readonly end: Promise<number>;
}

function stream(address: string): Stream {
  const client = new Client(address, credentials.createInsecure());
  cleanups.push(() => client.close());
  const asIs = (bytes: Buffer): Buffer => bytes;
  const call = client.makeClientStreamRequest(METHOD, asIs, asIs, () => undefined);
  return { call, end: once(call, 'status').then(([{ code }]) => code) };
}

describe('an access log', () => {
  test('is told entry by entry, while its stream goes on', async () => {
    const server = await serve();
    const { call, end } = stream(server.address);
    call.write(accessLog(entry('one'), {}, entry('two')));
    await expect.poll(() => finished).toEqual(['one', 'two']);
    expect(server.accessLog).toEqual({ streams: 1, entries: 2, broken: 0, failed: 0 });
    call.write(accessLog(entry('three')));
    call.end();
    expect(await end).toBe(status.OK);
    expect(finished).toEqual(['one', 'two', 'three']);
    await expect.poll(() => server.accessLog.streams).toBe(0);
  });

  test('that cannot be read ends its stream, is counted, and disturbs no other', async () => {
    const server = await serve();
    const other = stream(server.address);
    other.call.write(accessLog(entry('one')));
    const broken = stream(server.address);
    broken.call.write(GARBAGE);
    expect(await broken.end).toBe(status.INVALID_ARGUMENT);
    other.call.end(accessLog(entry('two')));
    expect(await other.end).toBe(status.OK);
    expect(finished).toEqual(['one', 'two']);
    expect(server.accessLog).toMatchObject({ entries: 2, broken: 1 });
  });

  test('loses no entry beside one that cannot be booked', async () => {
    const server = await serve();
    const { call, end } = stream(server.address);
    call.write(accessLog(entry('one'), entry('bad'), entry('two')));
    call.end();
    expect(await end).toBe(status.OK);
    expect(finished).toEqual(['one', 'two']);
    expect(server.accessLog).toMatchObject({ entries: 2, failed: 1 });
  });

  test('ends well when the server stops, which does not wait for its peer', async () => {
    const server = await serve();
    const { call, end } = stream(server.address);
    call.write(accessLog(entry('one')));
    await expect.poll(() => finished).toEqual(['one']);
    const drained = server.drain(60_000);
    expect(await end).toBe(status.OK);
    await drained;
  });

  test('is not taken where nobody listens', async () => {
    const server = await startExtAuthz(() => Buffer.alloc(0), { listen: '127.0.0.1:0' });
    cleanups.push(() => server.drain(100));
    expect(await stream(server.address).end).toBe(status.UNIMPLEMENTED);
    expect(server.accessLog.entries).toBe(0);
  });

  test('has so many streams and no more, and none when it is about to end', () => {
    const log = createAccessLog(listener);
    const method = log.methods[METHOD];
    if (method?.kind !== 'client-stream') return expect.fail('no stream');
    const gone: (() => void)[] = [];
    const open = () => method.open({ end: () => undefined, onEnd: (callback) => void gone.push(callback) });
    const opened = Array.from({ length: 1100 }, open);
    expect(opened.filter((one) => typeof one === 'function')).toHaveLength(1024);
    expect(opened.at(-1)).toMatchObject({ status: status.RESOURCE_EXHAUSTED });
    gone[0]?.();
    expect(log.stats.streams).toBe(1023);
    expect(open()).toBeTypeOf('function');
    gone[1]?.();
    log.end();
    expect(open()).toMatchObject({ status: status.UNAVAILABLE });
  });

  test('carries the reservation as it is', async () => {
    const server = await serve();
    const { call, end } = stream(server.address);
    call.end(accessLog(entry(RESERVATION)));
    await end;
    expect(finished).toEqual([RESERVATION]);
  });
});
