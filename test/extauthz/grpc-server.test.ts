/** The protocol as a peer sees it, spoken by hand, so that peers that break its rules can be played. */

import { once } from 'node:events';
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  type IncomingHttpHeaders,
  type IncomingHttpStatusHeader,
} from 'node:http2';
import { connect as connectSocket } from 'node:net';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { frame } from '../../src/extauthz/grpc/messages.ts';
import type { IncomingCall, OpenCall } from '../../src/extauthz/grpc/methods.ts';
import type { GrpcServer } from '../../src/extauthz/grpc/server.ts';
import { failure } from '../../src/extauthz/grpc/status.ts';
import { BUILT_IN, TRANSPORTS, type Transport } from './support/transports.ts';

/** The transport of the running tests. */
let on: Transport = BUILT_IN;

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

interface Stage {
  readonly server: GrpcServer;
  readonly session: ClientHttp2Session;
  /** Every message that a method was given. */
  readonly seen: Buffer[];
  /** Answers that the test gives to `/t.S/Held`, in the order of the calls. */
  readonly held: PromiseWithResolvers<Buffer>[];
  readonly watches: OpenCall[];
  /** Calls to `/t.S/Collect`; it takes two. */
  readonly calls: IncomingCall[];
}

async function stage(): Promise<Stage> {
  const seen: Buffer[] = [];
  const held: PromiseWithResolvers<Buffer>[] = [];
  const watches: OpenCall[] = [];
  const calls: IncomingCall[] = [];
  const server = await on.startGrpc(
    {
      '/t.S/Echo': {
        kind: 'unary',
        answer(message) {
          seen.push(Buffer.from(message));
          return message;
        },
      },
      '/t.S/Throws': {
        kind: 'unary',
        answer() {
          throw new Error('secret detail');
        },
      },
      '/t.S/Held': {
        kind: 'unary',
        answer(message) {
          seen.push(Buffer.from(message));
          const answer = Promise.withResolvers<Buffer>();
          held.push(answer);
          return answer.promise;
        },
      },
      '/t.S/Watch': {
        kind: 'server-stream',
        open(_message, call) {
          watches.push(call);
          return undefined;
        },
      },
      '/t.S/Collect': {
        kind: 'client-stream',
        open: (call) => {
          if (calls.length >= 2) return failure('resourceExhausted', 'too many');
          calls.push(call);
          return (message) => {
            if (message.toString() === 'throw') throw new Error('secret detail');
            if (message.toString() === 'bad') return failure('invalidArgument', 'bad');
            seen.push(Buffer.from(message));
            return undefined;
          };
        },
        answer: Buffer.from('thanks'),
      },
    },
    { host: '127.0.0.1', port: 0 },
    undefined,
  );
  cleanups.push(() => server.drain(100));
  const session = connect(`http://127.0.0.1:${server.port}`);
  session.on('error', () => undefined);
  cleanups.push(() => session.destroy());
  await once(session, 'connect');
  return { server, session, seen, held, watches, calls };
}

interface Ended {
  readonly http: number | undefined;
  readonly grpc: string | undefined;
  readonly text: string;
  readonly body: Buffer;
}

