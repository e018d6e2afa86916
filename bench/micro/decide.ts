/**
 * Nanoseconds of processor time per decision, of its parts and of the whole: five policies in the tenant, a chat body
 * of 1 KB. Run: node bench/micro/decide.ts
 */

import { readJsonBody } from '../../src/decision/body.ts';
import { compileGrant, compilePolicies, compileTenant } from '../../src/decision/compile.ts';
import { decide } from '../../src/decision/decide.ts';
import type { CheckInput, Identity, Snapshot } from '../../src/decision/model.ts';
import { buildRouteTable, matchRoute } from '../../src/decision/routes.ts';
import { makeId, parsePolicyName, parseTenantId } from '../../src/domain/ids.ts';
import type { PolicyRecord } from '../../src/domain/records.ts';
import { builtinRoles } from '../../test/support/builtin-roles.ts';

const NOW = Date.parse('2026-11-18T11:00:00Z');

function policy(name: string, parts: Partial<PolicyRecord>): PolicyRecord {
  const parsed = parsePolicyName(name);
  if (parsed === undefined) throw new Error(`bad policy name ${name}`);
  return {
    name: parsed,
    effect: 'deny',
    actions: ['*'],
    resources: ['*'],
    conditions: {},
    appliesTo: 'everyone',
    attachedRoles: [],
    enabled: true,
    ...parts,
  };
}

const POLICIES = [
  policy('banned-nets', { conditions: { ip_address: { in: ['198.51.100.0/24', '2001:db8:bad::/48'] } } }),
  policy('nights', { actions: ['chat:*'], conditions: { time: { between: ['22:00', '06:00'] } } }),
  policy('weekends', {
    actions: ['chat:*'],
    conditions: { day_of_week: { not_in: ['Mon', 'Tue', 'Wed', 'Thu', 'Fri'] } },
  }),
  policy('secret-models', { actions: ['chat:*'], resources: ['models/secret-*'] }),
  policy('agents', { actions: ['agents:*'], conditions: { ip_address: { not_in: ['10.0.0.0/8'] } } }),
];

/** Policies of other actions than the request's: what the index is for. */
function manyPolicies(count: number): PolicyRecord[] {
  return Array.from({ length: count }, (_, i) => policy(`other-${i}`, { actions: [`other${i % 500}:read`] }));
}

function snapshotWith(policies: readonly PolicyRecord[]): Snapshot {
  const id = parseTenantId('acme');
  if (id === undefined) throw new Error('bad tenant');
  const settings = { default_model: 'llama-3-8b', max_tokens_per_request: 4096, timezone: 'Europe/Berlin' };
  const tenant = compileTenant({ id, status: 'active', settings, quotas: {}, roles: [], policies });
  return { own: tenant, effective: tenant, global: compilePolicies([]), builtinRoles };
}

function chatBody(size: number): Uint8Array {
  const body = {
    model: 'llama-3-70b',
    messages: [{ role: 'user', content: '' }],
    max_tokens: 512,
    temperature: 0.7,
    stream: true,
  };
  const text = JSON.stringify({
    ...body,
    messages: [{ role: 'user', content: 'x'.repeat(size - JSON.stringify(body).length) }],
  });
  return Buffer.from(text);
}

const snapshot = snapshotWith(POLICIES);
const identity: Identity = {
  kind: 'proved',
  principal: {
    kind: 'api_key',
    id: makeId('key', 0, new Uint8Array(10)),
    tenantId:
      snapshot.own?.id ??
      (() => {
        throw new Error('no tenant');
      })(),
    grant: compileGrant(['chat:write', 'models:read'], { models: ['llama-*'] }),
    owner: undefined,
    rateLimitRpm: undefined,
  },
};
const chat: CheckInput = {
  method: 'POST',
  path: '/v1/chat/completions',
  authorization: undefined,
  tenant: undefined,
  upgrade: undefined,
  contentType: 'application/json',
  contentEncoding: undefined,
  body: chatBody(1024),
  bodyPartial: false,
  bodyMissing: false,
  clientAddress: '203.0.113.7',
};
const listing: CheckInput = {
  ...chat,
  method: 'GET',
  path: '/v1/models/meta-llama/Llama-3?x=1',
  contentType: undefined,
  body: new Uint8Array(),
};

const built = buildRouteTable([]);
if (built.kind === 'error') throw new Error(built.message);
const { table } = built;
const crowded = snapshotWith([...POLICIES, ...manyPolicies(20_000)]);

function measure(name: string, run: () => unknown): void {
  const ROUNDS = 5;
  let best = Number.POSITIVE_INFINITY;
  let calls = 20_000;
  for (let round = 0; round <= ROUNDS; round++) {
    const start = process.cpuUsage();
    for (let i = 0; i < calls; i++) if (run() === undefined) throw new Error(`${name} gave nothing`);
    const spent = process.cpuUsage(start);
    const nanoseconds = ((spent.user + spent.system) * 1e3) / calls;
    if (round === 0) calls = Math.max(1000, Math.round(2e8 / nanoseconds));
    else best = Math.min(best, nanoseconds);
  }
  console.log(`${name.padEnd(48)} ${best.toFixed(0).padStart(7)} ns`);
}

const match = matchRoute(table, chat);
const expected = decide(match, chat, identity, snapshot, NOW);
if (expected.kind !== 'allow') throw new Error('the request measured must be allowed');

measure('match, literal path', () => matchRoute(table, chat));
measure('match, path with variables', () => matchRoute(table, listing));
measure('read a body of 1 KB', () => readJsonBody(chat.body));
measure('decide, 5 policies, body of 1 KB', () => decide(match, chat, identity, snapshot, NOW));
measure('match and decide', () => decide(matchRoute(table, chat), chat, identity, snapshot, NOW));
measure('match and decide, GET, no body', () => decide(matchRoute(table, listing), listing, identity, snapshot, NOW));
measure('decide, 20,005 policies, 5 of these actions', () => decide(match, chat, identity, crowded, NOW));
const outside: CheckInput = { ...chat, clientAddress: '198.51.100.9' };
measure('decide, denied by policy', () => decide(match, outside, identity, snapshot, NOW));
