/** An even load on several servers: a fixed number of checks per second, each answer recorded with its time. */

import { type ClientHttp2Session, connect } from 'node:http2';
import { setTimeout as sleep } from 'node:timers/promises';

/** One allowed check. The server decided between these times, in milliseconds since the epoch. */
export interface Admitted {
  readonly server: number;
  readonly sentMs: number;
  readonly receivedMs: number;
}

export interface Offered {
  readonly admitted: Admitted[];
  sent: number;
  refused: number;
  /** Without an answer: the server was lost. */
  lost: number;
}

export interface OfferOptions {
  /** `host:port` of each server; one that breaks its connection is offered nothing more. */
  readonly addresses: readonly string[];
  /** A CheckRequest. */
  readonly frame: Buffer;
  readonly perSecond: number;
  /** Milliseconds since the epoch. */
  readonly untilMs: number;
}

const STEP_MS = 5;
/** Beyond them nothing is sent: a machine that is too slow is offered less, and answers at a border stay few. */
const MAX_UNDER_WAY = 500;

/** The machine's clock, which is PostgreSQL's too, with fractions of a millisecond. */
export function clockMs(): number {
  return performance.timeOrigin + performance.now();
}

export async function offer({ addresses, frame, perSecond, untilMs }: OfferOptions): Promise<Offered> {
  const offered: Offered = { admitted: [], sent: 0, refused: 0, lost: 0 };
  const body = framed(frame);
  const sessions = addresses.map((address, server) => ({ server, session: connect(`http://${address}`), alive: true }));
  for (const each of sessions) {
    const lose = (): void => {
      each.alive = false;
    };
    each.session.once('close', lose).on('error', lose);
  }
  let underWay = 0;
  let next = 0;
  const begunMs = clockMs();
  const one = async ({ server, session }: (typeof sessions)[number]): Promise<void> => {
    underWay += 1;
    offered.sent += 1;
    const sentMs = clockMs();
    try {
      if (await isAllowed(session, body)) offered.admitted.push({ server, sentMs, receivedMs: clockMs() });
      else offered.refused += 1;
    } catch {
      offered.lost += 1;
    }
    underWay -= 1;
  };
  for (let due = 0; clockMs() < untilMs; await sleep(STEP_MS)) {
    due = Math.floor(((clockMs() - begunMs) * perSecond) / 1000);
    const alive = sessions.filter((each) => each.alive);
    while (next < due) {
      next += 1;
      const chosen = alive[next % Math.max(1, alive.length)];
      if (chosen !== undefined && underWay < MAX_UNDER_WAY) void one(chosen);
    }
  }
  while (underWay > 0) await sleep(STEP_MS);
  for (const { session } of sessions) session.close();
  return offered;
}

/** With gRPC's prefix. */
function framed(message: Buffer): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

function isAllowed(session: ClientHttp2Session, body: Buffer): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const stream = session.request({
      ':method': 'POST',
      ':path': '/envoy.service.auth.v3.Authorization/Check',
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    const chunks: Buffer[] = [];
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.once('error', reject);
    stream.once('close', () => {
      const answer = Buffer.concat(chunks).subarray(5);
      if (answer.length === 0) reject(new Error('no answer'));
      // CheckResponse.status is field 1, its code field 1 in turn; proto3 leaves a zero out.
      else resolve(!(answer[0] === 0x0a && (answer[1] ?? 0) > 0 && answer[2] === 0x08 && answer[3] !== 0));
    });
    stream.end(body);
  });
}

export interface WindowCount {
  /** Milliseconds since the epoch, divided by the window's length. */
  readonly window: number;
  /** Admitted in this window for certain, and by each server. */
  readonly certain: number;
  readonly byServer: readonly number[];
  /** Admitted in this window or a neighbour: a border lies between question and answer. */
  readonly perhaps: number;
}

/** Whole windows only: neither the first nor the last. */
export function byWindow(admitted: readonly Admitted[], windowMs: number, servers: number): WindowCount[] {
  const counts = new Map<number, { certain: number; perhaps: number; byServer: number[] }>();
  const count = (window: number) => {
    const known = counts.get(window) ?? { certain: 0, perhaps: 0, byServer: Array.from({ length: servers }, () => 0) };
    counts.set(window, known);
    return known;
  };
  for (const { server, sentMs, receivedMs } of admitted) {
    const first = Math.floor(sentMs / windowMs);
    const last = Math.floor(receivedMs / windowMs);
    if (first === last) {
      const own = count(first);
      own.certain += 1;
      own.byServer[server] = (own.byServer[server] ?? 0) + 1;
    } else for (let window = first; window <= last; window++) count(window).perhaps += 1;
  }
  return [...counts]
    .sort(([a], [b]) => a - b)
    .slice(1, -1)
    .map(([window, each]) => ({ window, ...each }));
}
