/**
 * Reloads certificates, keys and client CAs that change on disk. The server reads the files every few seconds and
 * compares their content. File watches miss the change of a symbolic link above the files, which is how Kubernetes
 * replaces them, and time stamps may not change.
 *
 * Files that the server cannot use change nothing. The problem is reported once for each content of the files.
 */

import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { SingleFlight } from '../concurrency/single-flight.ts';
import { reasonOf } from '../domain/errors.ts';
import type { TlsReload } from '../telemetry/grpc-metrics.ts';
import type { Ticking } from './grpc/call-stats.ts';
import type { TlsMaterial } from './http2/listener.ts';

export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
  /** If present, only clients with a certificate of this authority can connect. */
  readonly clientCaFile?: string | undefined;
}

/** Reads the files. Rejects with an error that names the file that cannot be read. */
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

export interface TlsReloadParts {
  readonly files: TlsFiles;
  /** The files with which the server started. */
  readonly inUse: TlsMaterial;
  /** Uses the material for new connections. Throws, and changes nothing, if the material cannot be used. */
  readonly apply: (material: TlsMaterial) => void;
  readonly onReload: (reload: TlsReload) => void;
  /** Default: every 5 s. */
  readonly ticking?: Ticking | undefined;
}

const READ_EVERY_MS = 5_000;
const everyFewSeconds: Ticking = (tick) => {
  const timer = setInterval(tick, READ_EVERY_MS).unref();
  return () => clearInterval(timer);
};

/** Begins to watch the files. The returned function ends it. */
export function watchTlsFiles({
  files,
  inUse,
  apply,
  onReload,
  ticking = everyFewSeconds,
}: TlsReloadParts): () => void {
  let current = inUse;
  /** The rejected content, or the error of reading it. It is reported once. */
  let refused: TlsMaterial | string | undefined;
  let stopped = false;

  async function look(): Promise<void> {
    let material: TlsMaterial;
    try {
      material = await readTlsFiles(files);
      // A certificate and a key from before and after a change do not match. The next round reads files that change
      // during this one.
      if (!isSame(material, current) && !isSame(material, await readTlsFiles(files))) return;
    } catch (error) {
      refuse(reasonOf(error), reasonOf(error));
      return;
    }
    if (stopped || (typeof refused === 'object' && isSame(material, refused))) return;
    if (isSame(material, current)) {
      refused = undefined;
      return;
    }
    try {
      const notAfter = check(material, files);
      apply(material);
      current = material;
      refused = undefined;
      onReload({ kind: 'taken', notAfter });
    } catch (error) {
      // OpenSSL's messages contain no content of the files, for example `key values mismatch`.
      refuse(material, reasonOf(error));
    }
  }

  function refuse(what: TlsMaterial | string, problem: string): void {
    if (stopped || refused === what) return;
    refused = what;
    onReload({ kind: 'refused', problem });
  }

  const looks = new SingleFlight(look);
  const stopTicking = ticking(() => void looks.run());
  return () => {
    stopped = true;
    stopTicking();
  };
}

/**
 * Returns the end of the certificate. Throws a sentence if a file is no certificate, which OpenSSL may report by a code
 * or not at all.
 */
function check({ cert, clientCa }: TlsMaterial, { certFile, clientCaFile }: TlsFiles): string {
  const { validTo } = certificateIn(cert, certFile);
  if (clientCa !== undefined) certificateIn(clientCa, clientCaFile ?? '');
  return new Date(validTo).toISOString();
}

function certificateIn(pem: Buffer, file: string): X509Certificate {
  try {
    return new X509Certificate(pem);
  } catch (cause) {
    throw new Error(`${file} is not a PEM certificate`, { cause });
  }
}

function isSame(one: TlsMaterial, other: TlsMaterial): boolean {
  if (!(one.cert.equals(other.cert) && one.key.equals(other.key))) return false;
  return one.clientCa === undefined || other.clientCa === undefined
    ? one.clientCa === other.clientCa
    : one.clientCa.equals(other.clientCa);
}
