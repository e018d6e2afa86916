/**
 * The processor time of the difference of a change: 5 policies and 3 roles of a tenant with 1,000 rules and 5,000 users.
 * Two populations: users whose roles repeat, as departments have them, and users who all hold other roles. The target
 * applies to both.
 */

import { compilePolicies, compileTenant } from '../src/decision/compile.ts';
import { differenceInSteps } from '../src/decision/difference/difference.ts';
import type { DifferenceInput, PrincipalGroup } from '../src/decision/difference/model.ts';
import { makeGrant } from '../src/decision/grants.ts';
import type { Snapshot } from '../src/decision/model.ts';
import { withProposal } from '../src/decision/proposed.ts';
import { buildRouteTable } from '../src/decision/routes.ts';
import { makeId, parsePolicyName, parseRoleName, parseTenantId, type RoleName } from '../src/domain/ids.ts';
import type { PolicyRecord, RoleRecord } from '../src/domain/records.ts';
import { createRandom } from './fuzz/random.ts';
import { median, printTable, type Row, writeResult } from './stack.ts';
import { must } from './worst-rules.ts';

const ROLES = 120;
const POLICIES = 880;
const USERS = 5_000;
const KEYS = 5_000;
const CHANGED_POLICIES = 5;
const CHANGED_ROLES = 3;
const RUNS = 5;
const TARGET_MS = 1_000;
const NOW = Date.parse('2026-11-26T09:00:00Z');

const built = buildRouteTable([]);
if (built.kind === 'error') throw new Error(built.message);
const { table } = built;
const TENANT = must(parseTenantId('acme'));
const MANAGEMENT = ['admin:users', 'admin:roles', 'admin:policies', 'admin:keys', 'audit:read', 'usage:read'];

const random = createRandom(27);
const FAMILIES = 'llama gpt claude phi qwen mistral gemma command deepseek falcon whisper embed'.split(' ');
const MODELS = FAMILIES.flatMap((family) =>
  ['3-8b', '3-70b', '4', '4-mini', 'large'].map((size) => `${family}-${size}`),
);
const GLOBS = [...FAMILIES.map((family) => `${family}-*`), '*-mini', '*-70b', 'internal/*'];
const NETWORKS = Array.from({ length: 24 }, (_, i) => `10.${i * 8}.0.0/16`);
const HOURS = ['Mon-Fri 08:00-18:00', 'Mon-Fri 06:00-22:00', 'Sat-Sun 00:00-24:00', 'Mon-Sun 22:00-04:00'];
const SCOPES = [['chat:*'], ['chat:*', 'embeddings:*'], ['*:read'], ['rag:*', 'models:read'], ['agents:*']];

const several = <T>(values: readonly T[], most: number): readonly T[] => [
  ...new Set(Array.from({ length: 1 + random.below(most) }, () => random.pick(values))),
];
const roleNameOf = (i: number): RoleName => must(parseRoleName(`role-${i}`));
const anyRole = (): RoleName => roleNameOf(random.below(ROLES));

function role(i: number): RoleRecord {
  const permissions = [...random.pick(SCOPES), ...random.pick(SCOPES)];
  const models = several([...MODELS, ...GLOBS, ...GLOBS], 4);
  const collections = several(['hr', 'legal', 'sales-*', 'wiki/*', '*-public'], 3);
  return { name: roleNameOf(i), permissions, constraints: random.chance(0.5) ? { models, collections } : {} };
}

function conditionsOf(): PolicyRecord['conditions'] {
  if (random.chance(0.4)) return {};
  const hours = { weekly_hours: { [random.pick(['in', 'not_in'])]: several(HOURS, 2) } };
  const address = { ip_address: { [random.pick(['in', 'not_in'])]: several(NETWORKS, 4) } };
  const chosen = random.chance(0.3) ? { ...hours, ...address } : random.chance(0.5) ? hours : address;
  return random.chance(0.1) ? { ...chosen, timezone: 'America/New_York' } : chosen;
}

function policy(i: number): PolicyRecord {
  const everyone = random.chance(0.02);
  const effect = everyone || random.chance(0.6) ? 'deny' : 'allow';
  const names = several([...MODELS, ...GLOBS, `draft-${i}`], 4).map((name) => `models/${name}`);
  return {
    name: must(parsePolicyName(`policy-${i}`)),
    effect,
    actions: several(['chat:*', 'chat:write', 'embeddings:*', 'models:read', 'rag:query', 'agents:*'], 2),
    resources: !everyone && random.chance(0.05) ? ['*'] : names,
    conditions: conditionsOf(),
    appliesTo: everyone ? 'everyone' : 'roles',
    attachedRoles: everyone ? [] : several(Array.from({ length: 3 }, anyRole), 3),
    enabled: true,
  };
}

