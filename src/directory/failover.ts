/**
 * The servers of one directory, tried in order, each within its share of the time. Servers that failed recently come
 * last.
 */

import type { SecureContext } from 'node:tls';
import { Fault, reasonOf } from '../domain/errors.ts';
import { connectTo, type LdapConnection } from './connection.ts';
import { Deadline } from './deadline.ts';
import { DirectoryFault } from './faults.ts';
import type { DirectorySettings, DirectoryUrl } from './settings.ts';
import { type ConnectionObserver, TlsFault } from './socket.ts';

/** A server that failed is tried after the others for this time. */
const SHUN_MS = 30_000;

/** The first operation on a new connection, such as the service account's bind. Its failure counts as the server's. */
type Greeting = (connection: LdapConnection) => Promise<void>;

export interface Servers {
  /** @throws Fault that names every server and the reason for its failure; a TlsFault if TLS failed at all of them */
  open(deadline: Deadline, greet: Greeting, observe?: ConnectionObserver): Promise<LdapConnection>;
}

export function serversOf(settings: DirectorySettings, trust: SecureContext | undefined): Servers {
  const shunnedUntil = new Map<DirectoryUrl, number>();
  const isShunned = (url: DirectoryUrl): boolean => (shunnedUntil.get(url) ?? 0) > performance.now();

  return {
    open: async (deadline, greet, observe) => {
      const urls = [...settings.urls.filter((url) => !isShunned(url)), ...settings.urls.filter(isShunned)];
      const faults: unknown[] = [];
      for (const [index, url] of urls.entries()) {
        if (deadline.passed) break;
        using share = shareOf(deadline, urls.length - index);
        const attempt = begin({ url, startTls: settings.startTls, trust }, { deadline, share, greet, observe });
        try {
          const connection = await share.within(attempt);
          shunnedUntil.delete(url);
          return connection;
        } catch (error) {
          // The connection may still open later, and is then closed.
          attempt.then((late) => late.close()).catch(() => undefined);
          if (isSameForAll(error)) throw error;
          shunnedUntil.set(url, performance.now() + SHUN_MS);
          faults.push(error);
        }
      }
      const [only] = faults;
      if (faults.length === 1 && only instanceof Fault) throw deadline.passed ? deadline.fault() : only;
      if (faults.length === 0 || deadline.passed) throw deadline.fault();
      const message = `no server of the directory ${settings.name} can be used: ${faults.map(reasonOf).join('; ')}`;
      throw faults.every((fault) => fault instanceof TlsFault) ? new TlsFault(message) : new Fault(message);
    },
  };
}

/** @param left the number of servers that remain, including this one */
function shareOf(whole: Deadline, left: number): Deadline {
  const leftMs = whole.remainingMs();
  // The last one gets the rest of the time. Its fault names the configured timeout, as that of the whole deadline does.
  return left === 1 ? new Deadline(whole.timeoutMs, whole.timeoutMs - leftMs) : new Deadline(leftMs / left);
}

/** Codes that apply to one server only: an internal error, busy, shutting down. */
const OF_THE_SERVER = [1, 3, 11, 51, 52, 80];

/**
 * Reports whether every server would give the same answer. Another attempt would only bring the service account closer
 * to its lock.
 */
function isSameForAll(error: unknown): boolean {
  return error instanceof DirectoryFault && !OF_THE_SERVER.includes(error.code);
}

interface ConnectionAttempt {
  readonly deadline: Deadline;
  readonly share: Deadline;
  readonly greet: Greeting;
  readonly observe: ConnectionObserver | undefined;
}

async function begin(
  target: Parameters<typeof connectTo>[0],
  { deadline, share, greet, observe }: ConnectionAttempt,
): Promise<LdapConnection> {
  const connection = await connectTo(target, { opening: share, whole: deadline }, observe);
  const cancel = share.onPassing(() => connection.close());
  try {
    await greet(connection);
    return connection;
  } catch (error) {
    connection.close();
    throw error;
  } finally {
    cancel();
  }
}
