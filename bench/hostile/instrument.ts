import { constants, setPriority } from 'node:os';

/**
 * Lets the measuring processes have a processor whenever they need one. The innocents and the upstream represent other
 * machines, so their wait for a processor of this one is no latency of Envoy or Postern. Needs root; otherwise the
 * figures are higher.
 */
export function prioritize(): void {
  try {
    setPriority(constants.priority.PRIORITY_HIGH);
  } catch {
    // Measured without it.
  }
}
