import { resetAdmin } from '../iam/users/bootstrap.ts';
import { usableEmail } from '../iam/users/checks.ts';
import { Passwords } from '../identity/passwords.ts';
import { type Arguments, UsageError } from './arguments.ts';
import { printed } from './output.ts';
import { stoppedBefore } from './terminal.ts';
import { withStore } from './with-store.ts';

/** Sets a new password for an administrator (default: generated, and printed once), and prints its tenant. */
export async function resetAdminCommand(args: Arguments): Promise<number> {
  const address = args.value('email');
  if (args.flag('create') && address !== undefined && usableEmail(address) === undefined)
    throw new UsageError('--email must be an email address in ASCII characters.');
  const reset = await withStore(args, async (_store, { config, secrets }, parts) => {
    const named = address ?? 'an administrator';
    const stopped = await stoppedBefore(
      `This command sets a new password for ${named} and ends all sessions of that user.`,
      args,
    );
    if (stopped !== undefined) return stopped;
    const passwords = await Passwords.start();
    return resetAdmin(
      { ...parts, passwords },
      {
        email: address ?? config.bootstrap.email,
        isNamed: address !== undefined,
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
