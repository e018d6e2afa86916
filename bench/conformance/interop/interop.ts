/** grpc-go's interoperability client against `TestService` on the gRPC transports. */

import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { GrpcTransport } from '../../../src/extauthz/grpc/server.ts';
import { loadTransport } from '../../../src/extauthz/grpc/transports.ts';
import { makeAuthority } from '../../../test/support/certificates.ts';
import { installGo } from '../go-tools.ts';
import { INTEROP_METHODS } from './service.ts';

const CLIENT = 'google.golang.org/grpc/interop/client@v1.83.0';
const TIMEOUT_MS = 30_000;

export const INTEROP_CASES = [
  'empty_unary',
  'large_unary',
  'server_streaming',
  'status_code_and_message',
  'special_status_message',
  'timeout_on_sleeping_server',
  'cancel_after_begin',
  'unimplemented_method',
  'unimplemented_service',
] as const;

/** Cases of the client that use a part of gRPC which the transports do not have. */
export const NOT_RUN: Readonly<Record<string, string>> = {
  'client_streaming, ping_pong, empty_stream, cancel_after_first_response':
    'the answer to a stream of the client is fixed, and no call streams both ways',
  custom_metadata: 'methods neither read nor send metadata',
};

export interface InteropResult {
  readonly transport: GrpcTransport;
  readonly security: 'plaintext' | 'TLS';
  readonly name: string;
  readonly passed: boolean;
  /** The last line that the client printed. */
  readonly said: string;
}

/** Runs every case. Throws a sentence when the client cannot be built. */
export async function runInterop(directory: string): Promise<readonly InteropResult[]> {
  const binary = installGo(directory, CLIENT);
  const folder = join(directory, 'interop');
  mkdirSync(folder);
  const ca = join(folder, 'ca.pem');
  const authority = makeAuthority();
  const { certPem, keyPem } = authority.issue('localhost');
  writeFileSync(ca, authority.certPem);
  const tls = { cert: Buffer.from(certPem), key: Buffer.from(keyPem), clientCa: undefined };
  const results: InteropResult[] = [];
  for (const transport of ['built-in', 'grpc-js'] as const) {
    const startGrpc = await loadTransport(transport);
    for (const security of ['plaintext', 'TLS'] as const) {
      const server = await startGrpc(
        INTEROP_METHODS,
        { host: '127.0.0.1', port: 0 },
        security === 'TLS' ? tls : undefined,
        { protos: [join(import.meta.dirname, 'interop.proto')] },
      );
      const at = ['-server_host=127.0.0.1', `-server_port=${server.port}`];
      const secured =
        security === 'TLS' ? ['-use_tls', '-use_test_ca', `-ca_file=${ca}`, '-server_host_override=localhost'] : [];
      for (const name of INTEROP_CASES) {
        results.push({
          transport,
          security,
          name,
          ...(await runCase(binary, [...at, ...secured, `-test_case=${name}`])),
        });
      }
      await server.drain(0);
    }
  }
  return results;
}

function runCase(binary: string, args: readonly string[]): Promise<Pick<InteropResult, 'passed' | 'said'>> {
  return new Promise((resolve) => {
    execFile(binary, [...args], { timeout: TIMEOUT_MS }, (error, stdout, stderr) => {
      resolve({ passed: error === null, said: `${stdout}${stderr}`.trim().split('\n').at(-1) ?? '' });
    });
  });
}
