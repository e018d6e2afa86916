import { resetAdmin } from '../iam/users/bootstrap.ts';
import { Passwords } from '../identity/passwords.ts';
import type { Arguments } from './arguments.ts';
import { printed } from './output.ts';
import { stoppedBefore } from './terminal.ts';
import { OPERATOR_PARTS, withStore } from './with-store.ts';

/** Sets a new password for an administrator (default: generated, and printed once), and prints its tenant. */
export async function resetAdminCommand(args: Arguments): Promise<number> {
  const reset = await withStore(args, async ({ db }, { config, secrets }) => {
    const named = args.value('email') ?? 'an administrator';
    const stopped = await stoppedBefore(
      `This command sets a new password for ${named} and ends all sessions of that user.`,
      args,
    );
    if (stopped !== undefined) return stopped;
    const passwords = await Passwords.start();
    return resetAdmin(
      { db, passwords, ...OPERATOR_PARTS },
      {
        email: args.value('email') ?? config.bootstrap.email,
        isNamed: args.value('email') !== undefined,
        create: args.flag('create'),
        password: secrets.bootstrapPassword,
      },
    );
  });
  if (typeof reset === 'number') return reset;
  const { email, tenantId, madePassword } = reset;
  const password = madePassword ?? 'as set in bootstrap.password (or POSTERN_BOOTSTRAP_PASSWORD)';
  return printed(
    `Administrator: ${email}\nTenant:        ${tenantId}\nPassword:      ${password}\nIts sessions have ended.${madePassword === undefined ? '' : ' This password is not shown again.'}\n`,
  );
}
