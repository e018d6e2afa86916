/** Endless HTTP/2 connections of a client, honest and damaged: lists of frames, most of them checks. */

import { frame } from '../../../src/extauthz/grpc/messages.ts';
import { encodeFields } from '../../../src/extauthz/http2/hpack-encode.ts';
import {
  ACK,
  END_HEADERS,
  END_STREAM,
  FRAME,
  frameOf,
  requestBlock,
  uint32,
} from '../../../test/extauthz/support/frame-peer.ts';
import { CHECK_PATH } from '../../../test/extauthz/support/raw-peer.ts';
import type { Random } from '../random.ts';

export interface GeneratorParts {
  /** CheckRequests, some of which are allowed. */
  readonly checks: readonly Buffer[];
}

const PATHS = [
  CHECK_PATH,
  '/grpc.health.v1.Health/Check',
  '/grpc.health.v1.Health/Watch',
  '/envoy.service.accesslog.v3.AccessLogService/StreamAccessLogs',
  '/x.Y/Z',
] as const;
const PADDED = 8;
const PRIORITY = 0x20;

/** Returns the frames of one connection, behind the preface, without damage. */
export function honestFrames(random: Random, { checks }: GeneratorParts, calls: number): Buffer[] {
  const settings = random.chance(0.3)
    ? setting(random.pick([1, 2, 3, 4, 5, 6]), random.pick([0, 1, 100, 16_384, 65_535]))
    : Buffer.alloc(0);
  const frames = [frameOf(FRAME.settings, 0, 0, settings)];
  if (random.chance(0.7)) frames.push(frameOf(FRAME.settings, ACK, 0));
  for (let i = 0; i < calls; i++) {
    frames.push(...callFrames(random, 2 * i + 1, random.pick(checks)));
    if (random.chance(0.1)) frames.push(controlFrame(random, 2 * i + 1));
  }
  return frames;
}

function callFrames(random: Random, stream: number, check: Buffer): Buffer[] {
  const path = random.chance(0.85) ? CHECK_PATH : random.pick(PATHS);
  const more: [string, string][] = random.chance(0.3) ? [['grpc-timeout', random.pick(['1S', '500m', '9', '0n'])]] : [];
  const block = random.chance(0.05)
    ? encodeFields([[random.pick([':method', ':path', 'a', '']), 'x']])
    : requestBlock(path, more);
  const message = frame(check);
  const frames: Buffer[] = [];
  if (random.chance(0.9)) frames.push(frameOf(FRAME.headers, END_HEADERS, stream, block));
  else if (random.chance(0.5))
    frames.push(
      frameOf(FRAME.headers, END_HEADERS | PRIORITY, stream, Buffer.concat([uint32(0), Buffer.of(1), block])),
    );
  else {
    const at = random.below(block.length);
    frames.push(
      frameOf(FRAME.headers, 0, stream, block.subarray(0, at)),
      frameOf(FRAME.continuation, END_HEADERS, stream, block.subarray(at)),
    );
  }
  if (random.chance(0.8)) frames.push(frameOf(FRAME.data, END_STREAM, stream, message));
  else {
    const at = random.below(message.length);
    const padding = random.below(9);
    const padded = Buffer.concat([Buffer.of(padding), message.subarray(0, at), Buffer.alloc(padding)]);
    frames.push(
      frameOf(FRAME.data, PADDED, stream, padded),
      frameOf(FRAME.data, END_STREAM, stream, message.subarray(at)),
    );
  }
  return frames;
}

function controlFrame(random: Random, stream: number): Buffer {
  switch (random.below(7)) {
    case 0:
      return frameOf(FRAME.ping, random.below(2), 0, Buffer.alloc(8, stream));
    case 1:
      return frameOf(FRAME.window, 0, random.pick([0, stream]), uint32(1 + random.below(1000)));
    case 2:
      return frameOf(FRAME.reset, 0, stream, uint32(random.below(14)));
    case 3:
      return frameOf(FRAME.priority, 0, stream, Buffer.alloc(5));
    case 4:
      return frameOf(FRAME.settings, 0, 0, setting(random.pick([3, 4, 5]), random.pick([0, 1, 16_384, 70_000])));
    case 5:
      return frameOf(FRAME.headers, END_HEADERS | END_STREAM, stream, encodeFields([['t', '1']]));
    default:
      return frameOf(random.below(256), random.below(256), random.below(2) * stream, noise(random, 20));
  }
}

/** Damages some of the frames. @param chance of each frame */
export function damageFrames(random: Random, frames: readonly Buffer[], chance: number): Buffer[] {
  const damaged: Buffer[] = [];
  for (const each of frames) {
    if (!random.chance(chance)) damaged.push(each);
    else damaged.push(...damageFrame(random, each, frames));
  }
  return damaged;
}

/** Damages the content of a frame and leaves its head, so that the connection lives longer. */
export function damageContent(random: Random, bytes: Buffer): Buffer {
  const damaged = Buffer.from(bytes);
  for (let i = 1 + random.below(3); i > 0 && damaged.length > 9; i--) {
    const at = 9 + random.below(damaged.length - 9);
    damaged[at] = random.chance(0.5) ? random.below(256) : (damaged[at] ?? 0) ^ (1 << random.below(8));
  }
  return damaged;
}

function damageFrame(random: Random, bytes: Buffer, others: readonly Buffer[]): Buffer[] {
  const at = random.below(bytes.length + 1);
  const copy = Buffer.from(bytes);
  switch (random.below(10)) {
    case 0:
      return [];
    case 1:
      return [bytes, bytes];
    case 2:
      return [bytes, random.pick(others)];
    case 3:
      return [bytes.subarray(0, at)];
    case 4:
      return [bytes.subarray(0, at), noise(random, 30), bytes.subarray(at)];
    case 5:
      copy[3] = random.below(11);
      return [copy];
    case 6:
      copy[4] = random.below(256);
      return [copy];
    case 7:
      copy.writeUInt32BE(random.pick([0, 1, 2, 3, 5, 7, 101, 0x7fffffff, 0xffffffff]), 5);
      return [copy];
    case 8:
      copy.writeUIntBE(
        random.pick([0, 1, Math.max(bytes.length - 10, 0), bytes.length - 8, 16_384, 16_385, 0xffffff]),
        0,
        3,
      );
      return [copy];
    default:
      return [damageContent(random, bytes)];
  }
}

function noise(random: Random, most: number): Buffer {
  return Buffer.from(Array.from({ length: random.below(most) }, () => random.below(256)));
}

function setting(id: number, value: number): Buffer {
  const bytes = Buffer.alloc(6);
  bytes.writeUInt16BE(id, 0);
  bytes.writeUInt32BE(value, 2);
  return bytes;
}
