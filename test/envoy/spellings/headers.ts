/** Spellings of the names of headers that a server might fold into the one that another program set or removed. */

const SEPARATORS = ['-', '_', '.', '--', '__', '-.', '~'];
const EDGES = ['-', '_', '.', '--', '~'];
const GUARDED = [
  'x-tenant-id',
  'x-postern-subject',
  'x-postern-subject-type',
  'x-postern-tenant',
  'x-postern-roles',
  'x-postern-evil',
  'x-http-method-override',
  'x-http-method',
  'x-method-override',
  'x-original-url',
  'x-rewrite-url',
  'authorization',
  'x-api-key',
  'api-key',
  'accept-encoding',
];

/**
 * Each name with each separator throughout, with each at one place, with each before and behind it, and in upper case.
 */
function spellingsOf(name: string): string[] {
  const parts = name.split('-');
  const places = parts.slice(1).map((_, place) => place);
  const one = places.flatMap((place) =>
    SEPARATORS.map((by) => parts.reduce((begun, part, i) => begun + (i - 1 === place ? by : '-') + part)),
  );
  const edges = EDGES.flatMap((by) => [by + name, name + by, by + name.replaceAll('-', by)]);
  return [...SEPARATORS.map((by) => parts.join(by)), ...one, ...edges, name.toUpperCase().replaceAll('-', '.')];
}

/** Left out: the check reads these, and Envoy removes the last one where it reads usage. */
const TRUE_NAMES = new Set(['authorization', 'x-api-key', 'api-key', 'x-tenant-id', 'accept-encoding']);

export const HEADER_SPELLINGS = [...new Set(GUARDED.flatMap(spellingsOf))].filter(
  (name) => !TRUE_NAMES.has(name.toLowerCase()),
);

/** The name as the most lenient server folds it. */
export function fold(name: string): string {
  return name
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((part) => part !== '')
    .join('-');
}
