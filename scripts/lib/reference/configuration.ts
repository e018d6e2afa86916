/** docs/configuration.md: every setting, from the table with which the server reads its configuration. */

import type { Raw } from '../../../src/config/parsers.ts';
import { ROUTE_MEMBERS } from '../../../src/config/routes.ts';
import { envName, type Setting } from '../../../src/config/setting.ts';
import { ALL_SETTINGS } from '../../../src/config/settings.ts';
import { tableCell } from './markdown.ts';

/** Pages that explain a setting, or all settings below a path. The longest path that fits counts. */
const GUIDES: Readonly<Record<string, string>> = {
  'http.trusted-proxies': 'operations.md#client-addresses-at-the-api',
  'http.origins': 'operations.md#own-origins',
  'grpc.transport': 'decisions/0014-own-http2.md',
  'grpc.tls': 'operations.md#tls-files',
  'data-dir': 'operations.md#the-embedded-postgresql',
  'secret-key': 'upgrades.md#changing-secret-key',
  'secret-key-previous': 'upgrades.md#changing-secret-key',
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

/** @param settings default: those of the server */
export function configurationPage(settings: readonly Setting<unknown>[] = ALL_SETTINGS): string {
  // `ldap` itself is the list of several directories; its members are listed below.
  const groups = Map.groupBy(
    settings.filter(({ path }) => path !== 'ldap'),
    ({ path }) => (path.includes('.') ? path.slice(0, path.indexOf('.')) : ''),
  );
  return `# Configuration

<!-- Written by npm run docs. -->

The server reads one YAML file, which \`--config FILE\` or \`POSTERN_CONFIG\` names. An environment variable overrides the setting of the file;
a list or a map is JSON there. A secret can also come from a file: add \`_FILE\` to the name of its variable, or \`-file\` to its path. \`postern
check-config\` prints the configuration in force and where each value comes from, or every problem with line and column.

${[...groups].map(([name, members]) => section(name, members)).join('\n')}`;
}

function section(name: string, settings: readonly Setting<unknown>[]): string {
  const title = name === '' ? 'General' : `\`${name}\``;
  const rows = settings.map(
    ({ path, defaultText, parser, help, secret }) =>
      `| \`${path}\` | ${defaultText === undefined ? '–' : `\`${defaultText}\``} | ${tableCell(parser.expected)} | ${tableCell(help)}${guideOf(path)} | \`${envName(path)}${secret ? '`, `…_FILE' : ''}\` |`,
  );
  return `## ${title}

| setting | default | takes | meaning | environment |
|---|---|---|---|---|
${rows.join('\n')}
${name === 'ldap' ? '\nWith several directories, `ldap` is a list of maps with these members, and its environment variable `POSTERN_LDAP` is JSON.\n' : ''}${settings.some(({ path }) => path === 'routes') ? routeMembers() : ''}
\`\`\`yaml
${yaml(settings)}
\`\`\`
`;
}

function routeMembers(): string {
  return `
A route of \`routes\` has these members:

| member | meaning |
|---|---|
${Object.entries(ROUTE_MEMBERS)
  .map(([name, { help }]) => `| \`${name}\` | ${help} |`)
  .join('\n')}
`;
}

function guideOf(path: string): string {
  const [fits] = Object.keys(GUIDES)
    .filter((prefix) => path === prefix || path.startsWith(`${prefix}.`))
    .toSorted((a, b) => b.length - a.length);
  return fits === undefined ? '' : ` [More](${GUIDES[fits]})`;
}

function exampleOf({ path, parser, example }: Setting<unknown>): string {
  if (parser.parse(rawOf(example)).kind === 'flaws') throw new Error(`the example of ${path} is not an allowed value`);
  return example;
}

/** As the file would give it: lists and maps as data. */
function rawOf(text: string): Raw {
  return /^[[{]/.test(text) ? { kind: 'data', value: JSON.parse(text) } : { kind: 'text', text };
}

interface Tree extends Map<string, string | Tree> {}

/**
 * JSON is YAML, so lists and maps stay as they are. A text is quoted if YAML would take it for something else; Helm takes
 * `off` for false.
 */
function yaml(settings: readonly Setting<unknown>[]): string {
  const tree: Tree = new Map();
  for (const setting of settings) put(tree, setting.path.split('.'), exampleOf(setting));
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
  return /^[[{]/.test(text) || /^(?!(?:off|on|no|yes)$)[\w./-][\w ./:@?=%+-]*$/.test(text) ? text : `'${text}'`;
}
