/** The parts of use cases of usage and limits, besides the common ones. */

import type { TenantId } from '../../domain/ids.ts';
import type { Estimates } from '../../metering/admission.ts';

export interface MeteringSettings extends Estimates {
  /** The length of a rate limit window. */
  readonly windowMs: number;
  /** Reports whether a tenant's usage comes from events, so that Envoy's reports of its requests are not booked. */
  readonly metersItself: (tenant: TenantId) => boolean;
}

export interface MeteringParts {
  readonly metering: MeteringSettings;
}
