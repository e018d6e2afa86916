/** Several servers of one directory: in order, each with its share of the time, and those that failed lately last. */

import type { SecureContext } from 'node:tls';
import { Fault } from '../domain/errors.ts';
import { type Connection, connectTo } from './connection.ts';
import { Deadline } from './deadline.ts';
import { DirectoryFault, reasonOf } from './faults.ts';
import type { DirectorySettings, DirectoryUrl } from './settings.ts';
import { type Observer, TlsFault } from './socket.ts';

/** How long a server that failed is asked only after the others. */
const SHUN_MS = 30_000;

/** What is done first on a new connection, such as the service account's bind. A failure of it counts as the server's. */
export type Greeting = (connection: Connection) => Promise<void>;

export interface Servers {
  /** @throws Fault that names every server and why it is not used; a TlsFault when TLS is why */
  open(deadline: Deadline, greet: Greeting, observe?: Observer): Promise<Connection>;
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
          // What still comes of it is not for this login any more.
          attempt.then((late) => late.close()).catch(() => undefined);
          if (isSaidByAll(error)) throw error;
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

/** @param left servers that are still to be asked, this one included */
function shareOf(whole: Deadline, left: number): Deadline {
  const leftMs = whole.remainingMs();
  // The last one has all that is left; that the time is over is told of it as it was configured, whichever of the two notices first.
  return left === 1 ? new Deadline(whole.timeoutMs, whole.timeoutMs - leftMs) : new Deadline(leftMs / left);
}

/** Codes that say something of the one server: in trouble, busy, going down. */
const OF_THE_SERVER = [1, 3, 11, 51, 52, 80];

/** What the next server would say too. Asking it would only bring the service account nearer to its lock. */
function isSaidByAll(error: unknown): boolean {
  return error instanceof DirectoryFault && !OF_THE_SERVER.includes(error.code);
}

interface Attempt {
  readonly deadline: Deadline;
  readonly share: Deadline;
  readonly greet: Greeting;
  readonly observe: Observer | undefined;
}

async function begin(
  route: Parameters<typeof connectTo>[0],
  { deadline, share, greet, observe }: Attempt,
): Promise<Connection> {
  const connection = await connectTo(route, { opening: share, whole: deadline }, observe);
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
