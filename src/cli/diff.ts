/** `postern diff`: shows which requests the roles and policies of a file would newly allow or deny. */

import { formatConfigError } from '../config/config-error.ts';
import { previewSetup } from '../iam/setup/apply.ts';
import type { SetupError } from '../iam/setup/read.ts';
import { type SetupDifference, setupDifference } from '../iam/setup/rules-difference.ts';
import { routeTable } from '../server/credential-cache.ts';
import { readSetupFile } from './apply-file.ts';
import { type Arguments, wordsOf } from './arguments.ts';
import { differenceText } from './diff-text.ts';
import { withLongTimeout, withStore } from './with-store.ts';

const NOTHING_ALLOWED = 0;
const FAILED = 1;
const NEWLY_ALLOWED = 2;

export async function diffCommand(args: Arguments): Promise<number> {
  const [file] = wordsOf(args, 'Give exactly one file, or - to read standard input.');
  const read = await readSetupFile(file);
  if (read.kind === 'invalid') return fail(read.errors.map(formatConfigError));
  const locate = (errors: readonly SetupError[]) => read.locate(errors).map(formatConfigError);
  return withStore(args, ({ db }, { config }, operator) =>
    withLongTimeout(db, 3, async (longTimeoutDb) => {
      const nowMs = operator.now();
      const { allowedHosts } = config.issuers;
      const { allowedHosts: webhookHosts } = config.webhooks;
      const pruning = { prune: args.flag('prune'), pruneTenants: args.flag('prune-tenants') };
      const options = { ...pruning, force: true, nowMs, allowedHosts, webhookHosts };
      const parts = { ...operator, db: longTimeoutDb, routes: routeTable(config) };
      const plan = await previewSetup(parts, read.setup, options);
      if (plan.kind === 'errors') return fail(locate(plan.errors));
      const difference = await setupDifference(parts, plan.parts, nowMs);
      process.stdout.write(
        args.flag('json') ? `${JSON.stringify(difference, undefined, 2)}\n` : differenceText(difference).trimStart(),
      );
      return exitCodeOf(difference);
    }),
  );
}

/** A difference that is not complete proves nothing, so a check that depends on it must fail. */
function exitCodeOf({ tenants, left }: SetupDifference): number {
  const allows = tenants.some(
    ({ newly_allowed: allowed, management }) => allowed.length + management.newly_allowed.length > 0,
  );
  if (allows) return NEWLY_ALLOWED;
  if (left === 0 && tenants.every(({ complete }) => complete)) return NOTHING_ALLOWED;
  return fail(['The difference is not complete, so it does not prove that nothing is newly allowed.']);
}

function fail(lines: readonly string[]): number {
  process.stderr.write(lines.map((line) => `${line}\n`).join(''));
  return FAILED;
}
