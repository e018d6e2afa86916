/** Starts what one process serves. Each kind loads its own modules only, so that a gate has no part of the API in its memory. */

import type { LocalGates } from '../server/applied.ts';
import type { GateServer } from '../server/gate.ts';
import type { ProcessIdentity, RunningServer, Wiring } from '../server/wiring.ts';
import type { Loaded } from './configuration.ts';

export interface ProcessWiring extends Loaded, Wiring {
  readonly identity: ProcessIdentity;
  readonly config: Loaded['config'];
}

/** @param sharesAddress true if the gates of a supervisor share the gRPC listener */
export async function startGateProcess(wiring: ProcessWiring, sharesAddress: boolean): Promise<GateServer> {
  const { startGate } = await import('../server/gate.ts');
  return startGate({ ...wiring, sharesAddress });
}

/** Creates the first administrator if there is none, and prints its password. */
export async function startApiProcess(wiring: ProcessWiring, gates: LocalGates): Promise<RunningServer> {
  const [{ startApi }, { ensureAdministrator }, { Passwords }, { printAdministrator }] = await Promise.all([
    import('../server/api.ts'),
    import('../server/administrator.ts'),
    import('../identity/passwords.ts'),
    import('./print-administrator.ts'),
  ]);
  const passwords = await Passwords.start();
  printAdministrator(await ensureAdministrator(wiring.config, wiring.secrets, wiring.store, passwords));
  return startApi({ ...wiring, passwords, gates });
}
