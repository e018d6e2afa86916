/**
 * The numbers that the search for the worst decision changes, and the rules and names that are made from them, all
 * within the bounds.
 */

import {
  MAX_COLLECTIONS,
  MAX_CONSTRAINT_NAMES,
  MAX_ENTRIES,
  MAX_GLOB_LENGTH,
  MAX_RESOURCE_NAME,
  MAX_WEEKLY_WINDOWS,
} from '../src/decision/limits.ts';
import {
  parseConditions,
  validateConstraints,
  validateKeyConstraints,
  validatePatterns,
  validateResourcePatterns,
} from '../src/decision/validate.ts';
import { parsePolicyName, parseRoleName } from '../src/domain/ids.ts';
import type { PolicyRecord, RoleRecord } from '../src/domain/records.ts';

/** The maximum size of the roles and policies of one tenant. */
const RULES_BYTES = 1024 * 1024;
const ZONES = Intl.supportedValuesOf('timeZone');

/** A seeded generator, so that a run can be repeated (xorshift32). */
let state = Number(process.env['BENCH_SEED'] ?? 1) | 1;
export function random(): number {
  state ^= state << 13;
  state ^= state >>> 17;
  state ^= state << 5;
  return (state >>> 0) / 0x1_0000_0000;
}
const upTo = (most: number): number => 1 + Math.floor(random() * most);

/** The genes of a candidate. Each number is drawn from 1 to its maximum. */
const GENES = {
  /** The period of the names: a run of the letter a, then a b, or two letters in turn. */
  run: 80,
  /** Characters of a piece, as a share of the period or beyond it. */
  piece: 120,
  /** Pieces of a glob. */
  stars: 8,
  /** Whether a piece is changed, and where. */
  changed: 4,
  /** Length of the names. */
  name: MAX_RESOURCE_NAME,
  collections: MAX_COLLECTIONS,
  /** Entries in each list of a policy or role. */
  entries: MAX_ENTRIES,
  /** Roles that the user has, and that a policy is attached to. */
  roles: 100,
  /** How many entries of a condition. */
  operands: MAX_ENTRIES,
} as const;
type Gene = keyof typeof GENES;
export type Genes = Readonly<Record<Gene, number>>;

export function draw(): Genes {
  // Half of the draws are at the bound: that is where the worst is most often.
  const one = (most: number) => (random() < 0.5 ? most : upTo(most));
  const { run, piece, stars, changed, name, collections, entries, roles, operands } = GENES;
  return {
    run: upTo(random() < 0.5 ? 4 : run),
    piece: upTo(random() < 0.5 ? 8 : piece),
    stars: one(stars),
    changed: upTo(changed),
    name: one(name),
    collections: one(collections),
    entries: random() < 0.3 ? 1 : one(entries),
    roles: one(roles),
    operands: random() < 0.3 ? 1 : one(operands),
  };
}

const NAMES_OF_GENES: readonly Gene[] = [
  'run',
  'piece',
  'stars',
  'changed',
  'name',
  'collections',
  'entries',
  'roles',
  'operands',
];

export function change(genes: Genes): Genes {
  const gene = NAMES_OF_GENES[Math.floor(random() * NAMES_OF_GENES.length)] ?? 'run';
  const most = GENES[gene];
  const near = Math.round(genes[gene] * (0.5 + random()));
  return { ...genes, [gene]: random() < 0.5 ? upTo(most) : Math.min(most, Math.max(1, near)) };
}

/** The text that names and pieces are cut from. */
function periodic(genes: Genes, length: number): string {
  const period = genes.changed === 4 ? 'ab' : `${'a'.repeat(genes.run)}b`;
  return period.repeat(Math.ceil(length / period.length) + 1).slice(0, length);
}

/** A name of the request. Its first character is the last piece of many globs, which comes too early for them. */
export function nameOf(genes: Genes, i: number, run: number): string {
  const end = `${i}-${run}`;
  return `!${periodic(genes, Math.max(0, genes.name - 1 - end.length))}${end}`;
}

