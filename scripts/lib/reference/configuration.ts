/** docs/configuration.md: every setting, from the table that the server reads its configuration by. */

import { type AnyKey, envName, KEYS } from '../../../src/config/keys.ts';
import type { Parsed, Raw } from '../../../src/config/parsers.ts';
import { tableCell } from './markdown.ts';

type Key = AnyKey & { readonly parse: (raw: Raw) => Parsed<unknown> };

/** Settings without a default, and those whose default shows little. Each must be an allowed value. */
const EXAMPLES: Readonly<Record<string, string>> = {
  'http.trusted-proxies': '["10.0.3.0/24"]',
  'http.origins': '["https://ai.example.com"]',
  'grpc.tls.cert-file': '/etc/postern/tls/tls.crt',
  'grpc.tls.key-file': '/etc/postern/tls/tls.key',
  'grpc.tls.client-ca-file': '/etc/postern/tls/ca.crt',
  'database.url': 'postgresql://postern@db.example.com:5432/postern?sslmode=verify-full',
  issuer: 'https://postern.example.com',
  'secret-key': 'a-random-text-of-at-least-32-characters',
  'secret-key-previous': 'the-random-text-that-was-the-secret-key',
  'bootstrap.password': 'four words that are hard to guess',
  routes:
    '[{"method":"POST","path":"/v1/translations","permission":"translations:write","model":"body","tokens":true}]',
  'usage.events-tenants': '["acme"]',
  'log.decisions.file': '/var/log/postern/decisions.ndjson',
  'otlp.endpoint': 'http://otel-collector:4318',
  'otlp.headers': 'authorization=Bearer%20TOKEN',
  'ldap.url': 'ldaps://ldap.example.com',
  'ldap.ca-file': '/etc/postern/ldap-ca.pem',
  'ldap.base-dn': 'dc=example,dc=com',
  'ldap.user-dn-pattern': 'uid={0},ou=people,dc=example,dc=com',
  'ldap.bind-dn': 'cn=postern,ou=services,dc=example,dc=com',
  'ldap.bind-password': 'the password of the service account',
  'ldap.user-search-base': 'ou=people,dc=example,dc=com',
  'ldap.user-search-filter': '(uid={0})',
  'ldap.group-search-base': 'ou=groups,dc=example,dc=com',
  'ldap.group-search-filter': '(member={0})',
  'ldap.attribute-mapping': '{"email":"mail"}',
  'ldap.group-role-mapping': '{"cn=engineers,ou=groups,dc=example,dc=com":"developer"}',
  'ldap.group-tenant-mapping': '{"cn=acme,ou=groups,dc=example,dc=com":"acme"}',
  'ldap.domain': '["example.com","EXAMPLE"]',
};

/** Pages that explain a setting, or all settings below a path. The longest path that fits counts. */
const GUIDES: Readonly<Record<string, string>> = {
  'http.trusted-proxies': 'operations.md#client-addresses-at-the-api',
  'http.origins': 'operations.md#own-origins',
  'grpc.transport': 'decisions/0014-own-http2.md',
  'grpc.tls': 'operations.md#tls-files',
  'data-dir': 'operations.md#the-embedded-postgresql',
  'secret-key': 'operations.md#changing-secret-key',
  'secret-key-previous': 'operations.md#changing-secret-key',
  routes: 'concepts.md#routes',
  'inspect.max-body': 'envoy.md#printing-the-configuration',
  inspect: 'limits.md#bytes-of-bodies-per-second',
  'api-keys.retention': 'limits.md#api-keys',
  'audit.retention': 'operations.md#the-audit-log',
  login: 'security.md#sessions-signing-keys-passwords',
  ldap: 'ldap.md',
  limits: 'limits.md',
  usage: 'limits.md#two-sources',
  log: 'decision-log.md',
  otlp: 'decision-log.md#where-it-goes',
  traces: 'decision-log.md#traces',
};

/** What the description of a setting, which is one sentence, leaves out. */
const NOTES: Readonly<Record<string, string>> = {
  'data-dir':
    'If the user that PostgreSQL runs as cannot reach this folder, the data is in `/var/lib/postern`, and `cluster-location` in the folder says where.',
  'database.url': 'The secret key must then be set.',
  'database.pool-size':
    'Each process has up to eight more: for notifications, the change feed, the audit log and limits.',
  'secret-key': 'Every server of an installation has the same. Required with `database.url`.',
  'bootstrap.password':
    'Without it, the server makes one and prints it once. It counts only while there is no administrator.',
  'cache.credentials': 'It also bounds the memory of roles and policies: 1,280 bytes for each, at least 64 MiB.',
  'limits.reservation-ttl':
    "Set it to at least three times Envoy's `access_log_flush_interval`: Envoy's periodic entries renew the reservation while the request runs.",
  'limits.window': 'Other values than 60s are for tests, and must be the same on every server.',
  'api-keys.retention': 'At least 1d, and the same on every server.',
  'audit.retention': 'At least 1d, and the same on every server.',
  'usage.source': 'The same on every server.',
};

