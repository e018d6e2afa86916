/** Checks whose caller gives up: what they had reserved is released, and what was granted and delivered is not. */

import type { ClientHttp2Session } from 'node:http2';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Resolution } from '../../src/credential-cache/resolution.ts';
import { type CheckHandlerParts, createCheckHandler } from '../../src/extauthz/check-handler.ts';
import { frame } from '../../src/extauthz/grpc/messages.ts';
import { type ExtAuthzServer, startExtAuthz } from '../../src/extauthz/server.ts';
import type { LimitDecision } from '../../src/metering/admission.ts';
import type { CheckOutcome } from '../../src/telemetry/check-outcome.ts';
import { readAnswer } from './support/definition.ts';
import { builtinRoutes, littleWorld } from './support/little-world.ts';
import { CHECK_PATH, call, connectRaw, endOf, openCall } from './support/raw-peer.ts';
import { checkRequest } from './support/requests.ts';
import { BUILT_IN, TRANSPORTS, type Transport } from './support/transports.ts';

/** The transport of the running tests. */
let transport: Transport = BUILT_IN;

const world = littleWorld();
const CHAT = frame(
  checkRequest({
    headers: [
      ['authorization', `Bearer ${world.ownedKey}`],
      ['content-type', 'application/json'],
    ],
    body: '{"model":"m"}',
  }),
);
/** A window that no answer fits in: it is made, and cannot be delivered. */
const NO_WINDOW = { settings: { initialWindowSize: 10 } };

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

interface Stage {
  readonly server: ExtAuthzServer;
  /** Reservations that were made and not released. */
  readonly outstanding: Set<string>;
  /** Returns the number of requests to the limits. */
  asked(): number;
  readonly outcomes: CheckOutcome[];
}

/** @param hold what an admission waits for; default: nothing */
async function stage(parts: Partial<CheckHandlerParts> = {}, hold?: Promise<void>): Promise<Stage> {
  const outstanding = new Set<string>();
  const outcomes: CheckOutcome[] = [];
  let asked = 0;
  const admit = (): LimitDecision => {
    const reservation = String(asked).padStart(46, '0');
    outstanding.add(reservation);
    return { kind: 'admitted', reservation, rate: undefined };
  };
  const gate = createCheckHandler({
    routes: builtinRoutes(),
    resolver: world.resolver,
    limiter: {
      admit() {
        asked += 1;
        return hold === undefined ? admit() : hold.then(admit);
      },
      release: (reservation) => void outstanding.delete(reservation),
    },
    observer: { observe: (outcome) => outcomes.push(outcome) },
    trustedHops: 0,
    forwardCredential: false,
    ...parts,
  });
  const server = await startExtAuthz(gate, { listen: '127.0.0.1:0', transport: transport.transport });
  cleanups.push(() => server.drain(100));
  return { server, outstanding, asked: () => asked, outcomes };
}

async function peer({ server }: Stage, options = {}): Promise<ClientHttp2Session> {
  const session = await connectRaw(server.address, options);
  cleanups.push(() => session.destroy());
  return session;
}

