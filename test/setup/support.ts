/** Shared by the tests of setups: applying and exporting by functions and by commands. */

import { randomBytes } from 'node:crypto';
import { readSetupText } from '../../src/cli/apply-file.ts';
import { setupWriter } from '../../src/cli/export-file.ts';
import type { PlanAction } from '../../src/iam/setup/action.ts';
import { type Applied, applySetup, previewSetup } from '../../src/iam/setup/apply.ts';
import type { SetupDocument } from '../../src/iam/setup/document.ts';
import { exportSetup } from '../../src/iam/setup/export.ts';
import type { SetupOptions } from '../../src/iam/setup/plan.ts';
import type { Setup, SetupError } from '../../src/iam/setup/read.ts';
import type { Database } from '../../src/store/database.ts';
import { type CommandResult, runCommand } from '../support/command.ts';

const SECRET_KEY = 'a secret key that only the tests of this project have';

/** Runs one command of `postern` on a database. @param input its standard input */
export function postern(databaseUrl: string, args: readonly string[], input = ''): Promise<CommandResult> {
  return runCommand(args, { POSTERN_DATABASE_URL: databaseUrl, POSTERN_SECRET_KEY: SECRET_KEY }, input);
}

/** @throws Error with all problems */
export function setupOf(document: SetupDocument | string): Setup {
  // JSON is YAML, and its writer loses nothing; that of YAML loses blanks of lines that hold nothing else.
  const text = typeof document === 'string' ? document : JSON.stringify(document);
  const read = readSetupText('setup.yaml', Buffer.from(text));
  if (read.kind === 'invalid') throw new Error(JSON.stringify(read.errors));
  return read.setup;
}

export function optionsWith(options: Partial<SetupOptions> = {}): SetupOptions {
  return { prune: false, pruneTenants: false, force: false, nowMs: Date.now(), ...options };
}

const parts = (db: Database) => ({ db, random: (size: number) => randomBytes(size) });

export type Planned = readonly PlanAction[] | { readonly errors: readonly SetupError[] };

export async function plan(
  db: Database,
  document: SetupDocument | string,
  options: Partial<SetupOptions> = {},
): Promise<Planned> {
  const planned = await previewSetup(parts(db), setupOf(document), optionsWith(options));
  if (planned.kind === 'plan') return planned.actions;
  // All of it is in one document.
  return { errors: planned.errors.map((error) => ({ ...error, path: error.path.replace(/^\/0/, '') })) };
}

/** Returns a line for each action of a plan: `+ role acme/editors`. */
export async function planLines(
  db: Database,
  document: SetupDocument | string,
  options: Partial<SetupOptions> = {},
): Promise<readonly string[]> {
  const actions = await plan(db, document, options);
  if ('errors' in actions) throw new Error(JSON.stringify(actions.errors));
  return actions.map(
    ({ verb, type, tenant, name }) => `${verb} ${type} ${tenant === undefined ? '' : `${tenant}/`}${name}`,
  );
}

/** Applies the plan. The database must not change between the two. */
export async function apply(
  db: Database,
  document: SetupDocument | string,
  options: Partial<SetupOptions> = {},
): Promise<void> {
  const setup = setupOf(document);
  const planned = await previewSetup(parts(db), setup, optionsWith(options));
  if (planned.kind === 'errors') throw new Error(JSON.stringify(planned.errors));
  const applied = await applyPlan(db, setup, planned.actions, options);
  if (applied.kind !== 'applied') throw new Error('the set-up changed meanwhile');
}

export function applyPlan(
  db: Database,
  setup: Setup,
  actions: readonly PlanAction[],
  options: Partial<SetupOptions> = {},
): Promise<Applied> {
  return applySetup(parts(db), setup, { setupTokens: false, ...optionsWith(options) }, actions);
}

/** The text of a whole export. */
export async function exported(db: Database): Promise<string> {
  const write = setupWriter();
  let text = '';
  await exportSetup(db, { tenant: undefined, users: true }, (part) => {
    text += write(part);
  });
  return text;
}
