/** The server that fuzzed connections meet: the whole gate, health and the access log, on the built-in transport. */

import { createAccessLog } from '../../../src/extauthz/access-log/service.ts';
import { createCheckHandler } from '../../../src/extauthz/check-handler.ts';
import type { GrpcMethods } from '../../../src/extauthz/grpc/methods.ts';
import { ServedCalls } from '../../../src/extauthz/grpc/served-calls.ts';
import { targetsOf } from '../../../src/extauthz/grpc/targets.ts';
import { createHealth } from '../../../src/extauthz/health.ts';
import { Http2Listener } from '../../../src/extauthz/http2/listener.ts';
import { builtinRoutes, littleWorld } from '../../../test/extauthz/support/little-world.ts';
import { CHECK_PATH } from '../../../test/extauthz/support/raw-peer.ts';
import { checkRequest } from '../../../test/extauthz/support/requests.ts';

export interface FuzzTarget extends AsyncDisposable {
  readonly listener: Http2Listener;
  readonly calls: ServedCalls;
  /** Decisions of the gate that were an allow, so far. */
  allows(): number;
  /** CheckRequests, with and without a valid credential. */
  readonly checks: readonly Buffer[];
  /** Texts without which no check can be allowed. */
  readonly credentials: readonly string[];
}

export async function startTarget(): Promise<FuzzTarget> {
  const world = littleWorld();
  let allows = 0;
  const gate = createCheckHandler({
    routes: builtinRoutes(),
    resolver: world.resolver,
    observer: {
      observe: ({ code }) => {
        if (code === 'allow' || code === 'public') allows += 1;
      },
    },
    trustedHops: 0,
    forwardCredential: false,
  });
  const methods: GrpcMethods = {
    [CHECK_PATH]: { kind: 'unary', answer: gate },
    ...createHealth().methods,
    ...createAccessLog({ finished: () => undefined, running: () => undefined }).methods,
  };
  const calls = new ServedCalls();
  const listener = new Http2Listener({ readTarget: targetsOf(methods, calls), tls: undefined, nowMs: calls.nowMs });
  await listener.listen({ host: '127.0.0.1', port: 0 });
  const sweeps = setInterval(() => listener.sweep(), 250);
  const credentials = [world.ownedKey, world.tenantKey, world.userToken];
  const checkWith = (authorization: string): Buffer =>
    checkRequest({
      headers: [
        ['authorization', authorization],
        ['content-type', 'application/json'],
      ],
      body: '{"model":"m"}',
    });
  return {
    listener,
    calls,
    allows: () => allows,
    checks: [...credentials.map((one) => checkWith(`Bearer ${one}`)), checkWith('Bearer psk_nobody'), Buffer.alloc(0)],
    credentials,
    async [Symbol.asyncDispose]() {
      clearInterval(sweeps);
      await listener.drain(100);
    },
  };
}
