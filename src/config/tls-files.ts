/** Reads the files of `grpc.tls` at the start, so that a wrong one stops it rather than the first connection. */

import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Config, Secrets } from './config.ts';
import { KEYS } from './keys.ts';

type Report = (path: string, message: string) => void;

export function readTlsFiles(tls: Config['grpc']['tls'], report: Report): Secrets['grpcTls'] {
  if (tls === undefined) {
    return undefined;
  }
  const cert = readPem(KEYS.grpcTlsCert.path, tls.certFile, 'a PEM certificate', isCertificate, report);
  const key = readPem(
    KEYS.grpcTlsKey.path,
    tls.keyFile,
    'a PEM private key without a passphrase',
    isPrivateKey,
    report,
  );
  const clientCa =
    tls.clientCaFile === undefined
      ? undefined
      : readPem(KEYS.grpcTlsClientCa.path, tls.clientCaFile, 'a PEM certificate', isCertificate, report);
  if (cert !== undefined && key !== undefined && !new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))) {
    report(KEYS.grpcTlsKey.path, 'expected the private key of the certificate in grpc.tls.cert-file');
  }
  return cert === undefined || key === undefined ? undefined : { cert, key, clientCa };
}

function readPem(
  path: string,
  file: string,
  expected: string,
  isRight: (pem: string) => unknown,
  report: Report,
): string | undefined {
  let pem: string;
  try {
    pem = readFileSync(file, 'utf8');
  } catch {
    report(path, `expected a readable file, got ${file}`);
    return undefined;
  }
  try {
    isRight(pem);
    return pem;
  } catch {
    report(path, `expected ${expected} in ${file}`);
    return undefined;
  }
}

/** Both throw for anything else. */
function isCertificate(pem: string): X509Certificate {
  return new X509Certificate(pem);
}

function isPrivateKey(pem: string): ReturnType<typeof createPrivateKey> {
  return createPrivateKey(pem);
}
