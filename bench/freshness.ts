/** How long after a key is revoked at one server does another refuse it? With notifications, and with the poll alone. */

import { connect } from 'node:http2';
import { join } from 'node:path';
import { chatBody, encodeFrame } from './frames.ts';
import { keyText } from './population.ts';
import { openWorld } from './server-under-test.ts';
import { printTable, quantile, type Row, scratch, writeResult } from './stack.ts';

const SAMPLES = Number(process.env['BENCH_SAMPLES'] ?? 200);

export async function freshness(): Promise<void> {
  const rows: Row[] = [];
  const distributions: Record<string, number[]> = {};
  for (const [name, notifications] of [
    ['with notifications', true],
    ['notifications cut off', false],
  ] as const) {
    await using world = await openWorld(join(scratch(), 'world'), { tenants: 10, keys: 1_000, usable: 1_000, sessions: 0 });
    await using stack = new AsyncDisposableStack();
    const first = await world.start({ notifications });
    stack.defer(() => first.stop());
    const second = await world.start({ notifications });
    stack.defer(() => second.stop());
    const token = await world.administratorToken(first);
    const checks = checker(second.grpc);
    stack.defer(() => checks.close());
    const delays: number[] = [];
    for (let i = 0; i < SAMPLES; i++) {
      const frame = encodeFrame({
        method: 'POST',
        path: '/v1/chat/completions',
        authorization: `Bearer ${keyText(i)}`,
        body: chatBody('llama-3-8b'),
      });
      if (!(await checks.allowed(frame))) throw new Error(`key ${i} was refused before it was revoked`);
      const id = `key_${i.toString(16).padStart(26, '0')}`;
      const response = await fetch(`http://${first.http}/v1/iam/api-keys/${id}`, {
        method: 'DELETE',
        headers: { authorization: `Bearer ${token}`, 'x-tenant-id': `tenant-${i % 10}` },
      });
      const answered = performance.now();
      if (response.status !== 204) throw new Error(`revoking answered ${response.status}: ${await response.text()}`);
      while (await checks.allowed(frame)) {
        // Ask again until it is refused: the loop is the clock.
      }
      delays.push(performance.now() - answered);
    }
    distributions[name] = delays;
    rows.push({
      'revoked here, refused there': name,
      samples: delays.length,
      'p50 ms': quantile(delays, 0.5).toFixed(1),
      'p90 ms': quantile(delays, 0.9).toFixed(1),
      'p99 ms': quantile(delays, 0.99).toFixed(1),
      'max ms': Math.max(...delays).toFixed(1),
    });
  }
  printTable('Freshness: from the answer to the revocation at one server to the first refusal at another', rows);
  writeResult('freshness', { rows, distributions });
}

/** Asks one server's Check over HTTP/2 with gRPC framing; allowed means status code 0. */
function checker(address: string): { allowed(frame: Buffer): Promise<boolean>; close(): void } {
  const session = connect(`http://${address}`);
  return {
    close: () => session.close(),
    allowed: (frame) =>
      new Promise((done, fail) => {
        const stream = session.request({
          ':method': 'POST',
          ':path': '/envoy.service.auth.v3.Authorization/Check',
          'content-type': 'application/grpc',
          te: 'trailers',
        });
        const chunks: Buffer[] = [];
        stream.on('data', (chunk: Buffer) => chunks.push(chunk));
        stream.once('error', fail);
        stream.once('end', () => done(codeIsZero(Buffer.concat(chunks).subarray(5))));
        const prefix = Buffer.alloc(5);
        prefix.writeUInt32BE(frame.length, 1);
        stream.end(Buffer.concat([prefix, frame]));
      }),
  };
}

/** CheckResponse.status is field 1, its code field 1 in turn; proto3 leaves a zero out. */
function codeIsZero(response: Buffer): boolean {
  return !(response[0] === 0x0a && (response[1] ?? 0) > 0 && response[2] === 0x08 && response[3] !== 0);
}
