/**
 * Processor time of one warm check, from the bytes of Envoy's message to the bytes of the answer, without the network:
 * an API key, ten headers, a chat body of 1 KB, five policies. The same with a token for the upstream, with one denial in
 * ten, without the record of recent decisions, and without a credential, which must not cost more than an allow.
 *
 * node bench/micro/gate.ts [keys] [tenants] [rounds]; with --cpu-prof it shows where the time goes.
 */

import { generateKeyPairSync, hash } from 'node:crypto';
import { CredentialCache } from '../../src/credential-cache/credential-cache.ts';
import { buildRouteTable } from '../../src/decision/routes.ts';
import { type CheckHandler, createCheckHandler } from '../../src/extauthz/check-handler.ts';
import { createRandomPool } from '../../src/extauthz/random-pool.ts';
import { UpstreamHeaders } from '../../src/extauthz/upstream-headers.ts';
import { OPTIONAL_CLAIMS, UpstreamTokens } from '../../src/identity/upstream-token.ts';
import { CheckMeter } from '../../src/telemetry/check-meter.ts';
import { checkObserver } from '../../src/telemetry/check-observer.ts';
import { DecisionTally } from '../../src/telemetry/decision-tally.ts';
import { createTelemetry } from '../../src/telemetry/telemetry.ts';
import { builtinRoles } from '../../test/support/builtin-roles.ts';
import { chatBody, encodeFrame } from '../frames.ts';
import { keyText } from '../population.ts';
import { memorySource, withoutTokens } from './memory-source.ts';

const KEYS = Number(process.argv[2] ?? 10_000);
const TENANTS = Number(process.argv[3] ?? 100);
const ROUNDS = Number(process.argv[4] ?? 20);
const CHECKS_PER_ROUND = 20_000;

const built = buildRouteTable([]);
if (built.kind === 'error') throw new Error(built.message);
const numbers = Array.from({ length: KEYS }, (_, index) => index);
const live = new CredentialCache({
  builtinRoles,
  source: memorySource(new Map(numbers.map((index) => [hash('sha256', keyText(index), 'hex'), index])), TENANTS),
  ...withoutTokens,
  feed: { polledAtMs: Number.POSITIVE_INFINITY, catchUp: async () => {} },
  maxCredentials: 2 * KEYS,
  maxStalenessMs: 300_000,
  monotonicMs: () => performance.now(),
});
const telemetry = createTelemetry({ level: 'warn' });
const common = { routes: built.table, resolver: live, trustedHops: 0, forwardCredential: false };
const gate = createCheckHandler({ ...common, observer: telemetry.observer });
const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const signing = { kid: 'k'.repeat(43), publicJwk: { kty: 'EC', crv: 'P-256', x: '', y: '' }, signsFromMs: 0 } as const;
const withToken = createCheckHandler({
  ...common,
  observer: telemetry.observer,
  upstreamHeaders: new UpstreamHeaders({
    tokens: new UpstreamTokens({
      keys: { current: () => ({ ...signing, privateKey, publicKey }) },
      issuer: 'https://ai.example.com',
      audience: 'https://models.example.com',
      accessAudience: 'platform',
      ttlSeconds: 900,
      claims: OPTIONAL_CLAIMS,
    }),
    header: 'x-postern-token',
    isPublished: (kid) => kid === signing.kid,
    random: createRandomPool(),
  }),
});
const unrecorded = createCheckHandler({
  ...common,
  observer: checkObserver(new CheckMeter(), new DecisionTally({ now: Date.now }), undefined, {
    offer: () => undefined,
  }),
});

const body = chatBody('llama-3-8b');
/** A stride that shares no factor with the number of keys, so that neighbours in time are not neighbours in memory. */
const STRIDE = 7919;
const credentialOf = (index: number): string => `Bearer ${keyText((index * STRIDE) % KEYS)}`;
const allowed = numbers.map((index) =>
  encodeFrame({ method: 'POST', path: '/v1/chat/completions', authorization: credentialOf(index), body }),
);
/** No key may write models. */
const mixed = allowed.map((frame, index) =>
  index % 10 === 0
    ? encodeFrame({ method: 'POST', path: '/v1/models', authorization: credentialOf(index), body })
    : frame,
);
const anonymous = [encodeFrame({ method: 'POST', path: '/v1/chat/completions' })];

let answered = 0;
for (const frame of allowed) answered = (await gate(frame)).length;
for (const frame of allowed) if (gate(frame) instanceof Promise) throw new Error('a warm check had to wait');
const signedFrom = performance.now();
let withTokenBytes = 0;
for (const frame of allowed) withTokenBytes = (await withToken(frame)).length;
const signedMs = (performance.now() - signedFrom) / allowed.length;
for (const frame of allowed) if (withToken(frame) instanceof Promise) throw new Error('a kept token had to be signed');
console.log(`${KEYS} keys, ${TENANTS} tenants; request ${allowed[0]?.length} bytes, answer ${answered} bytes`);
console.log(
  `token: answer ${withTokenBytes} bytes, first check ${(1000 * signedMs).toFixed(0)} microseconds with its signature`,
);

/** One second of the gate under load: how often a writer takes what was recorded. */
const CHECKS_PER_TAKE = 10_000;

function costOf(check: CheckHandler, frames: readonly Buffer[], from: number): number {
  const began = process.cpuUsage();
  for (let i = 0; i < CHECKS_PER_ROUND; i++) {
    const frame = frames[(from + i) % frames.length];
    if (frame !== undefined) check(frame);
    if (check !== unrecorded && i % CHECKS_PER_TAKE === 0) JSON.stringify(telemetry.recent.take());
  }
  const { user, system } = process.cpuUsage(began);
  return (user + system) / CHECKS_PER_ROUND;
}

const subjects = [
  { name: 'all allowed', check: gate, frames: allowed },
  { name: 'all allowed, token for the upstream', check: withToken, frames: allowed },
  { name: '1 in 10 denied', check: gate, frames: mixed },
  { name: 'no credential', check: gate, frames: anonymous },
  { name: 'all allowed, not recorded', check: unrecorded, frames: allowed },
  { name: '1 in 10 denied, not recorded', check: unrecorded, frames: mixed },
].map((subject) => ({ ...subject, costs: [] as number[] }));
for (const { check, frames } of subjects) costOf(check, frames, 0);
for (let round = 0; round < ROUNDS; round++) {
  for (const { check, frames, costs } of subjects) costs.push(costOf(check, frames, round * CHECKS_PER_ROUND));
}

const at = (values: readonly number[], share: number): number =>
  values.toSorted((left, right) => left - right)[Math.floor(share * (values.length - 1))] ?? Number.NaN;
const first = subjects[0]?.costs ?? [];
for (const { name, costs } of subjects) {
  const [best, median, worst] = [0, 0.5, 1].map((share) => at(costs, share).toFixed(2));
  const speed = at(
    costs.map((cost, i) => (first[i] ?? Number.NaN) / cost),
    0.5,
  ).toFixed(3);
  console.log(
    `${name}: microseconds of processor time per check: best ${best}, median ${median}, worst ${worst}; speed ${speed} of the first`,
  );
}
