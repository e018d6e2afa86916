/** docs/cli.md: every command, from the table that the command line runs by. */

import { COMMANDS, type Command } from '../../../src/cli/commands.ts';

/** By the command's words. */
const EXAMPLES: Readonly<Record<string, string>> = {
  serve: 'postern serve --config /etc/postern/postern.yaml',
  demo: 'postern demo',
  migrate: 'postern migrate --config /etc/postern/postern.yaml',
  'check-config': 'postern check-config --config /etc/postern/postern.yaml',
  'envoy config': 'postern envoy config --profile production --upstream models.example.com:8000 > envoy.yaml',
  'envoy drain': 'postern envoy drain --admin 127.0.0.1:9901 --notice 5s --limit 50s',
  'gateway verify':
    'kubectl get gateways,httproutes,grpcroutes,securitypolicies -A -o json | postern gateway verify --dump -',
  health: 'postern health',
  explain: 'postern explain --subject ada@globex.example --method POST --path /v1/chat/completions --tenant acme',
  'policy disable': 'postern policy disable office-hours --tenant acme',
  'webhook list': 'postern webhook list --tenant acme',
  'webhook create': "postern webhook create https://hooks.acme.example/postern key.expiring 'budget.*' --tenant acme",
  'webhook test': 'postern webhook test whk_01jd5k3v8m2x7q9w4r6t0y1z3b',
  'webhook rotate': 'postern webhook rotate whk_01jd5k3v8m2x7q9w4r6t0y1z3b',
  'webhook deliveries': 'postern webhook deliveries whk_01jd5k3v8m2x7q9w4r6t0y1z3b',
  'webhook replay': 'postern webhook replay whk_01jd5k3v8m2x7q9w4r6t0y1z3b dlv_01jd5k3v8m2x7q9w4r6t0y1z3b',
  'webhook delete': 'postern webhook delete whk_01jd5k3v8m2x7q9w4r6t0y1z3b',
  'issuer list': 'postern issuer list --tenant acme',
  'issuer test': 'postern issuer test keycloak --tenant acme < token.txt',
  'issuer refresh': 'postern issuer refresh keycloak --tenant acme',
  'issuer revoke-before': 'postern issuer revoke-before keycloak --tenant acme',
  'prices list': 'postern prices list',
  'prices import': 'postern prices import --provider anthropic',
  'budget list': 'postern budget list --tenant acme',
  'budget get': 'postern budget get search-team --tenant acme',
  'budget create': `postern budget create '{"name": "all", "unit": "money", "limit": "500.00", "period": "month", "applies_to": {"tenant": true}}' --tenant acme`,
  'budget update': `postern budget update search-team '{"limit": "300.00"}' --tenant acme`,
  'budget reset': "postern budget reset search-team --reason 'a runaway test'",
  'budget delete': 'postern budget delete search-team --tenant acme',
  'reset-admin': 'postern reset-admin --email admin@example.com --yes',
  apply: 'postern apply setup.yaml --dry-run',
  diff: 'postern diff -f setup.yaml',
  export: 'postern export --tenant acme > acme.yaml',
  'verify-audit': 'postern verify-audit',
  'audit follow': 'postern audit follow --cursor /var/lib/postern/siem.cursor',
  'ldap test': 'postern ldap test ada',
  'remove-data': 'postern remove-data --config /etc/postern/postern.yaml',
  'rotate-secret-key': 'postern rotate-secret-key --yes',
  'rotate-signing-key': 'postern rotate-signing-key --yes',
};

/** Pages that say more. */
const GUIDES: Readonly<Record<string, string>> = {
  'envoy config': 'envoy.md#printing-the-configuration',
  'envoy drain': 'kubernetes.md#sidecar',
  'gateway verify': 'no-bypass.md#verify-every-route',
  explain: 'policies.md',
  'issuer test': 'api.md#issuers',
  'issuer revoke-before': 'api.md#issuers',
  'webhook create': 'webhooks.md',
  'webhook rotate': 'webhooks.md#rotating-the-secret',
  'prices list': 'prices.md',
  'prices import': 'prices.md#the-table-of-the-release',
  'budget create': 'budgets.md',
  'budget reset': 'budgets.md',
  apply: 'declarative.md',
  diff: 'declarative.md#the-difference-of-a-file',
  export: 'declarative.md',
  'verify-audit': 'operations.md#the-audit-log',
  'audit follow': 'decision-log.md#the-audit-log-in-a-siem',
  'ldap test': 'ldap.md#troubleshooting',
  'remove-data': 'operations.md#removing-the-embedded-database',
  'rotate-secret-key': 'upgrades.md#changing-secret-key',
  'reset-admin': 'disasters.md#no-administrator-left',
};

const DATABASE: Readonly<Record<NonNullable<Command['database']>, string>> = {
  makes: 'It creates the embedded database if there is none, and migrates the schema.',
  ready: 'It needs an existing database with the current schema, and never creates one.',
  none: 'It uses no database.',
};

export function commandsPage(): string {
  return `# Command line

<!-- Written by npm run docs. -->

\`npm run postern -- COMMAND\` runs a command from a checkout. In the container image and after \`npm install --global\` of the package,
\`postern COMMAND\` does. \`npm link\` in a checkout puts \`postern\` on the PATH as well.

Every command that reads the configuration takes \`--config FILE\` (default: \`POSTERN_CONFIG\`); [environment variables](configuration.md)
override the file. Exit codes: 0 for success, 1 for a failure, 2 for wrong options or a wrong configuration. Commands that
differ say so.

${COMMANDS.map(section).join('\n')}`;
}

function section({ words, takes, summary, database = 'ready' }: Command): string {
  const name = words.join(' ');
  const example = EXAMPLES[name];
  if (example === undefined) throw new Error(`${name} needs an example in scripts/lib/reference/commands.ts`);
  const guide = GUIDES[name];
  return `## ${name}

${summary} ${DATABASE[database]}${guide === undefined ? '' : ` [More](${guide})`}

\`\`\`
postern ${[...words, takes].join(' ').trimEnd()}
\`\`\`

\`\`\`sh
${example}
\`\`\`
`;
}