/** Members of a route, which are no settings of their own. */
const ROUTE_MEMBERS: readonly (readonly [name: string, meaning: string])[] = [
  ['method', 'An HTTP method.'],
  ['path', 'A path template, such as `/v1/things/{thing}`.'],
  ['permission', 'The permission that the route requires, or a list of two of which either suffices.'],
  [
    'model',
    'Where the model of the request is: `body` (its member `model`), `path` (the parameter `{model}`), or `unknown`. Default: the route has no model.',
  ],
  ['collection', 'Where the collection is: `body`, `path` or `unknown`. Default: the route has no collection.'],
  ['tokens', 'Whether the request spends tokens. Default: false.'],
  ['upgrade', 'Whether the request may upgrade to a WebSocket. Default: false.'],
];

export function configurationPage(): string {
  // `ldap` itself is the list of several directories; its members are listed below.
  const keys: readonly Key[] = Object.values(KEYS).filter(({ path }) => path !== 'ldap');
  const groups = Map.groupBy(keys, ({ path }) => (path.includes('.') ? path.slice(0, path.indexOf('.')) : ''));
  return `# Configuration

<!-- Written by npm run docs. -->

The server reads one YAML file, which \`--config FILE\` or \`POSTERN_CONFIG\` names. An environment variable overrides the setting of the file;
a list or a map is JSON there. A secret can also come from a file: add \`_FILE\` to the name of its variable, or \`-file\` to its path. \`postern
check-config\` prints the configuration in force and where each value comes from, or every problem with line and column.

${[...groups].map(([name, members]) => section(name, members)).join('\n')}`;
}

function section(name: string, keys: readonly Key[]): string {
  const title = name === '' ? 'General' : `\`${name}\``;
  const rows = keys.map(
    (key) =>
      `| \`${key.path}\` | ${defaultOf(key)} | ${tableCell(takes(key))} | ${meaningOf(key)} | \`${envName(key.path)}${key.secret ? '`, `…_FILE' : ''}\` |`,
  );
  return `## ${title}

| setting | default | takes | meaning | environment |
|---|---|---|---|---|
${rows.join('\n')}
${name === 'ldap' ? '\nWith several directories, `ldap` is a list of maps with these members, and its environment variable `POSTERN_LDAP` is JSON.\n' : ''}${keys.some(({ path }) => path === 'routes') ? routeMembers() : ''}
\`\`\`yaml
${yaml(keys)}
\`\`\`
`;
}

function routeMembers(): string {
  return `
A route of \`routes\` has these members:

| member | meaning |
|---|---|
${ROUTE_MEMBERS.map(([name, meaning]) => `| \`${name}\` | ${meaning} |`).join('\n')}
`;
}

function meaningOf(key: Key): string {
  const note = NOTES[key.path];
  return `${tableCell(key.help)}${note === undefined ? '' : ` ${note}`}${guideOf(key)}`;
}

function defaultOf({ defaultText }: Key): string {
  return defaultText === undefined ? '–' : `\`${defaultText}\``;
}

/** A parser names what it expects when it gets something else. */
function takes({ parse }: Key): string {
  const parsed = parse({ kind: 'text', text: '\0' });
  // Lists and maps are JSON in an environment variable only.
  return parsed.kind === 'flaws' ? (parsed.flaws[0]?.expected ?? '').replace(/ as JSON$/, '') : '';
}

function guideOf({ path }: Key): string {
  const [fits] = Object.keys(GUIDES)
    .filter((prefix) => path === prefix || path.startsWith(`${prefix}.`))
    .toSorted((a, b) => b.length - a.length);
  return fits === undefined ? '' : ` [More](${GUIDES[fits]})`;
}

function exampleOf(key: Key): string {
  const text = EXAMPLES[key.path] ?? key.defaultText;
  if (text === undefined)
    throw new Error(`${key.path} has no default, so scripts/lib/reference/configuration.ts needs an example`);
  if (key.parse(rawOf(text)).kind === 'flaws') throw new Error(`the example of ${key.path} is not an allowed value`);
  return text;
}

/** As the file would give it: lists and maps as data. */
function rawOf(text: string): Raw {
  return /^[[{]/.test(text) ? { kind: 'data', value: JSON.parse(text) } : { kind: 'text', text };
}

interface Tree extends Map<string, string | Tree> {}

/** JSON is YAML, so lists and maps stay as they are; a text is quoted if YAML would take it for something else. */
function yaml(keys: readonly Key[]): string {
  const tree: Tree = new Map();
  for (const key of keys) put(tree, key.path.split('.'), exampleOf(key));
  return lines(tree, '').join('\n');
}

function put(tree: Tree, [first = '', ...rest]: readonly string[], text: string): void {
  if (rest.length === 0) {
    tree.set(first, text);
    return;
  }
  const inner = tree.get(first);
  const next: Tree = typeof inner === 'object' ? inner : new Map();
  tree.set(first, next);
  put(next, rest, text);
}

function lines(tree: Tree, indent: string): readonly string[] {
  return [...tree].flatMap(([name, value]) =>
    typeof value === 'string'
      ? [`${indent}${name}: ${scalar(value)}`]
      : [`${indent}${name}:`, ...lines(value, `${indent}  `)],
  );
}

function scalar(text: string): string {
  return /^[[{]/.test(text) || /^[\w./-][\w ./:@?=%+-]*$/.test(text) ? text : `'${text}'`;
}
