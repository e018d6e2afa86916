/** The built-in transport with a clock that the test turns, and peers that write frames. */

import { type GrpcServer, startGrpc } from '../../../src/extauthz/grpc/server.ts';
import { MAX_FRAME_BYTES } from '../../../src/extauthz/http2/frames.ts';
import { connectFrames, type FramePeer } from './frame-peer.ts';

export interface FrameStage {
  readonly server: GrpcServer;
  /** Messages of `/t.S/Echo` and `/t.S/Collect`, in the order in which they came. */
  readonly seen: string[];
  /** Answers that the test gives to `/t.S/Held`, in the order of the calls. */
  readonly held: PromiseWithResolvers<Buffer>[];
  /** A peer that has greeted the server. @param settings the payload of its SETTINGS */
  peer(settings?: Buffer): Promise<FramePeer>;
  /** Lets time pass, and then sweeps once. */
  pass(ms: number): void;
}

/** @param cleanups the test's own, run in reverse */
export async function frameStage(cleanups: (() => unknown)[]): Promise<FrameStage> {
  let now = 0;
  let sweep = (): void => undefined;
  const seen: string[] = [];
  const held: PromiseWithResolvers<Buffer>[] = [];
  const note = (message: Buffer): void => void seen.push(message.toString('latin1', 0, 20));
  const server = await startGrpc(
    {
      '/t.S/Echo': {
        kind: 'unary',
        answer(message) {
          note(message);
          return message;
        },
      },
      // A longer answer than its request.
      '/t.S/Grow': { kind: 'unary', answer: (message) => Buffer.alloc(MAX_FRAME_BYTES, message) },
      '/t.S/Held': {
        kind: 'unary',
        answer() {
          const answer = Promise.withResolvers<Buffer>();
          held.push(answer);
          return answer.promise;
        },
      },
      '/t.S/Collect': {
        kind: 'client-stream',
        open: () => (message) => {
          note(message);
          return undefined;
        },
        answer: Buffer.alloc(0),
      },
    },
    { host: '127.0.0.1', port: 0 },
    undefined,
    {
      nowMs: () => now,
      sweeping: (tick) => {
        sweep = tick;
        return () => undefined;
      },
    },
  );
  cleanups.push(() => server.drain(0));
  return {
    server,
    seen,
    held,
    async peer(settings) {
      const peer = await connectFrames(server.port, settings);
      cleanups.push(() => peer.destroy());
      return peer;
    },
    pass(ms) {
      now += ms;
      sweep();
    },
  };
}

export function setting(id: number, value: number): Buffer {
  const bytes = Buffer.alloc(6);
  bytes.writeUInt16BE(id, 0);
  bytes.writeUInt32BE(value, 2);
  return bytes;
}
