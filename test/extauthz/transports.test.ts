/** The same random calls end alike on both transports, if both transports define that end. */

import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { frame } from '../../src/extauthz/grpc/messages.ts';
import type { GrpcMethods } from '../../src/extauthz/grpc/methods.ts';
import type { GrpcServer } from '../../src/extauthz/grpc/server.ts';
import { failure } from '../../src/extauthz/grpc/status.ts';
import { runs } from '../support/properties.ts';
import {
  connectFrames,
  END_HEADERS,
  END_STREAM,
  FRAME,
  type FramePeer,
  frameOf,
  requestBlock,
  resetOf,
} from './support/frame-peer.ts';
import { setting } from './support/frame-stage.ts';
import { TRANSPORTS } from './support/transports.ts';

const METHODS: GrpcMethods = {
  '/t.S/Echo': { kind: 'unary', answer: (message) => message },
  '/t.S/Later': { kind: 'unary', answer: async (message) => Buffer.from(message) },
  '/t.S/Small': { kind: 'unary', maxMessageBytes: 100, answer: (message) => message },
  '/t.S/Fails': { kind: 'unary', answer: () => failure('notFound', 'nothing here') },
  '/t.S/Throws': {
    kind: 'unary',
    answer: () => {
      throw new Error('secret detail');
    },
  },
  '/t.S/Twice': {
    kind: 'server-stream',
    open(message, call) {
      if (message.length === 0) return failure('invalidArgument', 'empty');
      call.send(message);
      call.send(message);
      call.end();
      return undefined;
    },
  },
  '/t.S/Collect': {
    kind: 'client-stream',
    open: () => (message) => (message.length === 7 ? failure('invalidArgument', 'seven') : undefined),
    answer: Buffer.from('thanks'),
  },
};

interface Call {
  readonly path: string;
  readonly type: string;
  readonly timeout: string | undefined;
  /** The length of each message; its bytes are its own, so that answers on the wrong stream show. */
  readonly messages: readonly number[];
  readonly isCompressed: boolean;
  /** Bytes that are cut from the end. */
  readonly cut: number;
  /** Lengths of the DATA frames, again and again. */
  readonly pieces: readonly number[];
  readonly end: 'with the last frame' | 'in a frame of its own' | 'with trailers' | 'by reset';
}

const call: fc.Arbitrary<Call> = fc.record({
  path: fc.oneof(
    { weight: 9, arbitrary: fc.constantFrom(...Object.keys(METHODS)) },
    { weight: 1, arbitrary: fc.constantFrom('/t.S/Other', '/', '/t.S/Echo/') },
  ),
  type: fc.oneof(
    { weight: 9, arbitrary: fc.constant('application/grpc') },
    { weight: 1, arbitrary: fc.constantFrom('application/grpc+proto', 'application/json') },
  ),
  timeout: fc.constantFrom(undefined, '10S', '5000m'),
  messages: fc.array(fc.oneof(fc.nat({ max: 30 }), fc.nat({ max: 40_000 })), { maxLength: 3 }),
  isCompressed: fc.integer({ min: 0, max: 19 }).map((chance) => chance === 0),
  cut: fc.oneof({ weight: 5, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat({ max: 12 }) }),
  pieces: fc.array(fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1000, max: 16_384 })), {
    minLength: 1,
    maxLength: 4,
  }),
  end: fc.constantFrom('with the last frame', 'in a frame of its own', 'with trailers', 'by reset'),
});

/** The frames of a call. */
function framesOf(stream: number, asked: Call): Buffer[] {
  const more: [string, string][] = asked.timeout === undefined ? [] : [['grpc-timeout', asked.timeout]];
  const block = requestBlock(asked.path, more, asked.type);
  const content = Buffer.concat(asked.messages.map((length, i) => frame(Buffer.alloc(length, `${stream}.${i};`))));
  if (asked.isCompressed && content.length > 0) content[0] = 1;
  let rest = content.subarray(0, Math.max(0, content.length - asked.cut));
  const frames = [frameOf(FRAME.headers, END_HEADERS, stream, block)];
  // Tens of thousands of tiny frames would say nothing more.
  const least = Math.ceil(rest.length / 200);
  for (let i = 0; rest.length > 0; i++) {
    const length = Math.max(least, asked.pieces[i % asked.pieces.length] ?? 1);
    const isLast = rest.length <= length && asked.end === 'with the last frame';
    frames.push(frameOf(FRAME.data, isLast ? END_STREAM : 0, stream, rest.subarray(0, length)));
    rest = rest.subarray(length);
  }
  if (asked.end === 'with trailers')
    frames.push(frameOf(FRAME.headers, END_HEADERS | END_STREAM, stream, Buffer.alloc(0)));
  else if (asked.end === 'by reset') frames.push(resetOf(stream));
  else if (asked.end === 'in a frame of its own' || content.length - asked.cut <= 0)
    frames.push(frameOf(FRAME.data, END_STREAM, stream));
  return frames;
}