/** Globs whose pieces occur, or nearly occur, all over the names, and whose last does not, or only at the beginning. */
function globOf(genes: Genes, i: number): string {
  const end = genes.changed % 2 === 1 ? '*!*' : `*${i.toString(36)}!*`;
  const text = periodic(genes, genes.piece + genes.run);
  const at = genes.changed % 2 === 0 ? genes.run : 0;
  const piece = text.slice(at, at + genes.piece);
  let glob = '';
  for (let star = 1; star < genes.stars - 1 && glob.length + 1 + piece.length + end.length <= MAX_GLOB_LENGTH; star++) {
    // A piece of its own now and then, so that no two globs are the same search.
    const cut = 1 + ((i * 7 + star) % piece.length);
    glob += `*${(i + star) % 3 === 0 ? piece.slice(0, cut) : piece}`;
  }
  return `${glob}${end}`;
}

export function must<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('a name of the benchmark is malformed');
  return value;
}

const roleNameOf = (i: number) => must(parseRoleName(`r${i}`));
export const rolesUpTo = (count: number) => Array.from({ length: count }, (_, i) => roleNameOf(i));
const bytesOf = (...parts: readonly unknown[]): number =>
  parts.reduce<number>((sum, part) => sum + JSON.stringify(part).length, 0);

/** As many as the bound on a tenant's rules allows. */
function filling<T>(make: (i: number) => T, sizeOf: (made: T) => number, bytes = RULES_BYTES): T[] {
  const all: T[] = [];
  for (let left = bytes; ; ) {
    const made = make(all.length);
    left -= sizeOf(made);
    if (left < 0 || all.length >= 60_000) return all;
    all.push(made);
  }
}

function checkedPolicy(
  i: number,
  parts: Partial<Omit<PolicyRecord, 'conditions'>> & { readonly conditions?: unknown },
): PolicyRecord {
  const { actions = ['*'], resources = ['*'] } = parts;
  const conditions = parseConditions(parts.conditions);
  const errors = [...validatePatterns(actions, '/actions'), ...validateResourcePatterns(resources, '/resources')];
  if (conditions.kind === 'errors' || errors.length > 0)
    throw new Error(`a policy is beyond the bounds: ${JSON.stringify(errors)}`);
  return {
    name: must(parsePolicyName(`p${i}`)),
    effect: 'deny',
    appliesTo: 'everyone',
    attachedRoles: [],
    enabled: true,
    ...parts,
    actions,
    resources,
    conditions: conditions.value,
  };
}

const policySize = ({ actions, resources, conditions }: PolicyRecord) => bytesOf(actions, resources, conditions);

export interface Rules {
  readonly roles?: readonly RoleRecord[];
  readonly policies?: readonly PolicyRecord[];
  readonly keyNames?: readonly string[];
  /** Roles of the user, or of the key's owner. */
  readonly held: number;
}

const globsOf = (genes: Genes, count: number, from: number) =>
  Array.from({ length: count }, (_, i) => globOf(genes, from + i));

