/** The address of the gRPC listener: `host:port`, or `unix:/path` for a socket that only this machine can reach. */

import { chmod, lstat, unlink } from 'node:fs/promises';
import { connect } from 'node:net';
import { systemCode } from '../domain/errors.ts';

const UNIX = /^unix:(?:\/\/(?=\/))?(.+)$/;
/** Owner and group, because Envoy runs as another user of the same group. */
const SOCKET_MODE = 0o660;

/** Returns the socket's path; undefined for a TCP address. */
export function socketPath(listen: string): string | undefined {
  return UNIX.exec(listen)?.[1];
}

/**
 * Removes the socket file that a killed server left behind. Throws if a server listens there, or if the file is no
 * socket.
 */
export async function removeStaleSocket(path: string): Promise<void> {
  try {
    if (!(await lstat(path)).isSocket()) throw new Error(`${path} exists and is not a socket`);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return;
    throw error;
  }
  if (await isListening(path)) throw new Error(`another server listens on ${path}`);
  await unlink(path);
}

export async function openToGroup(path: string): Promise<void> {
  await chmod(path, SOCKET_MODE);
}

function isListening(path: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', (error) => {
      if (systemCode(error) === 'ECONNREFUSED') resolve(false);
      else reject(error);
    });
  });
}
