/**
 * Cancels a statement at the server, on a separate connection: CancelRequest in "Message Formats" of PostgreSQL's
 * protocol documentation. PostgreSQL does not detect the end of a client while a statement runs, so the statement would
 * keep its locks.
 *
 * The request is never encrypted, because PostgreSQL reads it before TLS begins. Its key can only cancel statements of
 * this connection, which is closed at the same time. A proxy that admits only TLS drops the request.
 */

import { connect } from 'node:net';
import type { ClientBase } from 'pg';

const CANCEL_REQUEST = 80_877_102;
const PACKET_BYTES = 16;
const TIMEOUT_MS = 2_000;

/** Requests the end of the statement that runs on the connection. Never throws and does not wait for the effect. */
export function cancelStatement(client: ClientBase): void {
  const { host, port, processID, secretKey }: Readonly<Record<string, unknown>> = { ...client };
  if (typeof host !== 'string' || typeof port !== 'number') return;
  if (typeof processID !== 'number' || typeof secretKey !== 'number') return;
  const packet = Buffer.alloc(PACKET_BYTES);
  packet.writeInt32BE(PACKET_BYTES, 0);
  packet.writeInt32BE(CANCEL_REQUEST, 4);
  packet.writeInt32BE(processID, 8);
  packet.writeInt32BE(secretKey, 12);
  const socket = connect(host.startsWith('/') ? { path: `${host}/.s.PGSQL.${port}` } : { host, port });
  socket.setTimeout(TIMEOUT_MS, () => socket.destroy());
  // The connection of the statement is closed in any case.
  socket.on('error', () => undefined);
  socket.end(packet);
}
