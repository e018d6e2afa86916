/** TLS for the gRPC server, and mTLS when a client's certificate is asked for. */

import { readFile } from 'node:fs/promises';
import type { TlsMaterial } from './http2/listener.ts';

/** Paths of PEM files. */
export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
  /** When given, only clients with a certificate of this authority are let in. */
  readonly clientCaFile?: string | undefined;
}

/** Reads the files. Rejects with an error that names the file which cannot be read. */
export async function readTlsFiles({ certFile, keyFile, clientCaFile }: TlsFiles): Promise<TlsMaterial> {
  const [cert, key, clientCa] = await Promise.all([
    read(certFile),
    read(keyFile),
    clientCaFile === undefined ? undefined : read(clientCaFile),
  ]);
  return { cert, key, clientCa };
}

async function read(file: string): Promise<Buffer> {
  try {
    return await readFile(file);
  } catch (cause) {
    throw new Error(`${file} cannot be read`, { cause });
  }
}
