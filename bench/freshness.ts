/**
 * How long after a key is revoked at one server does another refuse it? With notifications, and with the poll alone;
 * then at three other replicas, and for the tokens of an issuer. BENCH_FRESHNESS=two, replicas or issuers runs that part
 * only. Ends with exit code 1 if a goal is
 * missed.
 */

import { join } from 'node:path';
import { checker } from './checker.ts';
import { chatBody, encodeFrame } from './frames.ts';
import { freshnessOfIssuers } from './freshness-issuers.ts';
import { freshnessOfReplicas } from './freshness-replicas.ts';
import { keyText } from './population.ts';
import { openWorld } from './server-under-test.ts';
import { printTable, quantile, type Row, scratch, writeResult } from './stack.ts';

const SAMPLES = Number(process.env['BENCH_SAMPLES'] ?? 200);

export async function freshness(): Promise<void> {
  const part = process.env['BENCH_FRESHNESS'];
  const runs = (name: string): boolean => part === undefined || part === name;
  const two = runs('two') ? await freshnessOfTwo() : {};
  const replicas = runs('replicas') ? await freshnessOfReplicas() : { broken: [] };
  const issuers = runs('issuers') ? await freshnessOfIssuers() : { broken: [] };
  const broken = [...replicas.broken, ...issuers.broken];
  for (const sentence of broken) console.error(`NOT HELD: ${sentence}`);
  if (broken.length > 0) process.exitCode = 1;
  writeResult('freshness', { ...two, replicas, issuers });
}

async function freshnessOfTwo(): Promise<{
  readonly rows: readonly Row[];
  readonly distributions: Record<string, number[]>;
}> {
  const rows: Row[] = [];
  const distributions: Record<string, number[]> = {};
  for (const [name, notifications] of [
    ['with notifications', true],
    ['notifications cut off', false],
  ] as const) {
    await using world = await openWorld(join(scratch(), 'world'), {
      tenants: 10,
      keys: 1_000,
      usable: 1_000,
      sessions: 0,
    });
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
  return { rows, distributions };
}
