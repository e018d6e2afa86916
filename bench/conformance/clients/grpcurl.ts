/** grpcurl (github.com/fullstorydev/grpcurl) as a client of the gRPC listener. */

import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { CASES, type ClientCase, type Ended, HELD_PATH, LARGE_BYTES, TOO_LARGE_BYTES } from './cases.ts';
import { bodyOf, type ClientStage } from './stage.ts';

const PROTOS = join(import.meta.dirname, '../../../protos');
/** grpcurl ends with this plus the gRPC status. */
const STATUS_OFFSET = 64;
const LIMIT_SECONDS = 30;

/** Methods that the server does not have. */
const MISSING = `syntax = "proto3";
package PACKAGE;
message Empty {}
service SERVICE { rpc Missing(Empty) returns (Empty); }
`;

/** @param whenHeld resolves when the server has begun one more check that it does not answer */
export async function runGrpcurl(
  binary: string,
  stage: ClientStage,
  whenHeld: () => Promise<void>,
): Promise<readonly Ended[]> {
  const ended: Ended[] = [];
  for (const each of CASES) ended.push(await runCase(binary, stage, each, whenHeld));
  return ended;
}

async function runCase(
  binary: string,
  stage: ClientStage,
  each: ClientCase,
  whenHeld: () => Promise<void>,
): Promise<Ended> {
  const { ca, address } = stage;
  const method = each.method.slice(1);
  const security = ca === undefined ? ['-plaintext'] : ['-cacert', ca, '-servername', 'localhost'];
  const seconds = each.deadlineMs === 0 ? LIMIT_SECONDS : each.deadlineMs / 1000;
  const args = [...security, '-max-time', String(seconds), ...schemaOf(method, stage), '-d', '@', address, method];
  const begun = each.isCancelled ? whenHeld() : undefined;
  const child = spawn(binary, args, { stdio: ['pipe', 'pipe', 'ignore'] });
  const chunks: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
  const { promise, resolve, reject } = Promise.withResolvers<readonly [number | null, NodeJS.Signals | null]>();
  child.once('error', reject).once('close', (code, signal) => resolve([code, signal]));
  child.stdin.on('error', () => undefined).end(JSON.stringify(messageOf(each, stage)));
  await begun;
  // grpcurl has no way to cancel but this; its connection breaks, and with it the call.
  if (each.isCancelled) child.kill('SIGINT');
  const [code, signal] = await promise;
  return { name: each.name, ...endOf(code, signal, Buffer.concat(chunks).toString()) };
}

function schemaOf(method: string, { messages }: ClientStage): readonly string[] {
  const [service = '', name] = method.split('/');
  if (name !== 'Missing') {
    const file = method.startsWith('grpc.health')
      ? 'grpc/health/v1/health.proto'
      : 'envoy/service/auth/v3/external_auth.proto';
    return ['-import-path', PROTOS, '-proto', file];
  }
  const dot = service.lastIndexOf('.');
  writeFileSync(
    join(messages, 'missing.proto'),
    MISSING.replace('PACKAGE', service.slice(0, dot)).replace('SERVICE', service.slice(dot + 1)),
  );
  return ['-import-path', messages, '-proto', 'missing.proto'];
}

/** The message in the JSON form of Protocol Buffers. */
function messageOf({ message }: ClientCase, { authorization }: ClientStage): object {
  const check = (path: string, body: string, headers: object): object => ({
    attributes: {
      source: { address: { socketAddress: { address: '192.0.2.10', portValue: 40_000 } } },
      request: {
        http: { method: 'POST', path, host: 'api.example.com', scheme: 'https', size: body.length, headers, body },
      },
    },
  });
  const headers = { authorization, 'content-type': 'application/json' };
  const chat = '/v1/chat/completions';
  switch (message) {
    case 'allowed':
      return check(chat, bodyOf(1024), headers);
    case 'denied':
      return check(chat, bodyOf(1024), {});
    case 'held':
      return check(HELD_PATH, '', headers);
    case 'large':
      return check(chat, bodyOf(LARGE_BYTES), headers);
    case 'too-large':
      return check(chat, bodyOf(TOO_LARGE_BYTES), headers);
    case 'empty':
      return {};
    default:
      return message satisfies never;
  }
}

/** The result of grpcurl in the form of the other clients. Only the codes of its answer matter. */
function endOf(code: number | null, signal: NodeJS.Signals | null, output: string): Pick<Ended, 'status' | 'answer'> {
  if (signal === 'SIGINT') return { status: status.CANCELLED, answer: '' };
  if (code !== 0) return { status: (code ?? 0) - STATUS_OFFSET, answer: '' };
  const answer: { readonly status?: string | { readonly code?: number } } = JSON.parse(output);
  if (answer.status === 'SERVING') return { status: status.OK, answer: '0801' };
  const rpcCode = typeof answer.status === 'object' ? (answer.status.code ?? 0) : 0;
  return { status: status.OK, answer: Buffer.of(0x0a, 2, 0x08, rpcCode).toString('hex') };
}