const servers: GrpcServer[] = [];
beforeAll(async () => {
  for (const { startGrpc } of TRANSPORTS)
    servers.push(await startGrpc(METHODS, { host: '127.0.0.1', port: 0 }, undefined));
});
afterAll(async () => {
  await Promise.all(servers.map((server) => server.drain(100)));
});

/** How each call ends, and the server that is there afterwards. */
async function endsOf(
  server: GrpcServer,
  calls: readonly Call[],
  order: readonly number[],
  window: number,
): Promise<unknown> {
  const peer = await connectFrames(server.port, setting(4, window));
  try {
    const ids = calls.map(() => peer.nextStream());
    // Streams begin in the order of their numbers; what follows is mixed.
    const rests = calls.map((each, i) => framesOf(ids[i] ?? 0, each));
    for (const frames of rests) {
      const head = frames.shift();
      if (head !== undefined) peer.write(head);
    }
    for (let turn = 0; rests.some((frames) => frames.length > 0); turn++) {
      const next =
        rests[(order[turn % order.length] ?? 0) % rests.length]?.shift() ??
        rests.find((frames) => frames.length > 0)?.shift();
      if (next !== undefined) peer.write(next);
      if (turn % 5 === 0) await new Promise(setImmediate);
    }
    const ends = await Promise.all(calls.map((each, i) => endOf(peer, ids[i] ?? 0, each)));
    await peer.settled();
    return { ends, goaway: peer.goaway };
  } finally {
    peer.destroy();
  }
}

/**
 * Returns the end of a call that both transports promise. The ends of a call that breaks the protocol differ, and must
 * not affect the calls beside it.
 */
async function endOf(peer: FramePeer, stream: number, asked: Call): Promise<unknown> {
  if (asked.end === 'by reset') return 'reset';
  const { grpc, http, body } = await peer.end(stream);
  if (http === '200' && breaksProtocol(asked)) return 'answered';
  return { http, grpc, body: http === '200' ? body.toString('latin1') : '' };
}

function breaksProtocol({ path, messages, isCompressed, cut }: Call): boolean {
  if (messages.length === 0) return path !== '/t.S/Collect';
  return isCompressed || cut > 0 || (messages.length > 1 && path !== '/t.S/Collect');
}

test('random calls, mixed on one connection with random frames and windows, end alike on both transports', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(call, { minLength: 1, maxLength: 8 }),
      fc.array(fc.nat({ max: 7 }), { minLength: 1, maxLength: 12 }),
      fc.constantFrom(100, 5000, 65_535),
      async (calls, order, window) => {
        const [own, nodes] = await Promise.all(servers.map((server) => endsOf(server, calls, order, window)));
        expect(own).toEqual(nodes);
      },
    ),
    { numRuns: runs(150) },
  );
  for (const server of servers)
    await expect.poll(() => server.stats).toMatchObject({ open: 0, unfinished: 0, unfinishedBytes: 0 });
}, 60_000);

test.each([
  ['a tracestate of 40 KiB', [['tracestate', 'v'.repeat(40_960)] as const]],
  ['200 fields', Array.from({ length: 200 }, () => ['baggage', 'v'] as const)],
])('1,200 calls with %s on one connection leave the others on it alone, on both transports', async (_name, fields) => {
  const block = requestBlock('/t.S/Echo', fields);
  const message = frame(Buffer.from('hello'));
  for (const server of servers) {
    const peer = await connectFrames(server.port);
    for (let i = 0; i < 1200; i++) {
      const id = peer.nextStream();
      for (let at = 0; at < block.length; at += 16_384) {
        const part = block.subarray(at, at + 16_384);
        const last = at + 16_384 >= block.length ? END_HEADERS : 0;
        peer.write(frameOf(at === 0 ? FRAME.headers : FRAME.continuation, last, id, part));
      }
      peer.write(frameOf(FRAME.data, END_STREAM, id, message));
      await peer.end(id);
    }
    expect(await peer.call('/t.S/Echo', message)).toMatchObject({ grpc: '0', body: message });
    expect(peer.goaway).toBeUndefined();
    peer.socket.destroy();
  }
});
