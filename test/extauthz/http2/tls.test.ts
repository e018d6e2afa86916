/** The built-in transport over TLS, and what it writes while a socket still reads from its buffers. */

import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { connect as connectTls } from 'node:tls';
import { afterEach, describe, expect, test } from 'vitest';
import { frame } from '../../../src/extauthz/grpc/messages.ts';
import { type GrpcServer, startGrpc } from '../../../src/extauthz/grpc/server.ts';
import { makeAuthority } from '../../support/certificates.ts';
import { callOf, connectFrames, FRAME, frameOf, uint32 } from '../support/frame-peer.ts';
import { setting } from '../support/frame-stage.ts';
import { call } from '../support/raw-peer.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const authority = makeAuthority();
const leaf = authority.issue('localhost');

async function serve(isSecure: boolean): Promise<GrpcServer> {
  const tls = { cert: Buffer.from(leaf.certPem), key: Buffer.from(leaf.keyPem), clientCa: undefined };
  const server = await startGrpc(
    {
      '/t.S/Echo': { kind: 'unary', answer: (message) => message },
      // An answer of 10 KB that consists of its request.
      '/t.S/Repeat': { kind: 'unary', answer: (message) => Buffer.alloc(10_000, message) },
    },
    { host: '127.0.0.1', port: 0 },
    isSecure ? tls : undefined,
  );
  cleanups.push(() => server.drain(0));
  return server;
}

describe('TLS', () => {
  test('is HTTP/2 only: a client that does not agree on h2 is cut', async () => {
    const { port } = await serve(true);
    for (const ALPNProtocols of [undefined, ['http/1.1']]) {
      const options = { port, host: '127.0.0.1', ca: authority.certPem, servername: 'localhost' };
      const socket = connectTls(ALPNProtocols === undefined ? options : { ...options, ALPNProtocols });
      socket.on('error', () => undefined).resume();
      const received: Buffer[] = [];
      socket.on('data', (chunk: Buffer) => received.push(chunk));
      await new Promise((resolve) => socket.once('close', resolve));
      expect(Buffer.concat(received)).toHaveLength(0);
    }
  });

  test('carries many calls at once, each with its own answer, small and large', async () => {
    const { port } = await serve(true);
    const session = connectHttp2(`https://127.0.0.1:${port}`, { ca: authority.certPem, servername: 'localhost' });
    cleanups.push(() => session.destroy());
    await once(session, 'connect');
    const asked = Array.from({ length: 300 }, (_, i) => frame(Buffer.alloc(i % 10 === 0 ? 100_000 : 50 + i, `${i};`)));
    const ends = await Promise.all(asked.map((bytes) => call(session, '/t.S/Echo', bytes)));
    expect(ends.every(({ grpc, body }, i) => grpc === '0' && body.equals(asked[i] ?? body))).toBe(true);
  });
});

describe('a buffer that the socket still reads from', () => {
  test('does not change: answers that waited for a slow reader arrive as they were written', async () => {
    const { port } = await serve(false);
    const peer = await connectFrames(port, setting(4, 0x7fffffff));
    cleanups.push(() => peer.destroy());
    await peer.settled();
    peer.write(frameOf(FRAME.window, 0, 0, uint32(0x7ffeffff)));
    await peer.settled();
    peer.isPolite = false;
    peer.socket.pause();
    const ids: number[] = [];
    // About 10 MB of answers: more than the sockets of both sides hold.
    for (let i = 0; i < 1000; i++) {
      const id = peer.nextStream();
      ids.push(id);
      peer.write(callOf(id, '/t.S/Repeat', frame(Buffer.from(`call ${id};`))));
      if (i % 20 === 0) await new Promise(setImmediate);
    }
    peer.socket.resume();
    const ends = await Promise.all(ids.map((id) => peer.end(id)));
    const wrong = ends.filter(({ grpc, body }, i) => {
      const expected = frame(Buffer.alloc(10_000, `call ${ids[i]};`));
      return grpc !== '0' || !body.equals(expected);
    });
    expect(wrong).toEqual([]);
  });
});
