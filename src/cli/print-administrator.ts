import type { BootstrapOutcome } from '../iam/users/bootstrap.ts';

/** Prints the first administrator's password, once, to the terminal and never to the log. */
export function printAdministrator(outcome: BootstrapOutcome): void {
  if (outcome.kind !== 'made') return;
  const password = outcome.madePassword ?? '(as configured in bootstrap.password)';
  process.stdout.write(
    `\n  Administrator  ${outcome.email}\n  Password       ${password}\n  This password is not shown again.\n\n`,
  );
}
