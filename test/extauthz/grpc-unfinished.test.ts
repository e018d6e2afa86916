import { once } from 'node:events';
import { createServer, type Http2Session } from 'node:http2';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Refusable, UnfinishedMessages } from '../../src/extauthz/grpc/unfinished.ts';
import { runs } from '../support/properties.ts';
import { connectRaw } from './support/raw-peer.ts';

const sessions: Http2Session[] = [];
const server = createServer();

beforeAll(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('no port');
  for (let i = 0; i < 3; i++) sessions.push(await connectRaw(`127.0.0.1:${address.port}`));
});
afterAll(() => {
  for (const session of sessions) session.destroy();
  server.close();
});

const BOUNDS = { connectionBytes: 100, processBytes: 180 };

interface Call extends Refusable {
  readonly connection: number;
  refused: boolean;
}

function callOf(connection: number): Call {
  const call: Call = {
    connection,
    refused: false,
    refuse() {
      call.refused = true;
    },
  };
  return call;
}

const step = fc.record({ connection: fc.nat({ max: 2 }), call: fc.nat({ max: 5 }), bytes: fc.nat({ max: 120 }) });

/** A naive count of the bytes of each call. Beyond a bound, the largest call is dropped, the first of equal ones. */
class Naive {
  readonly held = new Map<Call, number>();
  /** Connections that hold something, in the order in which they began to. */
  readonly #connections = new Set<number>();

  set(call: Call, bytes: number): void {
    const grows = bytes > (this.held.get(call) ?? 0);
    // In the order of their beginnings.
    this.held.set(call, bytes);
    this.#connections.add(call.connection);
    if (bytes === 0) this.#remove(call);
    if (!grows) return;
    while (this.sum(call.connection) > BOUNDS.connectionBytes) this.#refuse(call.connection);
    while (this.sum() > BOUNDS.processBytes) {
      const connections = [...this.#connections];
      const most = Math.max(...connections.map((connection) => this.sum(connection)));
      this.#refuse(connections.find((connection) => this.sum(connection) === most) ?? 0);
    }
  }

  sum(connection?: number): number {
    return [...this.held].reduce(
      (sum, [call, bytes]) => (call.connection === (connection ?? call.connection) ? sum + bytes : sum),
      0,
    );
  }

  #refuse(connection: number): void {
    const calls = [...this.held].filter(([call]) => call.connection === connection);
    const most = Math.max(...calls.map(([, bytes]) => bytes));
    const [largest] = calls.find(([, bytes]) => bytes === most) ?? [];
    if (largest !== undefined) this.#remove(largest);
  }

  #remove(call: Call): void {
    this.held.delete(call);
    if (this.sum(call.connection) === 0) this.#connections.delete(call.connection);
  }
}

describe('memory of unfinished messages', () => {
  test('never exceeds a bound, and equals a naive count, for any calls that grow, finish and are rejected', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const unfinished = new UnfinishedMessages(BOUNDS);
        const naive = new Naive();
        const calls = new Map<string, Call>();
        for (const { connection, call: number, bytes } of steps) {
          const name = `${connection}/${number}`;
          let call = calls.get(name);
          if (call === undefined || call.refused) {
            call = callOf(connection);
            calls.set(name, call);
          }
          const session = sessions[connection];
          if (session === undefined) throw new Error('no session');
          naive.set(call, bytes);
          unfinished.set(session, call, bytes);
          expect(unfinished.bytes).toBe(naive.sum());
          expect(unfinished.calls).toBe(naive.held.size);
          expect(unfinished.bytes).toBeLessThanOrEqual(BOUNDS.processBytes);
        }
      }),
      { numRuns: runs(500) },
    );
  });

  test('refuses the largest message of its connection, not the small one that came last', () => {
    const unfinished = new UnfinishedMessages(BOUNDS);
    const [session] = sessions;
    if (session === undefined) throw new Error('no session');
    const refused: string[] = [];
    const call = (name: string): Refusable => ({ refuse: () => void refused.push(name) });
    unfinished.set(session, call('large'), 70);
    unfinished.set(session, call('middle'), 25);
    unfinished.set(session, call('small'), 6);
    expect([refused, unfinished.bytes, unfinished.refused]).toEqual([['large'], 31, 1]);
  });
});