/** Each makes the rules that it finds worst out of the same numbers. */
export const FAMILIES: Readonly<Record<string, (genes: Genes) => Rules>> = {
  'key with 200 globs': (genes) => ({ held: 0, keyNames: keyNames(genes) }),
  'denies with globs': (genes) => ({ held: 1, policies: policiesOf(genes, 'deny', genes.entries) }),
  'allows with globs': (genes) => ({ held: 1, policies: policiesOf(genes, 'allow', genes.entries) }),
  'roles with globs': (genes) => ({ held: genes.roles, roles: rolesOf(genes) }),
  'key, owner and denies': (genes) => ({
    held: genes.roles,
    keyNames: keyNames(genes),
    roles: rolesOf(genes).slice(0, 8),
    policies: policiesOf(genes, 'deny', genes.entries, RULES_BYTES / 2),
  }),
  'denies with names': (genes) => ({
    held: 1,
    policies: filling(
      (i) =>
        checkedPolicy(i, {
          resources: Array.from(
            { length: genes.entries },
            (_, n) => `collections/${i}-${n}${genes.changed > 2 ? '*' : ''}`,
          ),
        }),
      policySize,
    ),
  }),
  'denies with addresses': (genes) => conditional(genes, (i, n) => ({ ip_address: { in: addresses(i, n) } })),
  'denies with hours and zones': (genes) =>
    conditional(genes, (i) => ({ time: { between: ['03:00', '03:01'] }, timezone: zoneText(i) })),
  'denies with days': (genes) => conditional(genes, () => ({ day_of_week: { in: ['Sun'] } })),
  'denies with weekly hours': (genes) =>
    conditional(genes, (i, n) => ({ weekly_hours: { in: windows(i, n) }, timezone: zoneText(i) })),
  'denies of roles': (genes) => ({
    held: genes.roles,
    policies: filling(
      (i) =>
        checkedPolicy(i, {
          resources: ['agents/x'],
          appliesTo: 'roles',
          attachedRoles: Array.from({ length: genes.roles }, (_, n) => roleNameOf(1000 + i + n)),
        }),
      policySize,
      RULES_BYTES / 8,
    ),
  }),
};

function keyNames(genes: Genes): readonly string[] {
  const globs = globsOf({ ...genes, piece: Math.min(genes.piece, 30) }, MAX_CONSTRAINT_NAMES - 1, 0);
  const names = [...globs, '*-*'];
  const errors = validateKeyConstraints({ collections: names });
  if (errors.length > 0) throw new Error(`a key is beyond the bounds: ${JSON.stringify(errors)}`);
  return names;
}

function policiesOf(genes: Genes, effect: 'allow' | 'deny', entries: number, bytes = RULES_BYTES): PolicyRecord[] {
  return filling(
    (i) => {
      const globs = globsOf(genes, entries, i * entries).map((glob) => `collections/${glob}`);
      const resources = effect === 'deny' ? globs : [...globs.slice(1), 'collections/*-*'];
      return checkedPolicy(i, { effect, resources });
    },
    policySize,
    bytes,
  );
}

function rolesOf(genes: Genes): RoleRecord[] {
  const count = Math.min(genes.entries, MAX_CONSTRAINT_NAMES);
  return filling(
    (i) => {
      // Each covers all names except the last.
      const constraints = { collections: [...globsOf(genes, count - 1, i * count), '*-*'] };
      if (validateConstraints(constraints).length > 0) throw new Error('a role is beyond the bounds');
      return { name: roleNameOf(i), permissions: ['rag:*'], constraints };
    },
    ({ permissions, constraints }) => bytesOf(permissions, constraints),
  );
}

function conditional(genes: Genes, conditionsOf: (i: number, operands: number) => unknown): Rules {
  return {
    held: 1,
    policies: filling((i) => checkedPolicy(i, { conditions: conditionsOf(i, genes.operands) }), policySize),
  };
}

function addresses(i: number, count: number): readonly string[] {
  return Array.from({ length: count }, (_, n) => (n % 2 === 0 ? `1.${i % 250}.${n % 250}.9` : `1::${(i + n) % 9999}`));
}

/**
 * Windows of a minute, apart from each other and away from most instants, so that nothing merges and the search is the
 * longest.
 */
function windows(i: number, count: number): readonly string[] {
  const twoDigits = (value: number) => String(value).padStart(2, '0');
  return Array.from({ length: Math.min(count, MAX_WEEKLY_WINDOWS) }, (_, n) => {
    const [hour, minute] = [twoDigits(n % 24), 2 * Math.floor(n / 24) + (i % 2) * 10];
    return `Mon-Sun ${hour}:${twoDigits(minute)}-${hour}:${twoDigits(minute + 1)}`;
  });
}

/** Zones may be written in any case, so there are more texts than zones. */
function zoneText(i: number): string {
  const zone = ZONES[i % ZONES.length] ?? 'UTC';
  const turn = Math.floor(i / ZONES.length);
  return [...zone].map((one, at) => (((turn >> (at % 16)) & 1) === 1 ? one.toUpperCase() : one.toLowerCase())).join('');
}
