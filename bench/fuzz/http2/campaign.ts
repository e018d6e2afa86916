/** Sends fuzzed connections to the server, and judges each. */

import { connect } from 'node:net';
import { PREFACE } from '../../../test/extauthz/support/frame-peer.ts';
import type { Random } from '../random.ts';
import { damageContent, damageFrames, honestFrames } from './generator.ts';
import { judgeConnection, readAll } from './judge.ts';
import type { FuzzTarget } from './target.ts';

/**
 * - `connections`: a few calls each, of which frames are damaged in every way; most end early;
 * - `frames`: many calls each, of which only contents are damaged, so that the connection lives.
 */
export type Plan = 'connections' | 'frames';

export interface Tally {
  connections: number;
  frames: number;
  allows: number;
  /** The first complaints, with the bytes that caused each, in hexadecimal. */
  readonly complaints: { readonly complaint: string; readonly bytes: string }[];
}

const MAX_COMPLAINTS = 10;
/** A connection that does not end by itself in this time is a complaint. */
const MAX_CONNECTION_MS = 20_000;

/** Runs until the number of connections or frames in the plan was sent. */
export async function runPlan(
  plan: Plan,
  random: Random,
  target: FuzzTarget,
  until: number,
  progress: (tally: Tally) => void = () => undefined,
): Promise<Tally> {
  const tally: Tally = { connections: 0, frames: 0, allows: 0, complaints: [] };
  while (tally[plan] < until && tally.complaints.length < MAX_COMPLAINTS) {
    const sent = plan === 'connections' ? damagedConnection(random, target) : longConnection(random, target);
    await judgeOne(sent, target, tally);
    progress(tally);
  }
  return tally;
}

function damagedConnection(random: Random, target: FuzzTarget): Buffer {
  const frames = honestFrames(random, target, 1 + random.below(5));
  return Buffer.concat(damageFrames(random, frames, random.pick([0.05, 0.2, 0.5])));
}

function longConnection(random: Random, target: FuzzTarget): Buffer {
  const [settings, ...frames] = honestFrames(random, target, 200);
  // A header block that is damaged mostly ends the connection, so that is rare.
  const damaged = frames.map((frame) =>
    random.chance(frame[3] === 0 ? 0.5 : 0.003) ? damageContent(random, frame) : frame,
  );
  return Buffer.concat([settings ?? Buffer.alloc(0), ...damaged]);
}

/** Sends one connection whole and judges it. */
export async function judgeOne(sent: Buffer, target: FuzzTarget, tally: Tally): Promise<void> {
  const allowsBefore = target.allows();
  const received = await exchange(target.listener.port, sent);
  tally.connections += 1;
  tally.frames += readAll(sent).frames;
  const complain = (complaint: string): void => void tally.complaints.push({ complaint, bytes: sent.toString('hex') });
  if (received === undefined) {
    complain('the connection did not end');
    return;
  }
  const { allows, complaint } = judgeConnection(sent, received, target.credentials);
  tally.allows += allows;
  if (complaint !== undefined) complain(complaint);
  if (allows > target.allows() - allowsBefore) complain('more answers with code 0 than allows');
  if (target.listener.counts.faults > 0) {
    target.listener.counts.faults = 0;
    complain('an exception in the server');
  }
}

/** @returns what the server sent; undefined = the connection did not end */
function exchange(port: number, sent: Buffer): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    const timer = setTimeout(() => {
      socket.destroy();
      resolve(undefined);
    }, MAX_CONNECTION_MS);
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    socket.on('error', () => undefined);
    socket.on('close', () => {
      clearTimeout(timer);
      resolve(Buffer.concat(chunks));
    });
    socket.end(Buffer.concat([PREFACE, sent]));
  });
}
