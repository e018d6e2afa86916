/** What Postern reads of one finished request in Envoy's access log. */

import type { FinishedUsage } from '../../metering/settlement.ts';

/** Requests without a reservation id are not reported. Names are at most 512 bytes long. */
export interface FinishedRequest extends FinishedUsage {
  /** `METHOD template` */
  readonly route: string | undefined;
}
