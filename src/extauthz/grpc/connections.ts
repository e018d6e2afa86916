/** The connections of a gRPC server: dead ones are cut, and when the server drains, live ones end after their running calls. */

import type { ServerHttp2Session } from 'node:http2';

/** A peer that has not answered a ping when the next is due is gone. */
export const PING_EVERY_MS = 20_000;

export interface Connections {
  add(session: ServerHttp2Session): void;
  /** Resolves when all are closed: each after its running calls, all of them after `graceMs`. */
  drain(graceMs: number): Promise<void>;
}

export function trackConnections(pingEveryMs: number): Connections {
  const sessions = new Set<ServerHttp2Session>();
  const unanswered = new WeakSet<ServerHttp2Session>();
  let drained: PromiseWithResolvers<void> | undefined;
  const pings = setInterval(() => {
    for (const session of sessions) ping(session);
  }, pingEveryMs).unref();

  function ping(session: ServerHttp2Session): void {
    if (unanswered.has(session)) {
      session.destroy();
      return;
    }
    unanswered.add(session);
    session.ping(() => unanswered.delete(session));
  }

  return {
    add(session) {
      sessions.add(session);
      session.once('close', () => {
        sessions.delete(session);
        if (sessions.size === 0) drained?.resolve();
      });
      if (drained !== undefined) session.close();
    },
    async drain(graceMs) {
      clearInterval(pings);
      drained = Promise.withResolvers<void>();
      if (sessions.size === 0) drained.resolve();
      // Tells the peer which call was the last to be taken; it may send the others elsewhere (RFC 9113, section 6.8).
      for (const session of sessions) session.close();
      const cut = setTimeout(() => {
        for (const session of sessions) session.destroy();
      }, graceMs);
      await drained.promise;
      clearTimeout(cut);
    },
  };
}
