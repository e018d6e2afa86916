/** A gRPC listener with the gate behind it, and the messages that clients send to it. */

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type CheckHandler, createCheckHandler } from '../../../src/extauthz/check-handler.ts';
import type { GrpcTransport } from '../../../src/extauthz/grpc/server.ts';
import { type ExtAuthzServer, startExtAuthz } from '../../../src/extauthz/server.ts';
import type { TlsFiles } from '../../../src/extauthz/tls-files.ts';
import { builtinRoutes, littleWorld } from '../../../test/extauthz/support/little-world.ts';
import { checkRequest } from '../../../test/extauthz/support/requests.ts';
import { makeAuthority } from '../../../test/support/certificates.ts';
import { HELD_PATH, LARGE_BYTES, TOO_LARGE_BYTES } from './cases.ts';

export interface ClientStage extends AsyncDisposable {
  readonly server: ExtAuthzServer;
  readonly address: string;
  /** The folder of the messages: `allowed.bin` and so on. */
  readonly messages: string;
  /**
   * The file with the certificate of the authority, in PEM; undefined without TLS. The server's name is `localhost`.
   */
  readonly ca: string | undefined;
  /** The value of the header `authorization` that proves a principal. */
  readonly authorization: string;
  /** Checks that were begun and are never answered, since the start. */
  held(): number;
}

export type Security = 'plaintext' | 'TLS';

/** @param directory an empty folder */
export async function startClientStage(
  directory: string,
  transport: GrpcTransport,
  security: Security,
): Promise<ClientStage> {
  const world = littleWorld();
  const maxBodyBytes = 2 * LARGE_BYTES;
  const gate = createCheckHandler({
    routes: builtinRoutes(),
    resolver: world.resolver,
    observer: { observe: () => undefined },
    trustedHops: 0,
    forwardCredential: false,
    maxBodyBytes,
  });
  let held = 0;
  const answer: CheckHandler = (bytes, call) => {
    if (!bytes.subarray(0, 1024).includes(HELD_PATH)) return gate(bytes, call);
    held += 1;
    return new Promise(() => undefined);
  };
  mkdirSync(directory, { recursive: true });
  const authorization = `Bearer ${world.ownedKey}`;
  for (const [name, message] of Object.entries(messagesOf(authorization)))
    writeFileSync(join(directory, `${name}.bin`), message);
  const tls = security === 'TLS' ? writeCertificates(directory) : undefined;
  const server = await startExtAuthz(answer, { listen: '127.0.0.1:0', transport, tls, maxBodyBytes });
  server.setReady(true);
  return {
    server,
    address: server.address,
    messages: directory,
    ca: tls === undefined ? undefined : join(directory, 'ca.pem'),
    authorization,
    held: () => held,
    [Symbol.asyncDispose]: () => server.drain(0),
  };
}

/** A chat body of exactly `bytes`, 80 at least. */
export function bodyOf(bytes: number): string {
  const [before, after] = ['{"model":"m","messages":[{"role":"user","content":"', '"}]}'];
  return `${before}${'a'.repeat(bytes - before.length - after.length)}${after}`;
}

function messagesOf(authorization: string): Readonly<Record<string, Buffer>> {
  const headers = [
    ['authorization', authorization],
    ['content-type', 'application/json'],
  ] as const;
  return {
    allowed: checkRequest({ headers, body: bodyOf(1024) }),
    denied: checkRequest({ body: bodyOf(1024) }),
    empty: Buffer.alloc(0),
    held: checkRequest({ headers, path: HELD_PATH }),
    large: checkRequest({ headers, body: bodyOf(LARGE_BYTES) }),
    'too-large': Buffer.alloc(TOO_LARGE_BYTES),
  };
}

function writeCertificates(directory: string): TlsFiles {
  const authority = makeAuthority();
  const { certPem, keyPem } = authority.issue('localhost');
  writeFileSync(join(directory, 'ca.pem'), authority.certPem);
  writeFileSync(join(directory, 'cert.pem'), certPem);
  writeFileSync(join(directory, 'key.pem'), keyPem, { mode: 0o600 });
  return { certFile: join(directory, 'cert.pem'), keyFile: join(directory, 'key.pem') };
}
