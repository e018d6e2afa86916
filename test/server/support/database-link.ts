/** A connection to the database that a test can cut while the database runs. */

import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';

export interface DatabaseLink {
  /** The database's, by way of the link. */
  readonly url: string;
  /** Ends every connection and takes no more. */
  cut(): void;
  restore(): void;
  close(): Promise<void>;
}

const SOCKET = '.s.PGSQL.5432';

/**
 * @param url of a database that is reached by a Unix socket
 * @param folder made for the link's own socket
 */
export async function linkTo(url: string, folder: string): Promise<DatabaseLink> {
  const parsed = new URL(url.replace('@/', '@socket/'));
  const target = join(parsed.searchParams.get('host') ?? '', SOCKET);
  await mkdir(folder, { recursive: true });
  const open = new Set<Socket>();
  let whole = true;
  const server = createServer((near) => {
    if (!whole) {
      near.destroy();
      return;
    }
    const far = connect(target);
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(socket);
      socket.once('close', () => {
        open.delete(socket);
        other.destroy();
      });
      socket.on('error', () => undefined);
      socket.pipe(other);
    }
  });
  server.listen(join(folder, SOCKET));
  await once(server, 'listening');
  const drop = (): void => {
    for (const socket of open) socket.destroy();
  };
  return {
    url: url.replace(/host=[^&]*/, `host=${encodeURIComponent(folder)}`),
    cut() {
      whole = false;
      drop();
    },
    restore() {
      whole = true;
    },
    async close() {
      drop();
      server.close();
      await once(server, 'close');
    },
  };
}
