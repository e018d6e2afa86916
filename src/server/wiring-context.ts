/** The parts that the files of `server/` wire a process from, and the servers that they return. */

import type { Config } from '../config/config.ts';
import type { Telemetry } from '../telemetry/telemetry.ts';
import type { Store } from './store.ts';

export interface WiringContext {
  readonly config: Config;
  readonly store: Store;
  readonly telemetry: Telemetry;
}

/** A process among those of the installation. */
export interface ProcessIdentity {
  /** Unique in the installation. */
  readonly id: string;
  /** The same for all processes of one server. */
  readonly server: string;
}

/** One running listener with everything behind it. The store stays open when it closes. */
export interface RunningServer {
  /** The listener's address, with the actual port. */
  readonly address: string;
  /** Returns the reasons why it cannot serve now. Empty if it is ready. */
  ready(): readonly string[];
  /** Returns warnings for the operator that do not make it unready. */
  warnings(): readonly string[];
  /** Reports that it is not ready, waits for running requests, then stops the listener and everything behind it. */
  close(): Promise<void>;
}