function begin(session: ClientHttp2Session, path: string, headers: Record<string, string> = {}): ClientHttp2Stream {
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

async function ended(stream: ClientHttp2Stream): Promise<Ended> {
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
  await once(stream, 'close');
  const text = (name: string): string | undefined => [tail[name] ?? head[name]].flat()[0];
  return {
    http: head[':status'],
    grpc: text('grpc-status'),
    text: text('grpc-message') ?? '',
    body: Buffer.concat(chunks),
  };
}

const HELLO = frame(Buffer.from('hello'));

describe.each(TRANSPORTS)('on the transport $transport', (current) => {
  const { builtInTest, wrongMessageCount } = current;
  beforeAll(() => {
    on = current;
  });

  describe('a unary call', () => {
    test('gets its answer, framed, and status 0', async () => {
      const { session } = await stage();
      const stream = begin(session, '/t.S/Echo');
      stream.end(HELLO);
      expect(await ended(stream)).toMatchObject({ http: 200, grpc: '0', body: HELLO });
    });

    test.each([
      ['in one frame', [Buffer.concat([HELLO, frame(Buffer.from('again'))])]],
      ['in two frames', [HELLO, frame(Buffer.from('again'))]],
      [
        'in pieces',
        [HELLO.subarray(0, 3), Buffer.concat([HELLO.subarray(3), HELLO.subarray(0, 2)]), HELLO.subarray(2)],
      ],
    ])('with two messages fails, and its method is not called: %s', async (_form, chunks) => {
      const { session, seen } = await stage();
      const stream = begin(session, '/t.S/Echo');
      const answer = ended(stream);
      for (const chunk of chunks) await new Promise((sent) => stream.write(chunk, sent));
      stream.end();
      expect((await answer).grpc).toBe(wrongMessageCount);
      expect(seen).toEqual([]);
    });

    // grpc-js ignores an incomplete second message.
    builtInTest('with a byte behind its message is internal, and its method is not called', async () => {
      const { session, seen } = await stage();
      const stream = begin(session, '/t.S/Echo');
      stream.end(Buffer.concat([HELLO, Buffer.of(0)]));
      expect(await ended(stream)).toMatchObject({ grpc: '13', text: 'the call has more than one message' });
      expect(seen).toEqual([]);
    });

    test('is not begun before its peer has ended its side', async () => {
      const { session, seen } = await stage();
      const stream = begin(session, '/t.S/Echo');
      const answer = ended(stream);
      await new Promise((sent) => stream.write(HELLO, sent));
      const other = begin(session, '/t.S/Echo');
      other.end(frame(Buffer.from('other')));
      await ended(other);
      expect(seen.map(String)).toEqual(['other']);
      stream.end();
      expect(await answer).toMatchObject({ grpc: '0', body: HELLO });
      expect(seen).toHaveLength(2);
    });

    // grpc-js does not report the memory of messages.
    builtInTest('has an unfinished message until its peer has ended its side', async () => {
      const { server, session } = await stage();
      const stream = begin(session, '/t.S/Echo');
      const answer = ended(stream);
      await new Promise((sent) => stream.write(HELLO, sent));
      const other = begin(session, '/t.S/Echo');
      other.end(frame(Buffer.from('other')));
      await ended(other);
      expect(server.stats).toMatchObject({ unfinished: 1, unfinishedBytes: 5 });
      stream.end();
      expect(await answer).toMatchObject({ grpc: '0', body: HELLO });
      expect(server.stats).toMatchObject({ unfinished: 0, unfinishedBytes: 0 });
    });

    test('whose message comes byte by byte is the same call', async () => {
      const { session, seen } = await stage();
      const stream = begin(session, '/t.S/Echo');
      const answer = ended(stream);
      for (const byte of HELLO) await new Promise((sent) => stream.write(Buffer.of(byte), sent));
      stream.end();
      expect(await answer).toMatchObject({ grpc: '0', body: HELLO });
      expect(seen).toHaveLength(1);
    });

    test('whose message is longer than every window arrives whole', async () => {
      const { session, seen } = await stage();
      const large = Buffer.alloc(3_000_000, 7);
      const stream = begin(session, '/t.S/Echo');
      stream.end(frame(large));
      expect((await ended(stream)).body.length).toBe(large.length + 5);
      expect(seen[0]?.equals(large)).toBe(true);
    });

    test.each([
      ['without a byte', Buffer.alloc(0), wrongMessageCount],
      ['cut within its message', HELLO.subarray(0, 7), wrongMessageCount],
      ['announcing 4 GiB', Buffer.from([0, 255, 255, 255, 255, 1]), '8'],
    ])('%s fails by its status and reaches no method', async (_name, bytes, status) => {
      const { session, seen } = await stage();
      const stream = begin(session, '/t.S/Echo');
      stream.end(bytes);
      expect(await ended(stream)).toMatchObject({ http: 200, grpc: status, body: Buffer.alloc(0) });
      expect(seen).toEqual([]);
    });

    // grpc-js accepts compressed messages.
    builtInTest('with a compressed message is unimplemented, and reaches no method', async () => {
      const { session, seen } = await stage();
      const stream = begin(session, '/t.S/Echo');
      stream.end(Buffer.concat([Buffer.of(1), HELLO.subarray(1)]));
      expect(await ended(stream)).toMatchObject({ http: 200, grpc: '12', body: Buffer.alloc(0) });
      expect(seen).toEqual([]);
    });

    test('whose method throws or rejects is internal, and its message does not contain the error', async () => {
      const { session, held } = await stage();
      const thrown = begin(session, '/t.S/Throws');
      thrown.end(HELLO);
      const failed = await ended(thrown);
      expect(failed.grpc).toBe('13');
      expect(failed.text).not.toContain('secret');
      const rejected = begin(session, '/t.S/Held');
      const end = ended(rejected);
      rejected.end(HELLO);
      await expect.poll(() => held.length).toBe(1);
      held[0]?.reject(new Error('secret detail'));
      expect((await end).grpc).toBe('13');
    });

    test('that its peer gave up disturbs no other call on the connection', async () => {
      const { session, held } = await stage();
      const given = begin(session, '/t.S/Held');
      given.end(HELLO);
      await expect.poll(() => held.length).toBe(1);
      given.close(8);
      await once(given, 'close');
      held[0]?.resolve(Buffer.from('too late'));
      const next = begin(session, '/t.S/Echo');
      next.end(HELLO);
      expect((await ended(next)).grpc).toBe('0');
    });
  });

  describe('what is no call of this server', () => {
    test('another method is unimplemented', async () => {
      const { session } = await stage();
      for (const path of ['/t.S/Other', '/t.S/Echo/', '/', '/t.S/Echo?x']) {
        const stream = begin(session, path);
        stream.end(HELLO);
        expect((await ended(stream)).grpc).toBe('12');
      }
    });

    // grpc-js looks at the content type only.
    builtInTest('another HTTP method gets the HTTP status 405', async () => {
      const { session, seen } = await stage();
      const get = session.request({ ':method': 'GET', ':path': '/t.S/Echo' });
      expect((await ended(get)).http).toBe(405);
      expect(seen).toEqual([]);
    });

    test('another content type gets the HTTP status 415', async () => {
      const { session, seen } = await stage();
      const json = begin(session, '/t.S/Echo', { 'content-type': 'application/json' });
      json.end('{}');
      expect((await ended(json)).http).toBe(415);
      expect(seen).toEqual([]);
    });

    // grpc-js accepts every content type that begins with `application/grpc`, in lower case.
    builtInTest.each([
      'application/grpc-web',
      'application/grpc-web+proto',
      'application/grpc-web-text',
      'application/grpc-web-text+proto',
      'application/grpc-web; charset=utf-8',
      'application/GRPC-web',
      'application/grpc+json',
      'application/grpc+proto2',
      'application/grpc+',
      'application/grpcx',
      'application/grpc, application/grpc-web',
      'xapplication/grpc',
      '',
    ])('the content type %j is refused with 415, and no method runs', async (type) => {
      const { session, seen } = await stage();
      const stream = begin(session, '/t.S/Echo', { 'content-type': type });
      stream.end(HELLO);
      expect((await ended(stream)).http).toBe(415);
      const watch = begin(session, '/t.S/Collect', { 'content-type': type });
      watch.end(HELLO);
      expect((await ended(watch)).http).toBe(415);
      expect(seen).toEqual([]);
    });

    // grpc-js reads content types in lower case only.
    builtInTest('the content type "Application/gRPC" is gRPC', async () => {
      const { session } = await stage();
      const stream = begin(session, '/t.S/Echo', { 'content-type': 'Application/gRPC' });
      stream.end(HELLO);
      expect((await ended(stream)).grpc).toBe('0');
    });

    test.each([
      'application/grpc',
      'application/grpc+proto',
      'application/grpc; charset=utf-8',
      'application/grpc+proto;x=y',
      'application/grpc ;',
    ])('the content type %j is gRPC', async (type) => {
      const { session } = await stage();
      const stream = begin(session, '/t.S/Echo', { 'content-type': type });
      stream.end(HELLO);
      expect((await ended(stream)).grpc).toBe('0');
    });
  });

  describe('a call with many answers', () => {
    test('gets each as it is sent, and its end', async () => {
      const { session, watches } = await stage();
      const stream = begin(session, '/t.S/Watch');
      const answer = ended(stream);
      stream.end(frame(Buffer.alloc(0)));
      await expect.poll(() => watches.length).toBe(1);
      for (const word of ['one', 'two']) watches[0]?.send(Buffer.from(word));
      watches[0]?.end();
      expect(await answer).toMatchObject({
        grpc: '0',
        body: Buffer.concat([frame(Buffer.from('one')), frame(Buffer.from('two'))]),
      });
    });

    test('reports the end of its peer, and sending after it is no error', async () => {
      const { session, watches } = await stage();
      const stream = begin(session, '/t.S/Watch');
      stream.end(frame(Buffer.alloc(0)));
      await expect.poll(() => watches.length).toBe(1);
      const gone = new Promise<void>((resolve) => watches[0]?.onEnd(resolve));
      session.destroy();
      await gone;
      watches[0]?.send(Buffer.from('one'));
      watches[0]?.end();
    });
  });

  describe('a call with many messages', () => {
    test('passes each on as it comes, and answers when the peer has sent its last', async () => {
      const { session, seen } = await stage();
      const stream = begin(session, '/t.S/Collect');
      const answer = ended(stream);
      stream.write(Buffer.concat([frame(Buffer.from('one')), frame(Buffer.from('two'))]));
      await expect.poll(() => seen.length).toBe(2);
      stream.end(frame(Buffer.from('three')));
      expect(await answer).toMatchObject({ grpc: '0', body: frame(Buffer.from('thanks')) });
      expect(seen.map(String)).toEqual(['one', 'two', 'three']);
    });

    test.each([
      ['refused', 'bad', '3'],
      ['a fault', 'throw', '13'],
    ])('ends by its status when a message is %s, and nothing after it is taken', async (_name, message, status) => {
      const { session, seen } = await stage();
      const stream = begin(session, '/t.S/Collect');
      const answer = ended(stream);
      stream.write(frame(Buffer.from('one')));
      const told = once(stream, 'trailers');
      stream.write(Buffer.concat([frame(Buffer.from(message)), frame(Buffer.from('two'))]));
      await told;
      // The server ignores a client that continues.
      stream.end(frame(Buffer.from('three')));
      const { grpc, text } = await answer;
      expect(grpc).toBe(status);
      expect(text).not.toContain('secret');
      expect(seen.map(String)).toEqual(['one']);
    });

    test('is established before anything was sent on it', async () => {
      const { session } = await stage();
      const stream = begin(session, '/t.S/Collect');
      const [headers] = await once(stream, 'response');
      expect(headers[':status']).toBe(200);
    });

    // grpc-js drops an incomplete last message.
    builtInTest('that ends within a message is internal', async () => {
      const { session } = await stage();
      const stream = begin(session, '/t.S/Collect');
      stream.end(HELLO.subarray(0, 7));
      expect((await ended(stream)).grpc).toBe('13');
    });

    test('can be ended by the server', async () => {
      const { session, calls } = await stage();
      const stream = begin(session, '/t.S/Collect');
      const answer = ended(stream);
      const over = once(stream, 'end');
      await expect.poll(() => calls.length).toBe(1);
      calls[0]?.end();
      await over;
      stream.end();
      expect(await answer).toMatchObject({ grpc: '0', body: frame(Buffer.from('thanks')) });
    });

    // grpc-js discards messages that arrive after the end.
    builtInTest('that the server ends still takes the messages that were on their way', async () => {
      const { session, seen, calls } = await stage();
      const stream = begin(session, '/t.S/Collect');
      const over = once(stream, 'end');
      stream.resume();
      await expect.poll(() => calls.length).toBe(1);
      calls[0]?.end();
      await over;
      stream.end(frame(Buffer.from('late')));
      await expect.poll(() => seen.map(String)).toEqual(['late']);
    });

    test('can be refused', async () => {
      const { session, calls } = await stage();
      const streams = [1, 2].map(() => begin(session, '/t.S/Collect'));
      await expect.poll(() => calls.length).toBe(2);
      const third = begin(session, '/t.S/Collect');
      third.end();
      expect((await ended(third)).grpc).toBe('8');
      const gone = new Promise<void>((resolve) => calls[0]?.onEnd(resolve));
      streams[0]?.destroy();
      await gone;
    });
  });

  // grpc-js waits until the peer ends its side.
  builtInTest('the server stops the peer of a refused call that does not end its side', async () => {
    const { session, calls } = await stage();
    for (const _ of [1, 2]) begin(session, '/t.S/Collect');
    await expect.poll(() => calls.length).toBe(2);
    expect((await ended(begin(session, '/t.S/Collect'))).grpc).toBe('8');
  });

  describe('connections', () => {
    test('a drained server lets running calls end and then every connection go', async () => {
      const { server, session, held } = await stage();
      const running = begin(session, '/t.S/Held');
      const end = ended(running);
      running.end(HELLO);
      await expect.poll(() => held.length).toBe(1);
      const closed = once(session, 'close');
      const drained = server.drain(60_000);
      held[0]?.resolve(Buffer.from('done'));
      expect((await end).grpc).toBe('0');
      await Promise.all([closed, drained]);
    });

    test('a peer that has said nothing, or only half of its greeting, is cut when the grace is over', async () => {
      const { server } = await stage();
      const silent = ['', 'PRI * HTTP/2.0\r\n\r\n'].map((greeting) => {
        const socket = connectSocket(server.port, '127.0.0.1');
        socket.on('error', () => undefined).write(greeting);
        return socket;
      });
      await Promise.all(silent.map((socket) => once(socket, 'connect')));
      const closed = silent.map((socket) => new Promise((resolve) => socket.resume().once('close', resolve)));
      await server.drain(50);
      await Promise.all(closed);
    });
  });
});
