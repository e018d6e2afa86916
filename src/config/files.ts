/** Reads the files that settings name: secrets, certificates and private keys. A wrong file stops the start. */

import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';

const MAX_SECRET_BYTES = 65_536;

export const SECRET_FILE_EXPECTED = 'expected a readable file of at most 64 KiB in UTF-8';

/** @throws TypeError for bytes that are not UTF-8. Decoded, all of them would be the same character. */
export function utf8Text(bytes: Uint8Array): string {
  return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
}

/**
 * Returns the content without the line end that editors add; undefined if the file is too large, cannot be read, or is
 * not UTF-8.
 */
export function readSecret(file: string): string | undefined {
  try {
    return statSync(file).size > MAX_SECRET_BYTES ? undefined : utf8Text(readFileSync(file)).replace(/\r?\n$/, '');
  } catch {
    return undefined;
  }
}

const PEM = {
  certificate: { expected: 'a PEM certificate', parse: (pem: string) => new X509Certificate(pem) },
  key: { expected: 'a PEM private key without a passphrase', parse: createPrivateKey },
};

/** Returns the text of a PEM file, or reports why it has no such object. */
export function readPem(
  file: string,
  kind: 'certificate' | 'key',
  report: (message: string) => void,
): string | undefined {
  let pem: string;
  try {
    pem = readFileSync(file, 'utf8');
  } catch {
    report(`expected a readable file, got ${file}`);
    return undefined;
  }
  try {
    PEM[kind].parse(pem);
    return pem;
  } catch {
    report(`expected ${PEM[kind].expected} in ${file}`);
    return undefined;
  }
}

/** Reports whether the private key is that of the certificate, both as PEM. */
export function belongTogether(cert: string, key: string): boolean {
  return new X509Certificate(cert).checkPrivateKey(createPrivateKey(key));
}
