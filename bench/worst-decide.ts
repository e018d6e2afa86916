/**
 * Searches for the worst decision that a tenant can build within the bounds, and for the worst body to read. Each
 * candidate is a set of numbers that rules and a request are made from; the search draws candidates at random and then
 * changes the worst ones. Everything passes the validators of the API first. Figures are processor time, the median of
 * several runs, each with names not seen before. BENCH_CANDIDATES sets how many are tried in each family.
 */

import { readJsonBody } from '../src/decision/body.ts';
import { compileGrant, compilePolicies, compileTenant } from '../src/decision/compile.ts';
import { decide } from '../src/decision/decide.ts';
import type { CheckInput, Identity, Snapshot } from '../src/decision/model.ts';
import { buildRouteTable, matchRoute } from '../src/decision/routes.ts';
import { makeId, parseTenantId } from '../src/domain/ids.ts';
import { builtinRoles } from '../test/support/builtin-roles.ts';
import { median, printTable, type Row, writeResult } from './stack.ts';
import { BODY_FAMILIES } from './worst-read.ts';
import { change, draw, FAMILIES, type Genes, must, nameOf, type Rules, random, rolesUpTo } from './worst-rules.ts';

const CANDIDATES = Number(process.env['BENCH_CANDIDATES'] ?? 60);
/** The share of the candidates of a family that is drawn before the worst ones are changed. */
const DRAWN = 0.5;
const RUNS = 5;
/** Runs of the worst candidate of each family at the end. */
const FINAL_RUNS = 15;
const BODY_BYTES = 1024 * 1024;
const NOW = Date.parse('2026-11-18T11:07:00Z');

const TENANT = must(parseTenantId('acme'));

const built = buildRouteTable([]);
if (built.kind === 'error') throw new Error(built.message);
const { table } = built;

function requestOf(genes: Genes, run: number): CheckInput {
  const collections = Array.from({ length: genes.collections }, (_, i) => nameOf(genes, i, run));
  return {
    method: 'POST',
    path: '/v1/rag/query',
    authorization: undefined,
    tenant: undefined,
    upgrade: undefined,
    contentType: 'application/json',
    contentEncoding: undefined,
    body: Buffer.from(JSON.stringify({ collections })),
    bodyPartial: false,
    bodyMissing: false,
    clientAddress: '203.0.113.7',
  };
}

function milliseconds(run: () => unknown): number {
  const start = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1000;
}

let asked = 0;
interface Measured {
  readonly ms: number;
  readonly outcome: string;
  readonly policies: number;
}

function measure(rules: Rules, genes: Genes, runs: number): Measured {
  const { keyNames: names, roles = [], policies = [], held } = rules;
  const tenant = compileTenant({ id: TENANT, status: 'active', settings: {}, quotas: {}, roles, policies });
  const snapshot: Snapshot = { own: tenant, effective: tenant, global: compilePolicies([]), builtinRoles };
  const user = makeId('usr', 0, new Uint8Array(10));
  const identity: Identity = {
    kind: 'proved',
    principal:
      names === undefined
        ? {
            kind: 'user',
            id: user,
            tenantId: TENANT,
            roles: rolesUpTo(held),
            platformAdmin: false,
            sessionId: undefined,
          }
        : {
            kind: 'api_key',
            id: makeId('key', 0, new Uint8Array(10)),
            tenantId: TENANT,
            grant: compileGrant(['*'], { collections: names }),
            owner: held === 0 ? undefined : { id: user, roles: rolesUpTo(held) },
            rateLimitRpm: undefined,
          },
  };
  const spent: number[] = [];
  let outcome = '';
  for (let run = 0; run < runs; run++) {
    const input = requestOf(genes, asked++);
    const match = matchRoute(table, input);
    spent.push(
      milliseconds(() => {
        const decision = decide(match, input, identity, snapshot, NOW + run);
        outcome = decision.kind === 'deny' ? decision.code : decision.kind;
      }),
    );
  }
  return { ms: median(spent), outcome, policies: policies.length };
}

interface Candidate {
  readonly genes: Genes;
  readonly ms: number;
}

function search(rulesOf: (genes: Genes) => Rules): Candidate {
  let best: Candidate[] = [];
  for (let tried = 0; tried < CANDIDATES; tried++) {
    const parent = best[Math.floor(random() * best.length)];
    const genes = parent === undefined || tried < DRAWN * CANDIDATES ? draw() : change(parent.genes);
    best = [...best, { genes, ms: measure(rulesOf(genes), genes, RUNS).ms }]
      .toSorted((a, b) => b.ms - a.ms)
      .slice(0, 5);
  }
  const [worst] = best;
  if (worst === undefined) throw new Error('nothing was tried');
  return worst;
}

export async function worstDecide(): Promise<void> {
  const decisions: Row[] = [];
  for (const [family, rulesOf] of Object.entries(FAMILIES)) {
    const { genes } = search(rulesOf);
    const { ms, outcome, policies } = measure(rulesOf(genes), genes, FINAL_RUNS);
    const { collections, name, stars, piece, run, entries } = genes;
    decisions.push({ family, ms: round(ms), outcome, policies, collections, name, stars, piece, run, entries });
  }
  printTable(
    `The worst decide(): ${CANDIDATES} candidates in each family, milliseconds of processor time, medians`,
    decisions,
  );
  const bodies: Row[] = Object.entries(BODY_FAMILIES).map(([family, make]) => {
    const bytes = Buffer.from(make(BODY_BYTES, random));
    let read = '';
    const times = Array.from({ length: FINAL_RUNS }, () => milliseconds(() => (read = readJsonBody(bytes).kind)));
    return { family, ms: round(median(times)), bytes: bytes.length, read };
  });
  printTable('The worst body of 1 MiB: milliseconds of processor time, medians', bodies);
  const worst = (rows: readonly Row[]) => Math.max(...rows.map((row) => Number(row['ms'])));
  console.log(`\nworst decide(): ${worst(decisions)} ms; worst body: ${worst(bodies)} ms`);
  writeResult('worst-decide', { decisions, bodies });
}

function round(ms: number): number {
  return Math.round(ms * 100) / 100;
}