/** Users by equal roles, and keys by equal scopes and owner's roles. */
function groupsOf(rolesOf: () => readonly RoleName[]): readonly PrincipalGroup[] {
  const id = (n: number) => Uint8Array.from([0, 0, 0, 0, 0, 0, 0, n >> 16, n >> 8, n]);
  const groups = new Map<string, PrincipalGroup>();
  const add = (key: string, make: () => PrincipalGroup['principal']) => {
    const known = groups.get(key);
    groups.set(key, known === undefined ? { principal: make(), count: 1 } : { ...known, count: known.count + 1 });
  };
  for (let n = 0; n < USERS; n++) {
    const roles = rolesOf();
    const user = makeId('usr', 0, id(n));
    add(`user ${roles.toSorted().join()}`, () => ({
      kind: 'user',
      id: user,
      tenantId: TENANT,
      roles,
      platformAdmin: false,
      sessionId: undefined,
    }));
    for (let key = 0; key < KEYS / USERS; key++) {
      const scopes = random.pick(SCOPES);
      add(`key ${scopes.join()} ${roles.toSorted().join()}`, () => ({
        kind: 'api_key',
        id: makeId('key', 0, id(n)),
        tenantId: TENANT,
        grant: makeGrant(scopes, {}),
        owner: { id: user, roles },
        rateLimitRpm: undefined,
      }));
    }
  }
  return [...groups.values()];
}

function changed(roles: readonly RoleRecord[], policies: readonly PolicyRecord[]) {
  const fresh = policy(POLICIES);
  const everyone = { effect: 'deny', appliesTo: 'everyone', attachedRoles: [], actions: ['chat:*'] } as const;
  const written: readonly PolicyRecord[] = [
    { ...fresh, ...everyone, resources: ['models/llama-*'], conditions: {} },
    ...policies.slice(0, CHANGED_POLICIES - 1).map((old, i) => ({
      ...old,
      resources: i % 2 === 0 ? old.resources : [...old.resources, 'models/phi-*'],
      conditions: i % 2 === 0 ? { weekly_hours: { not_in: ['Mon-Fri 07:00-19:00'] } } : old.conditions,
    })),
  ];
  const rewritten = roles
    .slice(0, CHANGED_ROLES)
    .map((old) => ({ ...old, constraints: { models: ['gpt-*', 'phi-*'] } }));
  return { policies: written, roles: rewritten, globalPolicies: [] };
}

/** The processor time of this thread. */
function processorMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

/** Runs the difference and returns its processor time and the longest of its steps. */
function measure(input: DifferenceInput) {
  const start = processorMs();
  const steps = differenceInSteps(input);
  let longestMs = 0;
  for (;;) {
    const began = processorMs();
    const step = steps.next();
    longestMs = Math.max(longestMs, processorMs() - began);
    if (step.done !== true) continue;
    return { ms: processorMs() - start, longestMs, difference: step.value };
  }
}

export function difference(): Promise<void> {
  const roles = Array.from({ length: ROLES }, (_, i) => role(i));
  const policies = Array.from({ length: POLICIES }, (_, i) => policy(i));
  const settings = { timezone: 'Europe/Berlin' };
  const tenant = compileTenant({ id: TENANT, status: 'active', settings, quotas: {}, roles, policies });
  const before: Snapshot = {
    own: tenant,
    effective: tenant,
    global: compilePolicies([]),
    builtinRoles: table.builtinRoles,
  };
  const after = withProposal(before, changed(roles, policies));
  const departments = Array.from({ length: 60 }, () => several(Array.from({ length: 3 }, anyRole), 3));
  const populations = {
    'users of 60 departments': () => random.pick(departments),
    'users who hold other roles each': () => several(Array.from({ length: 3 }, anyRole), 3),
  };
  const management = MANAGEMENT.map((permission) => ({ permission, self: false }));
  const rows: Row[] = Object.entries(populations).map(([name, rolesOf]) => {
    const groups = groupsOf(rolesOf);
    const input = { before, after, groups, routes: table, management, nowMs: NOW };
    const runs = Array.from({ length: RUNS }, () => measure(input));
    const last = runs[0]?.difference;
    const ms = median(runs.map((run) => run.ms));
    return {
      population: name,
      groups: groups.length,
      'processor ms': Math.round(ms),
      'longest step ms': Number(median(runs.map((run) => run.longestMs)).toFixed(1)),
      boxes: (last?.newlyAllowed.length ?? 0) + (last?.newlyDenied.length ?? 0),
      complete: String(last?.complete),
      target: ms < TARGET_MS ? 'reached' : 'missed',
    };
  });
  printTable(
    `The difference of ${CHANGED_POLICIES} policies and ${CHANGED_ROLES} roles: ${ROLES + POLICIES} rules, ${USERS} users, ${KEYS} keys`,
    rows,
  );
  writeResult('difference', { rows });
  return Promise.resolve();
}
