/** Every command in one table: its words, options and what it is for. A command's modules load when it runs. */

import type { Arguments, OptionNames } from './arguments.ts';

export interface Command {
  readonly words: readonly string[];
  /** What stands behind the words in the usage text. */
  readonly takes: string;
  readonly summary: string;
  readonly options: OptionNames;
  /** What it does about a database: `makes` and migrates one, needs one that is `ready`, or uses `none`. */
  readonly database: 'makes' | 'ready' | 'none';
  /** It looks at the words beside its options itself; of any other command they are refused. */
  readonly readsWords?: boolean;
  /** Resolves with the exit code. */
  readonly run: (args: Arguments) => Promise<number>;
}

const CONFIG: OptionNames = { config: 'value' };

export const COMMANDS: readonly Command[] = [
  {
    words: ['serve'],
    database: 'makes',
    takes: '[--only gate|api]',
    summary: 'Runs the server: the gate workers, the API, or both (default).',
    options: { ...CONFIG, only: 'value' },
    run: async (args) => (await import('./serve.ts')).serve(args),
  },
  {
    words: ['demo'],
    database: 'makes',
    takes: '',
    summary: 'Runs the server with a real Envoy and a simulated AI upstream.',
    options: CONFIG,
    run: async (args) => (await import('./demo.ts')).demo(args),
  },
  {
    words: ['migrate'],
    database: 'makes',
    takes: '[--grant-to ROLE]',
    summary:
      'Creates the database schema or upgrades it to this version, and grants a database role the rights of a server.',
    options: { ...CONFIG, 'grant-to': 'value' },
    run: async (args) => (await import('./migrate.ts')).migrateCommand(args),
  },
  {
    words: ['check-config'],
    database: 'none',
    takes: '',
    summary: 'Prints the effective configuration, or every problem in it.',
    options: CONFIG,
    run: async (args) => (await import('./configuration.ts')).checkConfig(args),
  },
  {
    words: ['envoy', 'config'],
    database: 'none',
    takes:
      '--profile demo|production|sidecar|istio|envoy-gateway [--listen A] [--grpc A] [--http A] [--upstream A] [--gateway NAMESPACE/NAME]',
    summary:
      "Prints an Envoy configuration that matches Postern's: the routes with inspected bodies, and the body size limit.",
    options: {
      ...CONFIG,
      profile: 'value',
      listen: 'value',
      grpc: 'value',
      http: 'value',
      upstream: 'value',
      gateway: 'value',
    },
    run: async (args) => (await import('./print-envoy.ts')).printEnvoyConfig(args),
  },
  {
    words: ['envoy', 'drain'],
    database: 'none',
    takes: '--admin HOST:PORT --notice DURATION --limit DURATION',
    summary:
      "Waits for SIGTERM, then drains Envoy until its requests have ended: at least for --notice, at most for --limit. The chart's pods of Envoy run it.",
    options: { ...CONFIG, admin: 'value', notice: 'value', limit: 'value' },
    run: async (args) => (await import('./drain-envoy.ts')).drainEnvoyCommand(args),
  },
  {
    words: ['health'],
    database: 'none',
    takes: '',
    summary: 'Checks that the server is running. Use it as the health check of a container.',
    options: CONFIG,
    run: async (args) => (await import('./health.ts')).healthCommand(args),
  },
  {
    words: ['explain'],
    database: 'ready',
    takes:
      '--subject ID | --credential TEXT, --method M --path P [--tenant T] [--ip A] [--time T] [--body B] [--content-type C]',
    summary:
      'Explains why a request is allowed or denied. POSTERN_CREDENTIAL can hold the credential instead of --credential.',
    options: {
      ...CONFIG,
      subject: 'value',
      credential: 'value',
      method: 'value',
      path: 'value',
      tenant: 'value',
      ip: 'value',
      time: 'value',
      body: 'value',
      'content-type': 'value',
    },
    run: async (args) => (await import('./explain.ts')).explainCommand(args),
  },
  {
    words: ['policy', 'disable'],
    database: 'ready',
    takes: 'NAME [--tenant T]',
    summary: 'Disables a policy. Use it when a policy locks its author out.',
    options: { ...CONFIG, tenant: 'value' },
    readsWords: true,
    run: async (args) => (await import('./policy-disable.ts')).disablePolicyCommand(args),
  },
  {
    words: ['reset-admin'],
    database: 'ready',
    takes: '[--email E] [--create] [--yes]',
    summary:
      'Sets a new password for an administrator, prints it once and ends all of its sessions. --create creates the administrator.',
    options: { ...CONFIG, email: 'value', create: 'flag', yes: 'flag' },
    run: async (args) => (await import('./reset-admin.ts')).resetAdminCommand(args),
  },
  {
    words: ['apply'],
    database: 'ready',
    takes: 'FILE|- [--dry-run [--exit-code]] [--strict] [--prune] [--prune-tenants] [--setup-tokens] [--force] [--yes]',
    summary:
      'Changes tenants, roles, policies and users to match the file. Shows the plan first. Asks at a terminal, and requires --yes elsewhere for a plan that deletes.',
    options: {
      ...CONFIG,
      'dry-run': 'flag',
      'exit-code': 'flag',
      strict: 'flag',
      prune: 'flag',
      'prune-tenants': 'flag',
      'setup-tokens': 'flag',
      force: 'flag',
      yes: 'flag',
    },
    readsWords: true,
    run: async (args) => (await import('./apply.ts')).applyCommand(args),
  },
  {
    words: ['export'],
    database: 'ready',
    takes: '[--tenant T] [--without-users]',
    summary: 'Writes the contents of the database as a file for apply, without secrets.',
    options: { ...CONFIG, tenant: 'value', 'without-users': 'flag' },
    readsWords: true,
    run: async (args) => (await import('./export.ts')).exportCommand(args),
  },
  {
    words: ['verify-audit'],
    database: 'ready',
    takes: '[--anchor SEQ:HASH]',
    summary:
      'Checks the audit log for rows that were removed, changed or added. The anchor is a seal that you saved earlier.',
    options: { ...CONFIG, anchor: 'value' },
    run: async (args) => (await import('./verify-audit.ts')).verifyAuditCommand(args),
  },
  {
    words: ['audit', 'follow'],
    database: 'ready',
    takes: '--cursor FILE [--from start|now] | --after CURSOR',
    summary: 'Writes each audit row as a line of JSON as soon as it is sealed, and goes on where it ended before.',
    options: { ...CONFIG, cursor: 'value', from: 'value', after: 'value' },
    run: async (args) => (await import('./audit-follow.ts')).auditFollowCommand(args),
  },
  {
    words: ['ldap', 'test'],
    database: 'none',
    takes: '[--directory NAME] USERNAME',
    summary: 'Tests a directory login and reports each step. Reads the password from the terminal or standard input.',
    options: { ...CONFIG, directory: 'value' },
    readsWords: true,
    run: async (args) => (await import('./ldap-test.ts')).ldapTestCommand(args),
  },
  {
    words: ['remove-data'],
    database: 'none',
    takes: '[--yes]',
    summary:
      'Removes the embedded database with its secret key and its log, also if it lies outside data-dir. Stop the server first.',
    options: { ...CONFIG, yes: 'flag' },
    run: async (args) => (await import('./remove-data.ts')).removeDataCommand(args),
  },
  {
    words: ['rotate-secret-key'],
    database: 'ready',
    takes: '[--yes]',
    summary:
      'Re-seals the database from secret-key-previous to secret-key. Every server must accept both keys while it runs.',
    options: { ...CONFIG, yes: 'flag' },
    run: async (args) => (await import('./rotate-secret-key.ts')).rotateSecretKeyCommand(args),
  },
  {
    words: ['rotate-signing-key'],
    database: 'ready',
    takes: '[--yes]',
    summary: 'Publishes the next signing key, which starts to sign a day later, and prints the schedule.',
    options: { ...CONFIG, yes: 'flag' },
    run: async (args) => (await import('./rotate-signing-key.ts')).rotateSigningKeyCommand(args),
  },
];

export function usage(commands: readonly Command[] = COMMANDS): string {
  const lines = commands.map(
    ({ words, takes, summary }) => `  postern ${[...words, takes].join(' ').trimEnd()}\n      ${summary}\n`,
  );
  const heading = commands === COMMANDS ? 'Postern: access control for AI platforms.\n\n' : '';
  return `${heading}${lines.join('')}\n${commands.length === 1 ? 'It accepts' : 'All commands accept'} --config FILE (or POSTERN_CONFIG).\n`;
}
