/** An authority and the certificates of one server, made by openssl in a folder. */

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { tool } from './processes.ts';

export interface ServerFiles {
  readonly ca: string;
  readonly certificate: string;
  readonly key: string;
}

export interface CertificateOptions {
  /** As openssl writes them: `DNS:localhost`, `IP:127.0.0.1`. */
  readonly names?: readonly string[];
  /** Ended yesterday. */
  readonly expired?: boolean;
}

const LOOPBACK = ['DNS:localhost', 'IP:127.0.0.1'];
const KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];

export async function makeAuthority(folder: string): Promise<{ readonly ca: string; readonly key: string }> {
  const ca = join(folder, 'ca.pem');
  const key = join(folder, 'ca.key');
  const uses = ['-addext', 'basicConstraints=critical,CA:TRUE', '-addext', 'keyUsage=critical,keyCertSign,cRLSign'];
  await tool('openssl', [
    'req',
    '-x509',
    ...KEY,
    '-days',
    '2',
    '-subj',
    '/CN=Authority of a test',
    ...uses,
    '-keyout',
    key,
    '-out',
    ca,
  ]);
  return { ca, key };
}

/** Its own authority, unless one is given. */
export async function makeCertificates(
  folder: string,
  { names = LOOPBACK, expired = false }: CertificateOptions = {},
  authority?: { readonly ca: string; readonly key: string },
): Promise<ServerFiles> {
  const signer = authority ?? (await makeAuthority(folder));
  const file = (name: string): string => join(folder, `server${expired ? '-expired' : ''}-${names.length}${name}`);
  const [request, certificate, key, extensions] = [file('.csr'), file('.pem'), file('.key'), file('.ext')];
  await tool('openssl', ['req', '-new', ...KEY, '-subj', '/CN=server', '-keyout', key, '-out', request]);
  await writeFile(
    extensions,
    `subjectAltName=${names.join(',')}\nbasicConstraints=CA:FALSE\nkeyUsage=digitalSignature,keyEncipherment\nextendedKeyUsage=serverAuth\n`,
  );
  await tool('openssl', [
    'x509',
    '-req',
    '-in',
    request,
    '-CA',
    signer.ca,
    '-CAkey',
    signer.key,
    '-CAcreateserial',
    ...days(expired),
    '-extfile',
    extensions,
    '-out',
    certificate,
  ]);
  return { ca: signer.ca, certificate, key };
}

function days(expired: boolean): string[] {
  return ['-days', expired ? '-1' : '2'];
}
