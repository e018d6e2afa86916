/**
 * Candidates for the most expensive body of a route, as genes that can be changed at random. A body is a sample that
 * passes the route's schema, with one place filled up to the route's limit.
 */

import type { Endpoint } from '../src/http/endpoint.ts';

export interface Gene {
  /** A place in the sample: an index into the route's places. */
  readonly place: number;
  readonly filler: keyof typeof FILLERS;
  readonly unit: number;
  /** Part of the limit that the filler takes. */
  readonly share: number;
  /** The text after the filler: an end that fails late. */
  readonly tail: number;
}

type Path = readonly (string | number)[];

export interface Places {
  readonly sample: unknown;
  readonly paths: readonly Path[];
}

/**
 * Texts as they stand in JSON, one of which is repeated. Some escape, some take three bytes, some match patterns
 * slowly.
 */
const TEXTS = [
  'a',
  '*a',
  'a*',
  'a-',
  'a/',
  '/',
  '~',
  '.a',
  '@',
  'a@',
  ' ',
  '0',
  '-1',
  '\\u0000',
  '\\ud800',
  '\\u0061',
  '\\n',
  '\\"',
  'é',
  '€',
  '😀',
  'ﷺ',
  '\u0301',
];
const VALUES = [
  '[]',
  '{}',
  '""',
  '0',
  '-1.5e-300',
  'null',
  'true',
  '"a"',
  '"*:*"',
  '"chat:write"',
  '"models/*a*a*a*a*a*a*a*a"',
  '"models/a"',
  '"10.0.0.0/8"',
  '"2001:db8::/32"',
  '"monday"',
  '"\\u0000"',
  '"2026-01-01T00:00:00Z"',
  '{"a":0}',
  '{"name":"a"}',
  '[[[[[[[[0]]]]]]]]',
  '"developer"',
];
/** After the last of many units. */
const TAILS = ['', '7', '"\\u0000"', '{"a":0,"a":0}', '[[', '"\\ud800"', 'x'];
const NAMES = ['m', 'model', 'a/b~c', '\\u0061', '__proto__', 'é'];

/** A text of repeated units, with at most `bytes` bytes. */
const FILLERS = {
  text: (gene: Gene, bytes: number) =>
    `"${repeated(pick(TEXTS, gene.unit), bytes - 2)}${['', '!', '\\u0000'][gene.tail % 3]}"`,
  list: (gene: Gene, bytes: number) => `[${withTail(repeated(`${pick(VALUES, gene.unit)},`, bytes - 16), gene)}]`,
  samples: (gene: Gene, bytes: number, sample: string) => `[${withTail(repeated(`${sample},`, bytes - 16), gene)}]`,
  thousand: (gene: Gene, bytes: number, sample: string) =>
    `[${withTail(repeated(`${sample},`, Math.min(bytes, 999 * (sample.length + 1))), gene)}]`,
  longItems: (gene: Gene, bytes: number) => {
    const item = `"${gene.unit % 2 === 0 ? 'models/' : ''}${repeated(pick(TEXTS, gene.unit), [63, 240, 480][gene.tail % 3] ?? 63)}",`;
    return `[${withTail(repeated(item, Math.min(bytes - 16, 999 * item.length)), gene)}]`;
  },
  members: (gene: Gene, bytes: number) => {
    const name = pick(NAMES, gene.unit);
    const length = Buffer.byteLength(name) + 10;
    const members = Array.from({ length: Math.max(1, Math.floor(bytes / length)) }, (_, i) => `"${name}${i}":0`);
    return `{${members.join()}${gene.tail % 2 === 0 ? '' : `,${members[0]}`}}`;
  },
  objects: (gene: Gene, bytes: number) => {
    const members = Array.from(
      { length: 1 + (gene.tail % 7) * 10 },
      (_, i) => `"${pick(NAMES, gene.unit)}${i}":0`,
    ).join();
    return `[${repeated(`{${members}},`, bytes - 16)}0]`;
  },
  nested: (gene: Gene, bytes: number) => {
    const depth = 1 + (gene.unit % 31);
    const [open, close] = gene.tail % 2 === 0 ? ['[', ']'] : ['{"a":', '}'];
    const one = `${open.repeat(depth)}0${close.repeat(depth)},`;
    return `[${repeated(one, bytes - 16)}0]`;
  },
} as const satisfies Record<string, (gene: Gene, bytes: number, sample: string) => string>;

const FILLER_NAMES = Object.keys(FILLERS).filter((name): name is keyof typeof FILLERS => name in FILLERS);

function pick<T>(list: readonly T[], index: number): T {
  const one = list[index % list.length];
  if (one === undefined) throw new Error('an empty list');
  return one;
}

function repeated(unit: string, bytes: number): string {
  return unit.repeat(Math.max(0, Math.floor(bytes / Buffer.byteLength(unit))));
}

function withTail(list: string, gene: Gene): string {
  const tail = pick(TAILS, gene.tail);
  return tail === '' ? list.slice(0, -1) : `${list}${tail}`;
}

