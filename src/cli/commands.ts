/** Every command in one table: its name, options and purpose. A command's modules load when it runs. */

import type { Arguments, OptionNames } from './arguments.ts';

interface Entry {
  /**
   * The options and words after the name, as the usage text shows them. `optionsOf` reads the options from it. Default:
   * none.
   */
  readonly takes?: string;
  readonly summary: string;
  /** Whether it creates and migrates a database (`makes`), needs one that is `ready` (default), or uses `none`. */
  readonly database?: 'makes' | 'ready' | 'none';
  /** True if the command itself rejects other words than options. */
  readonly readsWords?: true;
  /** The exit code for wrong usage or a wrong configuration. Default: 2. */
  readonly refused?: number;
  readonly run: (args: Arguments) => Promise<number>;
}

export interface Command extends Entry {
  /** Its name. */
  readonly words: readonly string[];
  readonly takes: string;
}

const TABLE: Readonly<Record<string, Entry>> = {
  serve: {
    database: 'makes',
    takes: '[--only gate|api]',
    summary: 'Runs the server: the gate workers, the API, or both (default).',
    run: async (args) => (await import('./serve.ts')).serve(args),
  },
  demo: {
    database: 'makes',
    summary: 'Runs the server with a real Envoy and a simulated AI upstream.',
    run: async (args) => (await import('./demo.ts')).demo(args),
  },
  migrate: {
    database: 'makes',
    takes: '[--grant-to ROLE]',
    summary:
      'Creates the database schema or upgrades it to this version, and grants a database role the rights of a server.',
    run: async (args) => (await import('./migrate.ts')).migrateCommand(args),
  },
  'check-config': {
    database: 'none',
    summary: 'Prints the effective configuration, or every problem in it.',
    run: async (args) => (await import('./configuration.ts')).checkConfig(args),
  },
  'envoy config': {
    database: 'none',
    takes:
      '[--profile demo|production|sidecar|istio|envoy-gateway] [--shadow] [--listen A] [--grpc A] [--http A] [--upstream A] [--gateway NAMESPACE/NAME[/LISTENER]] [--usage lua|native]',
    summary:
      "Prints an Envoy configuration that matches Postern's: the routes with inspected bodies, and the body size limit. Default profile: production. With --shadow: for a trial beside another gate.",
    run: async (args) => (await import('./print-envoy.ts')).printEnvoyConfig(args),
  },
  'envoy drain': {
    database: 'none',
    takes: '--admin HOST:PORT --notice DURATION --limit DURATION',
    summary:
      "Waits for SIGTERM, then drains Envoy until its requests have ended: at least for --notice, at most for --limit. The chart's pods of Envoy run it.",
    run: async (args) => (await import('./drain-envoy.ts')).drainEnvoyCommand(args),
  },
  'gateway verify': {
    database: 'none',
    takes:
      '[NAMESPACE/GATEWAY...] [--dump FILE|-] [--kubeconfig FILE] [--context NAME] [--address LIST] [--public LIST] [--ca FILE] [--insecure] [--timeout DURATION]',
    summary:
      "Sends one request without a credential for each match of the cluster's routes, and lists those that Postern does not answer with 401, and the policies that remove the check. Exits with 1 if there are any.",
    run: async (args) => (await import('./gateway-verify.ts')).gatewayVerifyCommand(args),
  },
  health: {
    database: 'none',
    summary: 'Checks that the server is running. Use it as the health check of a container.',
    run: async (args) => (await import('./health.ts')).healthCommand(args),
  },
  explain: {
    takes:
      '--subject WHO | --credential TEXT, --method M --path P [--tenant T] [--ip A] [--time T] [--body B] [--content-type C]',
    summary:
      'Explains why a request is allowed or denied. WHO is the id or email address of a user, or the id, shown prefix or name of a key. POSTERN_CREDENTIAL can hold the credential instead of --credential. Exits with 1 if the request is denied.',
    run: async (args) => (await import('./explain.ts')).explainCommand(args),
  },
  'policy disable': {
    takes: 'NAME [--tenant T]',
    summary: 'Disables a policy. Use it when a policy locks its author out.',
    run: async (args) => (await import('./policy-disable.ts')).disablePolicyCommand(args),
  },
  'issuer list': {
    takes: '[--tenant T]',
    summary: 'Lists the issuers of all tenants, or of one, with the state of their keys.',
    run: async (args) => (await import('./issuer.ts')).issuerListCommand(args),
  },
  'issuer test': {
    takes: 'NAME [--tenant T]',
    summary:
      'Tests a token at an issuer and reports each step. Reads the token from the terminal or standard input. Exits with 1 if it would be refused.',
    run: async (args) => (await import('./issuer.ts')).issuerTestCommand(args),
  },
  'issuer refresh': {
    takes: 'NAME [--tenant T]',
    summary: 'Fetches the keys of an issuer now.',
    run: async (args) => (await import('./issuer.ts')).issuerRefreshCommand(args),
  },
  'issuer revoke-before': {
    takes: 'NAME [--time T] [--tenant T]',
    summary:
      'Refuses the tokens of an issuer that were issued before a time (default: now), and ends the sessions that began with its tokens.',
    run: async (args) => (await import('./issuer.ts')).issuerRevokeBeforeCommand(args),
  },
  'prices list': {
    summary: 'Lists the prices of models that are in force.',
    run: async (args) => (await import('./prices.ts')).pricesListCommand(args),
  },
  'prices import': {
    takes: '[FILE|-] [--provider ID] [--models TEXT] [--replace] [--apply]',
    summary:
      'Compares the prices of a file, or of the table that the release ships, with the list in force. --apply adds them to the list, and --replace also removes all others.',
    run: async (args) => (await import('./prices.ts')).pricesImportCommand(args),
  },
  'webhook list': {
    takes: '[--tenant T]',
    summary: 'Lists the webhooks of all tenants, or of one, with their state.',
    run: async (args) => (await import('./webhook.ts')).webhookListCommand(args),
  },
  'webhook create': {
    takes: 'URL EVENT... --tenant T [--description TEXT]',
    summary: 'Creates a webhook, and prints its id and its secret once.',
    run: async (args) => (await import('./webhook.ts')).webhookCreateCommand(args),
  },
  'webhook test': {
    takes: 'ID',
    summary: 'Sends the event webhook.test to a webhook. Exits with 1 if the receiver does not accept it.',
    run: async (args) => (await import('./webhook.ts')).webhookTestCommand(args),
  },
  'webhook rotate': {
    takes: 'ID',
    summary: 'Gives a webhook a new secret, and prints it once. For 24 hours, the former one signs as well.',
    run: async (args) => (await import('./webhook.ts')).webhookRotateCommand(args),
  },
  'webhook deliveries': {
    takes: 'ID',
    summary: 'Lists the 50 newest deliveries of a webhook.',
    run: async (args) => (await import('./webhook.ts')).webhookDeliveriesCommand(args),
  },
  'webhook replay': {
    takes: 'ID DELIVERY',
    summary: 'Sends a delivery of a webhook again.',
    run: async (args) => (await import('./webhook.ts')).webhookReplayCommand(args),
  },
  'webhook delete': {
    takes: 'ID',
    summary: 'Deletes a webhook with its deliveries.',
    run: async (args) => (await import('./webhook.ts')).webhookDeleteCommand(args),
  },
  'budget list': {
    takes: '[--tenant T]',
    summary: 'Lists the budgets of all tenants, or of one, with what was spent of the amounts that callers share.',
    run: async (args) => (await import('./budget.ts')).budgetListCommand(args),
  },
  'budget get': {
    takes: 'NAME [--tenant T]',
    summary: 'Prints a budget as JSON, with what was spent of it, and by which keys, users and models.',
    run: async (args) => (await import('./budget.ts')).budgetGetCommand(args),
  },
  'budget create': {
    takes: 'JSON --tenant T',
    summary: 'Creates a budget from a JSON object with the members of the API, and prints it.',
    run: async (args) => (await import('./budget.ts')).budgetCreateCommand(args),
  },
  'budget update': {
    takes: 'NAME JSON [--tenant T]',
    summary: 'Changes the members of the JSON object, and prints the budget.',
    run: async (args) => (await import('./budget.ts')).budgetUpdateCommand(args),
  },
  'budget reset': {
    takes: 'NAME --reason TEXT [--tenant T]',
    summary: 'Begins a new amount in the current period. The audit log keeps the reason.',
    run: async (args) => (await import('./budget.ts')).budgetResetCommand(args),
  },
  'budget delete': {
    takes: 'NAME [--tenant T]',
    summary: 'Deletes a budget.',
    run: async (args) => (await import('./budget.ts')).budgetDeleteCommand(args),
  },
  'reset-admin': {
    takes: '[--email E] [--create] [--yes]',
    summary:
      'Sets a new password for an administrator, prints it once and ends all of its sessions. --create creates the administrator.',
    run: async (args) => (await import('./reset-admin.ts')).resetAdminCommand(args),
  },
  apply: {
    takes:
      '[-f] FILE|- [--dry-run [--exit-code]] [--show-difference] [--strict] [--prune] [--prune-tenants] [--setup-tokens] [--force] [--yes]',
    summary:
      'Changes tenants, roles, policies, issuers, webhooks, budgets and users to match the file. Shows the plan first. Asks at a terminal, and requires --yes elsewhere for a plan that deletes.',
    run: async (args) => (await import('./apply.ts')).applyCommand(args),
  },
  diff: {
    takes: '[-f] FILE|- [--prune] [--prune-tenants] [--json]',
    summary:
      'Shows which requests the roles and policies of a file for apply would newly allow or deny. Exits with 2 if any would be newly allowed, 0 if none, 1 after an error.',
    refused: 1,
    run: async (args) => (await import('./diff.ts')).diffCommand(args),
  },
  export: {
    takes: '[--tenant T] [--without-users]',
    summary: 'Writes the contents of the database as a file for apply, without secrets.',
    readsWords: true,
    run: async (args) => (await import('./export.ts')).exportCommand(args),
  },
  'verify-audit': {
    takes: '[--anchor SEQ:HASH]',
    summary:
      'Checks the audit log for rows that were removed, changed or added. The anchor is a seal that you saved earlier.',
    run: async (args) => (await import('./verify-audit.ts')).verifyAuditCommand(args),
  },
  'audit follow': {
    takes: '--cursor FILE [--from start|now] | --after CURSOR',
    summary: 'Writes each audit row as a line of JSON as soon as it is sealed, and continues where it ended before.',
    run: async (args) => (await import('./audit-follow.ts')).auditFollowCommand(args),
  },
  'ldap test': {
    database: 'none',
    takes: '[--directory NAME] USERNAME',
    summary:
      'Tests a directory login and reports each step. Reads the password from the terminal or standard input. Exits with 1 if a step fails.',
    run: async (args) => (await import('./ldap-test.ts')).ldapTestCommand(args),
  },
  'remove-data': {
    database: 'none',
    takes: '[--yes]',
    summary:
      'Removes the embedded database with its secret key and its log, also if it lies outside data-dir. Stop the server first.',
    run: async (args) => (await import('./remove-data.ts')).removeDataCommand(args),
  },
  'rotate-secret-key': {
    takes: '[--yes]',
    summary:
      'Re-seals the database from secret-key-previous to secret-key. Every server must accept both keys while it runs.',
    run: async (args) => (await import('./rotate-secret-key.ts')).rotateSecretKeyCommand(args),
  },
  'rotate-signing-key': {
    takes: '[--yes]',
    summary: 'Publishes the next signing key, which starts to sign a day later, and prints the schedule.',
    run: async (args) => (await import('./rotate-signing-key.ts')).rotateSigningKeyCommand(args),
  },
};

