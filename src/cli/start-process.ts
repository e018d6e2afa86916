/** Starts the listener of one process. A gate loads no module of the API. */

import type { Secrets } from '../config/config.ts';
import type { BootstrapOutcome } from '../iam/users/bootstrap.ts';
import type { LocalGates } from '../server/applied.ts';
import type { GateServer } from '../server/gate.ts';
import type { ProcessIdentity, RunningServer, WiringContext } from '../server/wiring-context.ts';

export interface ProcessWiring extends WiringContext {
  readonly secrets: Secrets;
  readonly identity: ProcessIdentity;
}

/** @param sharesAddress true if the gates of a supervisor share the gRPC listener */
export async function startGateProcess(wiring: ProcessWiring, sharesAddress: boolean): Promise<GateServer> {
  const { startGate } = await import('../server/gate.ts');
  return startGate({ ...wiring, sharesAddress });
}

/** Creates the first administrator if there is none, and prints its password. */
export async function startApiProcess(wiring: ProcessWiring, gates: LocalGates): Promise<RunningServer> {
  const [{ startApi }, { ensureAdministrator }, { Passwords }] = await Promise.all([
    import('../server/api.ts'),
    import('../server/administrator.ts'),
    import('../identity/passwords.ts'),
  ]);
  const passwords = await Passwords.start();
  printBootstrapPassword(await ensureAdministrator(wiring.config, wiring.secrets, wiring.store, passwords));
  return startApi({ ...wiring, passwords, gates });
}

/** Prints the password of a new administrator once, to standard output and never to the log. */
function printBootstrapPassword(outcome: BootstrapOutcome): void {
  if (outcome.kind !== 'made') return;
  const password = outcome.madePassword ?? '(as configured in bootstrap.password)';
  process.stdout.write(
    `\n  Administrator  ${outcome.email}\n  Password       ${password}\n  This password is not shown again.\n\n`,
  );
}
