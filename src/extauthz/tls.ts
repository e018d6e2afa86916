/** TLS for the gRPC server, and mTLS when a client's certificate is asked for. */

import { readFile } from 'node:fs/promises';
import { ServerCredentials } from '@grpc/grpc-js';

/** Paths of PEM files. */
export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
  /** When given, only clients with a certificate of this authority are let in. */
  readonly clientCaFile?: string | undefined;
}

/** Reads the files; without any, plain text. Rejects with an error that names the file which cannot be used. */
export async function serverCredentials(tls: TlsFiles | undefined): Promise<ServerCredentials> {
  if (tls === undefined) return ServerCredentials.createInsecure();
  const { certFile, keyFile, clientCaFile } = tls;
  const [certChain, privateKey, clientCa] = await Promise.all([
    read(certFile),
    read(keyFile),
    clientCaFile === undefined ? null : read(clientCaFile),
  ]);
  return ServerCredentials.createSsl(clientCa, [{ cert_chain: certChain, private_key: privateKey }], clientCa !== null);
}

async function read(file: string): Promise<Buffer> {
  try {
    return await readFile(file);
  } catch (cause) {
    throw new Error(`${file} cannot be read`, { cause });
  }
}