export const COMMANDS: readonly Command[] = Object.entries(TABLE).map(([name, entry]) => ({
  words: name.split(' '),
  takes: '',
  ...entry,
}));

/** An option of the usage text: `--name WORD` and `-n WORD` take a value, `--name` is a flag. */
const OPTION = /(?:--([a-z-]+)|(?<![\w-])-([a-z]))( [A-Za-z][^\s\]]*)?/g;

/** Returns the options of the usage text, and `--config`, which all commands have. */
export function optionsOf({ takes }: Pick<Command, 'takes'>): OptionNames {
  const names = [...takes.matchAll(OPTION)];
  return {
    config: 'value',
    ...Object.fromEntries(
      names.map(([, long, short = '', value]) => [long ?? short, value === undefined ? 'flag' : 'value'] as const),
    ),
  };
}

/** Reports whether a command gets other words than options, which its usage text has in capitals. */
export function readsWords({ takes, readsWords: own }: Pick<Command, 'takes' | 'readsWords'>): boolean {
  return own === true || /[A-Z]/.test(takes.replaceAll(OPTION, ''));
}

export function usage(commands: readonly Command[] = COMMANDS): string {
  const lines = commands.map(
    ({ words, takes, summary }) => `  postern ${[...words, takes].join(' ').trimEnd()}\n      ${summary}\n`,
  );
  const heading = commands === COMMANDS ? 'Postern: access control for AI platforms.\n\n' : '';
  return `${heading}${lines.join('')}\n${commands.length === 1 ? 'It accepts' : 'All commands accept'} --config FILE (or POSTERN_CONFIG).\n`;
}
