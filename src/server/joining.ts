/** What every part of a server is joined from. */

import type { Config } from '../config/config.ts';
import type { Telemetry } from '../telemetry/telemetry.ts';
import type { Store } from './store.ts';

export interface Joining {
  readonly config: Config;
  readonly store: Store;
  readonly telemetry: Telemetry;
}
