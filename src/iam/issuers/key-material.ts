/** The pasted keys of an issuer, and its certificate authorities. */

import { X509Certificate } from 'node:crypto';
import type { FieldError } from '../../domain/problem-details.ts';
import { validateKeySet } from '../../identity/issuer-keys.ts';
import type { IssuerChanges, IssuerRow } from './entity.ts';

interface Read<T> {
  /** Undefined: absent or not valid. */
  readonly value: T | null | undefined;
  readonly errors: readonly FieldError[];
}

/** Reads a pasted key set. Members of private keys are an error, because responses show the set. */
export function keySet(set: IssuerChanges['jwks'], kind: IssuerRow['kind']): Read<NonNullable<IssuerRow['jwks']>> {
  if (set === undefined || set === null) return { value: set, errors: [] };
  const read = validateKeySet(kind === 'spiffe' ? { keys: set.keys.map(asBundleEntry) } : set, kind);
  if (read.kind === 'error') return { value: undefined, errors: [{ path: '/jwks', message: read.message }] };
  return { value: { keys: read.keys }, errors: [] };
}

/** A stored key of a trust domain has `use: sig`, and may be pasted again as a response showed it. */
function asBundleEntry(entry: unknown): unknown {
  if (typeof entry !== 'object' || entry === null || !('use' in entry) || entry.use !== 'sig') return entry;
  return { ...entry, use: 'jwt-svid' };
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g;
const MAX_CERTIFICATES = 20;

/** Reads certificates in PEM. The result has the certificates and no other text. */
export function certificates(pem: string | null | undefined): Read<string> {
  if (pem === undefined || pem === null) return { value: pem, errors: [] };
  const error = (message: string): Read<string> => ({ value: undefined, errors: [{ path: '/ca', message }] });
  if (pem.includes('PRIVATE KEY-----')) return error('This text has a private key. State certificates only.');
  const blocks = pem.match(CERTIFICATE) ?? [];
  if (blocks.length === 0) return error('This text has no certificate in PEM (-----BEGIN CERTIFICATE-----).');
  if (blocks.length > MAX_CERTIFICATES) return error(`At most ${MAX_CERTIFICATES} certificates are read.`);
  const broken = blocks.findIndex((block) => !isCertificate(block));
  if (broken >= 0) return error(`Certificate ${broken + 1} cannot be read.`);
  return { value: `${blocks.join('\n')}\n`, errors: [] };
}

function isCertificate(block: string): boolean {
  try {
    return new X509Certificate(block).raw.length > 0;
  } catch {
    return false;
  }
}
