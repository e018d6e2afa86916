/** A way to a server on which everything that the client sends is written down, and which can be made to misbehave. */

import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

export interface RecorderOptions {
  /** Bytes that the server answers with, before the client gets them; null = both sides are cut off. */
  readonly answer?: (bytes: Buffer, nth: number) => Buffer | null;
  /** The number of pieces of the server's answer to pass on; after them, the recorder is silent and closes nothing. */
  readonly silentAfter?: number;
}

export interface Recorder {
  readonly port: number;
  /** All that clients have sent so far. */
  sent(): Buffer;
  /** Connections that clients have made so far, and those open now. */
  connections(): number;
  open(): number;
  close(): Promise<void>;
}

/** @param to a port of loopback */
export async function startRecorder(to: number, options: RecorderOptions = {}): Promise<Recorder> {
  const { answer = (bytes: Buffer) => bytes, silentAfter = Number.POSITIVE_INFINITY } = options;
  const sent: Buffer[] = [];
  const sockets = new Set<Socket>();
  let connections = 0;
  let open = 0;
  const keep = (socket: Socket): Socket => {
    sockets.add(socket);
    return socket.once('close', () => sockets.delete(socket)).on('error', () => socket.destroy());
  };
  const server = createServer((client) => {
    connections++;
    open++;
    keep(client).once('close', () => open--);
    const upstream = keep(connect(to, '127.0.0.1'));
    let answers = 0;
    client.on('data', (bytes: Buffer) => {
      sent.push(bytes);
      upstream.write(bytes);
    });
    upstream.on('data', (bytes: Buffer) => {
      answers++;
      if (answers > silentAfter) return;
      const passed = answer(bytes, answers);
      if (passed === null) {
        client.destroy();
        upstream.destroy();
      } else client.write(passed);
    });
    client.once('close', () => upstream.destroy());
    upstream.once('close', () => client.destroy());
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    sent: () => Buffer.concat(sent),
    connections: () => connections,
    open: () => open,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
