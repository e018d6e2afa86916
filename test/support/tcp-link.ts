/** A way to a TCP server whose connections a test can cut. */

import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

export interface TcpLink {
  /** `host:port` of the server by way of the link. */
  readonly address: string;
  /** Ends every connection; new ones go through. Returns how many it ended. */
  cut(): number;
  close(): Promise<void>;
}

/** @param target `host:port` */
export async function linkTo(target: string): Promise<TcpLink> {
  const [host, port] = target.split(':');
  const near = new Set<Socket>();
  const server = createServer((client) => {
    const far = connect(Number(port), host);
    near.add(client);
    client.once('close', () => near.delete(client));
    for (const [socket, other] of [
      [client, far],
      [far, client],
    ] as const) {
      socket.once('close', () => other.destroy());
      socket.on('error', () => undefined);
      socket.pipe(other);
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('no address');
  const cut = (): number => {
    const ended = near.size;
    for (const socket of near) socket.destroy();
    return ended;
  };
  return {
    address: `127.0.0.1:${address.port}`,
    cut,
    async close() {
      cut();
      server.close();
      await once(server, 'close');
    },
  };
}
