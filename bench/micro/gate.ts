/**
 * Processor time of one warm check, from the bytes of Envoy's message to the bytes of the answer, without the network: an API key, ten
 * headers, a chat body of 1 KB, five policies.
 *
 * node bench/micro/gate.ts [keys] [tenants] [rounds]; with --cpu-prof it shows where the time goes.
 */

import { hash } from 'node:crypto';
import { buildRouteTable } from '../../src/decision/routes.ts';
import { createGate } from '../../src/extauthz/gate.ts';
import { Live } from '../../src/live/live.ts';
import { createTelemetry } from '../../src/telemetry/telemetry.ts';
import { chatBody, encodeFrame } from '../frames.ts';
import { keyText } from '../population.ts';
import { memorySource } from './memory-source.ts';

const KEYS = Number(process.argv[2] ?? 10_000);
const TENANTS = Number(process.argv[3] ?? 100);
const ROUNDS = Number(process.argv[4] ?? 20);
const CHECKS_PER_ROUND = 20_000;

const built = buildRouteTable([]);
if (built.kind === 'error') throw new Error(built.message);
const numbers = Array.from({ length: KEYS }, (_, index) => index);
const live = new Live({
  source: memorySource(new Map(numbers.map((index) => [hash('sha256', keyText(index), 'hex'), index])), TENANTS),
  verifier: { verify: async () => ({ kind: 'invalid', reason: 'malformed' }) },
  feed: { polledAtMs: Number.POSITIVE_INFINITY, catchUp: async () => {} },
  maxCredentials: 2 * KEYS,
  maxStalenessMs: 300_000,
  monotonicMs: () => performance.now(),
});
const gate = createGate({
  routes: built.table,
  resolver: live,
  observer: createTelemetry({ level: 'warn' }).observer,
  trustedHops: 0,
  forwardCredential: false,
});

const body = chatBody('llama-3-8b');
/** A stride that shares no factor with the number of keys, so that neighbours in time are not neighbours in memory. */
const STRIDE = 7919;
const frames = numbers.map((index) =>
  encodeFrame({
    method: 'POST',
    path: '/v1/chat/completions',
    authorization: `Bearer ${keyText((index * STRIDE) % KEYS)}`,
    body,
  }),
);

let answered = 0;
for (const frame of frames) answered = (await gate(frame)).length;
for (const frame of frames) if (gate(frame) instanceof Promise) throw new Error('a warm check had to wait');
console.log(`${KEYS} keys, ${TENANTS} tenants; request ${frames[0]?.length} bytes, answer ${answered} bytes`);

const costs: number[] = [];
for (let round = 0, next = 0; round < ROUNDS; round++) {
  const from = process.cpuUsage();
  for (let i = 0; i < CHECKS_PER_ROUND; i++) {
    const frame = frames[next];
    if (frame !== undefined) gate(frame);
    next = next + 1 === frames.length ? 0 : next + 1;
  }
  const { user, system } = process.cpuUsage(from);
  costs.push((user + system) / CHECKS_PER_ROUND);
}
costs.sort((left, right) => left - right);
const shown = (at: number): string => (costs[Math.floor(at * (costs.length - 1))] ?? Number.NaN).toFixed(2);
console.log(`microseconds of processor time per check: best ${shown(0)}, median ${shown(0.5)}, worst ${shown(1)}`);