export function randomGene(places: Places, random: () => number): Gene {
  const below = (n: number): number => Math.floor(random() * n);
  return {
    place: below(places.paths.length),
    filler: pick(FILLER_NAMES, below(FILLER_NAMES.length)),
    unit: below(64),
    share: random() < 0.5 ? 1 : random(),
    tail: below(42),
  };
}

/** Returns the gene with one or two of its parts replaced at random. */
export function mutated(gene: Gene, places: Places, random: () => number): Gene {
  const other = randomGene(places, random);
  const keep = (): boolean => random() < 0.65;
  return {
    place: keep() ? gene.place : other.place,
    filler: keep() ? gene.filler : other.filler,
    unit: keep() ? gene.unit : other.unit,
    share: keep() ? gene.share : other.share,
    tail: keep() ? gene.tail : other.tail,
  };
}

const HOLE = '@@hole@@';

/** The text of a body, at most `maxBytes` long. */
export function bodyOf(gene: Gene, { sample, paths }: Places, maxBytes: number): string {
  const path = pick(paths, gene.place);
  const around = JSON.stringify(replaced(sample, path, HOLE));
  const taken = at(sample, path);
  const item = JSON.stringify(Array.isArray(taken) ? taken[0] : taken) ?? '0';
  const bytes = Math.floor((maxBytes - Buffer.byteLength(around)) * gene.share);
  const filler: string = FILLERS[gene.filler](gene, bytes, item);
  const body = around.replace(`"${HOLE}"`, () => filler);
  return Buffer.byteLength(body) <= maxBytes ? body : around;
}

function at(value: unknown, path: Path): unknown {
  return path.reduce<unknown>(
    (inside, step) => (typeof inside === 'object' && inside !== null ? Reflect.get(inside, step) : undefined),
    value,
  );
}

function replaced(value: unknown, [step, ...rest]: Path, by: unknown): unknown {
  if (step === undefined) return by;
  if (Array.isArray(value)) return value.map((item, i) => (i === step ? replaced(item, rest, by) : item));
  return { ...Object(value), [step]: replaced(at(value, [step]), rest, by) };
}

/** Every value of the sample is a place, and so is a member that the schema does not know. */
export function placesOf(route: Endpoint): Places {
  const sample = sampleOf(route.bodySchema);
  const paths: Path[] = [];
  const visit = (value: unknown, path: Path): void => {
    paths.push(path);
    if (typeof value !== 'object' || value === null) return;
    for (const [name, inside] of Object.entries(value))
      visit(inside, [...path, Array.isArray(value) ? Number(name) : name]);
  };
  visit(sample, []);
  paths.push(['no_such_member']);
  return { sample, paths };
}

const CANDIDATES = [
  'a',
  'chat:write',
  'models/a',
  'a@b.test',
  new Date().toISOString(),
  '2026-01',
  'a lake of tin whistles',
  'Europe/Berlin',
  'POST',
  '/v1/chat/completions',
];

/** Returns a value that passes the keywords of a schema. Conditions have no schema of their own and are fixed. */
function sampleOf(schema: object): unknown {
  const keywords: Readonly<Record<string, unknown>> = { ...schema, ...Object(Reflect.get(schema, 'asksAlso')) };
  const type = Array.isArray(keywords['type']) ? keywords['type'][0] : keywords['type'];
  if (Array.isArray(keywords['enum'])) return keywords['enum'][0];
  switch (type) {
    case 'object': {
      const members = Object.entries(Object(keywords['properties'])).map(([name, inside]) => [
        name,
        sampleMember(name, Object(inside)),
      ]);
      return Object.fromEntries(members.filter(([name]) => !EXCLUDED.has(String(name))));
    }
    case 'array':
      return [sampleOf(Object(keywords['items']))];
    case 'integer':
      return Math.max(1, Number(keywords['minimum'] ?? 1));
    case 'boolean':
      return false;
    default: {
      const fits = (text: string): boolean =>
        new RegExp(String(keywords['pattern'] ?? ''), 'u').test(text) &&
        text.length >= Number(keywords['minLength'] ?? 0) &&
        text.length <= Number(keywords['maxLength'] ?? Number.POSITIVE_INFINITY) &&
        (keywords['format'] !== 'date-time' || text.endsWith('Z'));
      return CANDIDATES.find(fits) ?? null;
    }
  }
}

/** One of two members that exclude each other. */
const EXCLUDED = new Set(['subject', 'expires_in_days', 'username', 'auth_type', 'key_id', 'user_id']);

function sampleMember(name: string, schema: object): unknown {
  if (name === 'conditions') {
    return {
      ip_address: { in: ['10.0.0.0/8'], not_in: ['192.0.2.1'] },
      time: { between: ['08:00', '18:00'] },
      day_of_week: { in: ['monday'] },
      timezone: 'Europe/Berlin',
    };
  }
  if (name === 'global') return false;
  if (name === 'path') return '/v1/chat/completions';
  if (name === 'method') return 'POST';
  if (name === 'body') return '{"model":"a"}';
  if (name === 'timezone') return 'Europe/Berlin';
  return sampleOf(schema);
}
