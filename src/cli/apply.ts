/** `postern apply`: shows the changes that make the database match a file, and makes them. */

import { type ConfigError, formatConfigError } from '../config/config-error.ts';
import type { DifferenceParts } from '../iam/explain/difference.ts';
import type { PlanAction } from '../iam/setup/action.ts';
import { applySetup, previewSetup, type SetupParts } from '../iam/setup/apply.ts';
import { planNotices, setupNotices } from '../iam/setup/notices.ts';
import type { SetupOptions } from '../iam/setup/plan.ts';
import { setupDifference } from '../iam/setup/rules-difference.ts';
import type { SetupToken } from '../iam/setup/write.ts';
import { routeTable } from '../server/credential-cache.ts';
import { readSetupFile, type SetupFile, STDIN } from './apply-file.ts';
import { planText } from './apply-plan.ts';
import { type Arguments, UsageError, wordsOf } from './arguments.ts';
import { differenceText } from './diff-text.ts';
import { hasTerminal, stoppedBefore } from './terminal.ts';
import { withLongTimeout, withStore } from './with-store.ts';

const DONE = 0;
/** The same as for wrong usage: nothing was changed. */
const WRONG_FILE = 2;
/** With --dry-run --exit-code: the plan is not empty. */
const PENDING = 3;

/** The maximum number of plans: each concurrent change requires a new one. */
const ATTEMPTS = 5;
const MAX_LISTED = 50;

interface ApplyOptions {
  readonly setup: SetupOptions & { readonly setupTokens: boolean };
  readonly dryRun: boolean;
  /** True if a pattern that no route needs is an error. */
  readonly strict: boolean;
  readonly exitCode: boolean;
  /** True if the plan shows what its roles and policies newly allow and deny. */
  readonly showsDifference: boolean;
  /** True if there is a terminal at which the command can ask. */
  readonly asks: boolean;
  /** Returns the exit code if the operator does not agree. */
  readonly stopped: (effect: string) => Promise<number | undefined>;
}

export async function applyCommand(args: Arguments): Promise<number> {
  const [file] = wordsOf(args, 'Give exactly one file, or - to read standard input.');
  const options = optionsOf(args, file);
  const read = await readSetupFile(file);
  if (read.kind === 'invalid') return refuse(read.errors);
  return withStore(args, async ({ db }, { config }, operator) => {
    const setup = {
      prune: args.flag('prune'),
      pruneTenants: args.flag('prune-tenants'),
      force: args.flag('force'),
      setupTokens: args.flag('setup-tokens'),
      nowMs: operator.now(),
      allowedHosts: config.issuers.allowedHosts,
      webhookHosts: config.webhooks.allowedHosts,
    };
    const notices = setupNotices({ routes: routeTable(config) }, read.setup);
    if (options.strict && notices.some(({ kind }) => kind === 'unneeded_pattern')) return refuse(read.locate(notices));
    process.stdout.write(listed(read.locate(notices), 'notice: '));
    return withLongTimeout(db, 2, (longTimeoutDb) =>
      planAndApply({ ...operator, db: longTimeoutDb, routes: routeTable(config) }, read, { ...options, setup }),
    );
  });
}

function optionsOf(args: Arguments, file: string): Omit<ApplyOptions, 'setup'> {
  const dryRun = args.flag('dry-run');
  if (args.flag('exit-code') && !dryRun) throw new UsageError('--exit-code requires --dry-run.');
  const asks = file !== STDIN && hasTerminal();
  return {
    dryRun,
    strict: args.flag('strict'),
    exitCode: args.flag('exit-code'),
    showsDifference: args.flag('show-difference'),
    asks,
    stopped: (effect) => stoppedBefore(effect, args, asks),
  };
}

type Readable = Extract<SetupFile, { kind: 'setup' }>;

async function planAndApply(
  parts: SetupParts & DifferenceParts,
  { setup, locate }: Readable,
  options: ApplyOptions,
): Promise<number> {
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    const plan = await previewSetup(parts, setup, options.setup);
    if (plan.kind === 'errors') return refuse(locate(plan.errors));
    if (attempt === 1) process.stdout.write(listed(locate(planNotices(setup, plan.actions)), 'notice: '));
    if (attempt > 1) process.stdout.write('\nAnother change was made after the plan was shown. The new plan is:\n\n');
    process.stdout.write(planText(plan.actions));
    if (options.showsDifference)
      process.stdout.write(differenceText(await setupDifference(parts, plan.parts, options.setup.nowMs)));
    if (plan.actions.length === 0) return DONE;
    if (options.dryRun) return options.exitCode ? PENDING : DONE;
    const deleted = plan.actions.filter(({ verb }) => verb === 'delete').length;
    if (options.asks || deleted > 0) {
      const stopped = await options.stopped(
        deleted > 0 ? `This plan deletes ${deleted} of the resources above.` : 'This plan changes the database.',
      );
      if (stopped !== undefined) return stopped;
    }
    const applied = await applySetup(parts, setup, options.setup, plan.actions);
    if (applied.kind === 'applied') {
      printDone(plan.actions, applied.setupTokens, options.setup.setupTokens);
      return DONE;
    }
  }
  throw new Error('Other changes kept interfering with the plan. Nothing was changed. Run the command again.');
}

function printDone(actions: readonly PlanAction[], tokens: readonly SetupToken[], wanted: boolean): void {
  process.stdout.write('Done.\n');
  const made = actions.some((action) => action.type === 'user' && action.verb === 'create');
  if (made && !wanted) {
    process.stdout.write(
      'New users have no password yet. An administrator can issue a password-reset token for each user, and\n`postern reset-admin` sets the password of the first administrator.\n',
    );
  }
  if (tokens.length > 0) {
    process.stdout.write(
      '\nOne-time tokens for POST /v1/auth/password/reset. Save them now, because they are not shown again.\n',
    );
    for (const { email, token, expiresAt } of tokens)
      process.stdout.write(`${email} ${token} until ${expiresAt.toISOString()}\n`);
  }
}

function refuse(errors: readonly ConfigError[]): number {
  process.stderr.write(listed(errors));
  return WRONG_FILE;
}

/** One line for each error, at most `MAX_LISTED`. */
function listed(errors: readonly ConfigError[], prefix = ''): string {
  const shown = errors.slice(0, MAX_LISTED).map((error) => `${prefix}${formatConfigError(error)}\n`);
  const more = errors.length - shown.length;
  return shown.join('') + (more > 0 ? `${prefix}and ${more} more\n` : '');
}
