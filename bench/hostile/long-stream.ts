/**
 * A request that streams for BENCH_MINUTES (default: 15) through Envoy with the production configuration keeps its
 * reservation all the time, and gives the rest back at its end. Reservations live 30 s without a renewal, and Envoy
 * renews them every 10 s.
 */

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { printTable, type Row, scratch, writeResult } from '../stack.ts';
import type { Administrator } from './administrator.ts';
import { Connection } from './connection.ts';
import { openStand } from './stand.ts';

const MINUTES = Number(process.env['BENCH_MINUTES'] ?? 15);
const EVENT_EVERY_MS = 5_000;
const LOOK_EVERY_MS = 15_000;
const SETTLED_WITHIN_MS = 30_000;
const TENANT = 'long-stream';
const QUOTA = 1_000_000;
const MAX_TOKENS = 50_000;
const USAGE = { prompt_tokens: 12, completion_tokens: 345, total_tokens: 357 };

export async function longStream(): Promise<void> {
  const upstream = createServer((request, response) => {
    request.resume();
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const endAtMs = performance.now() + MINUTES * 60_000;
    const timer = setInterval(() => {
      if (performance.now() < endAtMs) {
        response.write('data: {"choices":[{"delta":{"content":"a"}}]}\n\n');
        return;
      }
      clearInterval(timer);
      response.end(`data: ${JSON.stringify({ model: 'llama-3', choices: [], usage: USAGE })}\n\ndata: [DONE]\n\n`);
    }, EVENT_EVERY_MS);
    response.once('close', () => clearInterval(timer));
  });
  upstream.listen(0, '127.0.0.1');
  await once(upstream, 'listening');
  const { port } = upstream.address() as AddressInfo;
  await using stand = await openStand(join(scratch(), 'stand'), { ownUpstream: `127.0.0.1:${port}` });
  const { administrator } = stand;
  await administrator.makeTenant(TENANT, {}, { monthly_tokens: QUOTA });
  const { key } = await administrator.makeKey(TENANT, { scopes: ['chat:*'] });
  const connection = new Connection(stand.edge, '127.0.0.1');
  const body = JSON.stringify({ model: 'llama-3', stream: true, max_tokens: MAX_TOKENS, messages: [] });
  const request = { method: 'POST', path: '/v1/chat/completions', authorization: `Bearer ${key}`, body };
  const began = performance.now();
  const answer = connection.send(request, (MINUTES + 2) * 60_000);
  let ended = false;
  void answer.then(() => {
    ended = true;
  });
  let least = Number.POSITIVE_INFINITY;
  let looks = 0;
  // The first look comes after the answer has begun.
  for (await sleep(LOOK_EVERY_MS); !ended; await sleep(LOOK_EVERY_MS)) {
    const { reserved } = await tokens(administrator);
    if (ended) break;
    looks++;
    least = Math.min(least, reserved);
  }
  const outcome = await answer;
  const lastedMinutes = (performance.now() - began) / 60_000;
  let after = await tokens(administrator);
  for (
    const end = performance.now() + SETTLED_WITHIN_MS;
    performance.now() < end;
    after = await tokens(administrator)
  ) {
    if (after.reserved === 0 && after.used === USAGE.total_tokens) break;
    await sleep(200);
  }
  connection.close();
  upstream.close();
  const row: Row = {
    answer: outcome.kind === 'reply' ? outcome.status : outcome.reason,
    'lasted min': lastedMinutes.toFixed(1),
    looks,
    'least reserved': least,
    'reserved after its end': after.reserved,
    'used after its end': after.used,
  };
  printTable(
    `A streamed request of ${MINUTES} minutes that may spend ${MAX_TOKENS} tokens, and spends ${USAGE.total_tokens}`,
    [row],
  );
  const held =
    outcome.kind === 'reply' && least >= MAX_TOKENS && after.reserved === 0 && after.used === USAGE.total_tokens;
  if (!held) {
    console.error('NOT HELD: the reservation was lost, or was not settled.');
    process.exitCode = 1;
  }
  writeResult('long-stream', { minutes: MINUTES, ...row });
}

async function tokens(administrator: Administrator): Promise<{ readonly reserved: number; readonly used: number }> {
  const limits = await administrator.must('GET', `/v1/iam/tenants/${TENANT}/limits`);
  return limits['monthly_tokens'] as { reserved: number; used: number };
}
