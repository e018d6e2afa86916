import { once } from 'node:events';
import { Client, type ClientWritableStream, credentials, status } from '@grpc/grpc-js';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { createAccessLog } from '../../src/extauthz/access-log/service.ts';
import type { FinishedRequest } from '../../src/extauthz/ports.ts';
import { type ExtAuthzServer, startExtAuthz } from '../../src/extauthz/server.ts';
import { accessLog, entryBytes, messageOf, namedLog, RESERVATION, replaced, type Told } from './support/access-log.ts';
import { TRANSPORTS, type Transport } from './support/transports.ts';

/** The transport of the running tests. */
let transport: Transport['transport'] = 'built-in';

const METHOD = '/envoy.service.accesslog.v3.AccessLogService/StreamAccessLogs';
const GARBAGE = Buffer.from('garbage');

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const finished: string[] = [];
const running: string[] = [];
/** Calls of the listener for another gate. */
const other: string[] = [];
const otherGate = { reported: () => void other.push('reported'), denied: (id: string) => void other.push(id) };
const entry = (reservation: string) => ({ decision: { reservation, tenant: 'acme' } });
const listener = {
  finished({ reservation }: FinishedRequest): void {
    if (reservation === 'bad') throw new Error('cannot be booked');
    finished.push(reservation);
  },
  running(reservation: string): void {
    if (reservation === 'bad') throw new Error('cannot be renewed');
    running.push(reservation);
  },
};

async function serve(): Promise<ExtAuthzServer> {
  finished.length = 0;
  running.length = 0;
  other.length = 0;
  const listen = '127.0.0.1:0';
  const server = await startExtAuthz(() => Buffer.alloc(0), { listen, transport, listener, otherGate });
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

describe.each(TRANSPORTS)('on the transport $transport', (on) => {
  beforeAll(() => {
    transport = on.transport;
  });

  describe('an access log', () => {
    test('is reported entry by entry, while its stream stays open', async () => {
      const server = await serve();
      const { call, end } = stream(server.address);
      call.write(accessLog(entry('one'), {}, entry('two')));
      await expect.poll(() => finished).toEqual(['one', 'two']);
      expect(server.accessLog).toEqual({ streams: 1, entries: 2, running: 0, broken: 0, unreadable: 0, failed: 0 });
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

    test('about another gate books nothing, in any message of its stream', async () => {
      const server = await serve();
      const { call, end } = stream(server.address);
      const both: Told = { ...entry('one'), status: 403, details: 'ext_authz_denied', requestId: 'a' };
      call.write(namedLog('postern-shadow', both, { status: 200, requestId: 'b' }));
      call.write(namedLog('', { ...both, requestId: 'c' }));
      call.end();
      expect(await end).toBe(status.OK);
      expect([finished, running]).toEqual([[], []]);
      expect(other).toEqual(['reported', 'a', 'reported', 'c']);
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

    test('is rejected with UNIMPLEMENTED on a server without a listener for it', async () => {
      const server = await startExtAuthz(() => Buffer.alloc(0), { listen: '127.0.0.1:0', transport });
      cleanups.push(() => server.drain(100));
      expect(await stream(server.address).end).toBe(status.UNIMPLEMENTED);
      expect(server.accessLog.entries).toBe(0);
    });

    test('loses no entry beside one that cannot be read, and its stream stays open', async () => {
      const server = await serve();
      const { call, end } = stream(server.address);
      const cut = replaced(
        entryBytes({ decision: { reservation: 'cut', tenant: 'acme', model: 'echo-' } }),
        'echo-',
        [0x65, 0x63, 0x68, 0x6f, 0xe2],
      );
      const broken = entryBytes(entry('broken')).subarray(0, -3);
      const path = replaced(entryBytes(entry('path')), '/v1/chat', [255, 255, 255, 255, 255, 255, 255, 255]);
      call.write(messageOf([entryBytes(entry('one')), cut, broken, path, entryBytes(entry('two'))]));
      await expect.poll(() => finished).toEqual(['one', 'cut', 'path', 'two']);
      call.end(accessLog(entry('three')));
      expect(await end).toBe(status.OK);
      expect(finished).toEqual(['one', 'cut', 'path', 'two', 'three']);
      expect(server.accessLog).toMatchObject({ entries: 5, unreadable: 1, broken: 0 });
    });

    test('loses no entry that came before broken framing in the same message', async () => {
      const server = await serve();
      const { call, end } = stream(server.address);
      call.write(Buffer.concat([accessLog(entry('one'), entry('two')), GARBAGE]));
      expect(await end).toBe(status.INVALID_ARGUMENT);
      expect(finished).toEqual(['one', 'two']);
      expect(server.accessLog).toMatchObject({ entries: 2, broken: 1 });
    });

    test('reports which requests are still running, and one that cannot be renewed costs no other', async () => {
      const server = await serve();
      const { call, end } = stream(server.address);
      const periodic = (reservation: string) => ({ ...entry(reservation), type: 5, intermediate: true });
      call.end(accessLog(periodic('one'), periodic('bad'), entry('two'), periodic('three')));
      expect(await end).toBe(status.OK);
      expect([running, finished]).toEqual([['one', 'three'], ['two']]);
      expect(server.accessLog).toMatchObject({ running: 2, entries: 1, failed: 1 });
    });

    describe('with many streams', () => {
      /** Streams of a log without a connection. */
      function streams() {
        const log = createAccessLog(listener);
        const method = log.methods[METHOD];
        if (method?.kind !== 'client-stream') return expect.fail('no stream');
        const ended: number[] = [];
        const gone: (() => void)[] = [];
        let opened = 0;
        const open = () => {
          const number = opened++;
          gone.push(() => undefined);
          const call = {
            end: () => void ended.push(number),
            onEnd: (callback: () => void) => void gone.splice(number, 1, callback),
          };
          return method.open(call);
        };
        return { log, open, ended, gone };
      }

      test('ends the one that was silent longest for a new one beyond 1,024, and refuses none', () => {
        const { log, open, ended, gone } = streams();
        const opened = Array.from({ length: 1024 }, open);
        const [first] = opened;
        if (typeof first !== 'function') return expect.fail('no stream');
        first(accessLog(entry('one')));
        expect([typeof open(), ended]).toEqual(['function', [1]]);
        // The server accepts entries that the peer sends before it sees the end, and the stream still ends.
        const leaving = opened[1];
        finished.length = 0;
        if (typeof leaving === 'function') leaving(accessLog(entry('late')));
        expect([typeof open(), ended, finished]).toEqual(['function', [1, 2], ['late']]);
        expect(log.stats.streams).toBe(1026);
        gone[1]?.();
        gone[2]?.();
        expect(log.stats.streams).toBe(1024);
      });

      test('whose peers do not end them refuses more than 2,048', () => {
        const { log, open, gone } = streams();
        const opened = Array.from({ length: 2100 }, open);
        expect(opened.filter((one) => typeof one === 'function')).toHaveLength(2048);
        expect(opened.at(-1)).toMatchObject({ status: status.RESOURCE_EXHAUSTED });
        expect(log.stats.streams).toBe(2048);
        gone[0]?.();
        expect(open()).toBeTypeOf('function');
      });

      test('rejects new streams while it ends', () => {
        const { log, open } = streams();
        log.end();
        expect(open()).toMatchObject({ status: status.UNAVAILABLE });
      });
    });

    test('reports the reservation unchanged', async () => {
      const server = await serve();
      const { call, end } = stream(server.address);
      call.end(accessLog(entry(RESERVATION)));
      await end;
      expect(finished).toEqual([RESERVATION]);
    });
  });
});