describe.each(TRANSPORTS)('on the transport $transport', (current) => {
  beforeAll(() => {
    transport = current;
  });

  describe('an answer that was made', () => {
    test('and delivered releases nothing, also if the peer resets the stream afterwards', async () => {
      const on = await stage();
      const session = await peer(on);
      expect((await call(session, CHECK_PATH, CHAT)).grpc).toBe('0');
      const reset = openCall(session, CHECK_PATH);
      const trailers = new Promise((resolve) => reset.once('trailers', resolve));
      reset.resume().end(CHAT);
      await trailers;
      reset.close(8);
      await expect.poll(() => on.server.calls.open).toBe(0);
      expect([on.outstanding.size, on.server.calls.cancelled]).toEqual([2, 0]);
    });

    test.each([0, 2, 8])('and not delivered is released when the peer resets its stream with code %i', async (code) => {
      const on = await stage();
      const stream = openCall(await peer(on, NO_WINDOW), CHECK_PATH);
      stream.end(CHAT);
      await expect.poll(() => on.outstanding.size).toBe(1);
      stream.close(code);
      await expect.poll(() => on.outstanding.size).toBe(0);
      await expect.poll(() => on.server.calls).toMatchObject({ open: 0, cancelled: 1 });
    });

    test('and not delivered is released when the connection breaks', async () => {
      const on = await stage();
      const session = await peer(on, NO_WINDOW);
      openCall(session, CHECK_PATH).end(CHAT);
      await expect.poll(() => on.outstanding.size).toBe(1);
      session.destroy();
      await expect.poll(() => on.outstanding.size).toBe(0);
    });

    test('and not delivered is released when its grpc-timeout has passed', async () => {
      const on = await stage();
      openCall(await peer(on, NO_WINDOW), CHECK_PATH, { 'grpc-timeout': '200m' }).end(CHAT);
      await expect.poll(() => on.server.calls.expired).toBe(1);
      expect([on.asked(), on.outstanding.size, on.server.calls.cancelled]).toEqual([1, 0, 0]);
    });

    // grpc-js cannot reset a stream.
    current.builtInTest('and not delivered when its grpc-timeout has passed resets its stream', async () => {
      const on = await stage();
      const stream = openCall(await peer(on, NO_WINDOW), CHECK_PATH, { 'grpc-timeout': '200m' });
      const closed = new Promise((resolve) => stream.once('close', resolve));
      stream.end(CHAT);
      await closed;
      expect([stream.rstCode, on.asked(), on.outstanding.size]).toEqual([8, 1, 0]);
      await expect.poll(() => on.server.calls).toMatchObject({ open: 0, expired: 1 });
    });

    test('1,000 times and never delivered leaves no reservation', async () => {
      const on = await stage();
      const session = await peer(on, NO_WINDOW);
      const streams = Array.from({ length: 1000 }, () => openCall(session, CHECK_PATH));
      for (const stream of streams) stream.end(CHAT);
      await expect.poll(() => on.asked()).toBe(1000);
      for (const [i, stream] of streams.entries()) stream.close(i % 2 === 0 ? 8 : 0);
      await expect.poll(() => on.outstanding.size).toBe(0);
      await expect.poll(() => on.server.calls.open).toBe(0);
    });
  });

  describe('a check that waits', () => {
    test('for its lookup is not decided when its stream is reset, and is no fault', async () => {
      const found = Promise.withResolvers<Resolution>();
      let resolving = 0;
      const on = await stage({
        resolver: {
          resolve() {
            resolving += 1;
            return found.promise;
          },
        },
      });
      const stream = openCall(await peer(on), CHECK_PATH);
      stream.end(CHAT);
      await expect.poll(() => resolving).toBe(1);
      stream.close(8);
      await expect.poll(() => on.server.calls.cancelled).toBe(1);
      found.resolve(await world.resolver.resolve({ kind: 'missing' }, undefined, 0));
      await found.promise;
      expect([on.asked(), on.outcomes]).toEqual([0, []]);
    });

    test.each(['reset', 'broken connection', 'deadline'])(
      'for its limits releases when its admission comes (%s)',
      async (how) => {
        const admitted = Promise.withResolvers<void>();
        const on = await stage({}, admitted.promise);
        const session = await peer(on);
        const stream = openCall(session, CHECK_PATH, { 'grpc-timeout': how === 'deadline' ? '2S' : '9S' });
        const end = endOf(stream);
        stream.end(CHAT);
        await expect.poll(() => on.asked()).toBe(1);
        if (how === 'reset') stream.close(8);
        else if (how === 'broken connection') session.destroy();
        await end;
        // The next test checks the answer at a deadline.
        if (how !== 'deadline') await expect.poll(() => on.server.calls.cancelled).toBe(1);
        let made = 0;
        const { add } = on.outstanding;
        on.outstanding.add = (reservation) => {
          made += 1;
          return add.call(on.outstanding, reservation);
        };
        admitted.resolve();
        await expect.poll(() => made).toBe(1);
        await expect.poll(() => on.outstanding.size).toBe(0);
      },
    );

    // The answer is due 100 ms before the deadline, and grpc-js ends the call at the deadline exactly. A process that
    // is not scheduled for 100 ms fails a try.
    test.each(['a lookup', 'its limits'])(
      'for %s that never answers is 503 in our form before its grpc-timeout',
      { retry: 3 },
      async (what) => {
        const never = new Promise<never>(() => undefined);
        const on = await stage(what === 'a lookup' ? { resolver: { resolve: () => never } } : {}, never);
        const session = await peer(on);
        const { grpc, body } = await call(session, CHECK_PATH, CHAT, { 'grpc-timeout': '500m' });
        expect(grpc).toBe('0');
        const answer = readAnswer(body.subarray(5));
        expect([answer.code, answer.status, answer.body['code'], answer.headers['retry-after']]).toEqual([
          14,
          503,
          'unavailable',
          '1',
        ]);
        expect(on.server.calls).toMatchObject({ expired: 0, cancelled: 0 });
        expect(on.outcomes).toMatchObject([{ code: 'unavailable' }]);
      },
    );
  });

  test('a check whose time is over when its message is whole is not decided', async () => {
    const on = await stage();
    const { body } = await call(await peer(on), CHECK_PATH, CHAT, { 'grpc-timeout': '0n' });
    if (body.length > 0) expect(readAnswer(body.subarray(5)).status).toBe(503);
    expect(on.asked()).toBe(0);
  });
});
