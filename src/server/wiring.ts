/** What every part of a server is wired from. */

import type { Config } from '../config/config.ts';
import type { Telemetry } from '../telemetry/telemetry.ts';
import type { Store } from './store.ts';

export interface Wiring {
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
  /** Where it listens, with the real port. */
  readonly address: string;
  /** Why it cannot serve now; empty = ready. */
  ready(): Promise<readonly string[]>;
  /** What an operator should know and does not keep it from serving. */
  warnings(): readonly string[];
  /** Drains and stops: not ready at once, running requests finish, then everything behind the listener stops. */
  close(): Promise<void>;
}
