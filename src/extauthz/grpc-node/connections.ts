/** The connections of a gRPC server: dead ones are cut, and when the server drains, live ones end after their running calls. */

import type { Http2Server, ServerHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import type { Ticking } from '../grpc/call-stats.ts';

/** A peer that has not answered a ping when the next is due is gone. */
const PING_EVERY_MS = 20_000;

const everySoOften: Ticking = (tick) => {
  const timer = setInterval(tick, PING_EVERY_MS).unref();
  return () => clearInterval(timer);
};

export interface Connections {
  /** Resolves when all are closed: each after its running calls, all of them after `graceMs`. */
  drain(graceMs: number): Promise<void>;
}

/** Watches a server from before it listens. */
export function trackConnections(server: Http2Server, ticking: Ticking = everySoOften): Connections {
  const sessions = new Set<ServerHttp2Session>();
  /** Under the sessions, and before them: of a peer that has said nothing yet, or is still shaking hands, there is no more than this. */
  const sockets = new Set<Socket>();
  const unanswered = new WeakSet<ServerHttp2Session>();
  let drained: PromiseWithResolvers<void> | undefined;

  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => {
      sockets.delete(socket);
      if (sockets.size === 0) drained?.resolve();
    });
  });
  server.on('session', (session) => {
    sessions.add(session);
    session.once('close', () => sessions.delete(session));
    if (drained !== undefined) session.close();
  });
  const stopPings = ticking(() => {
    for (const session of sessions) ping(session);
  });

  function ping(session: ServerHttp2Session): void {
    // Between its end and its `close` event a session accepts no call.
    if (session.destroyed) return;
    if (unanswered.has(session)) {
      session.destroy();
      return;
    }
    unanswered.add(session);
    session.ping(() => unanswered.delete(session));
  }

  return {
    async drain(graceMs) {
      stopPings();
      drained = Promise.withResolvers<void>();
      if (sockets.size === 0) drained.resolve();
      // Tells the peer which call was the last to be taken; it may send the others elsewhere (RFC 9113, section 6.8).
      for (const session of sessions) session.close();
      const cut = setTimeout(() => {
        for (const socket of sockets) socket.destroy();
      }, graceMs);
      await drained.promise;
      clearTimeout(cut);
    },
  };
}
