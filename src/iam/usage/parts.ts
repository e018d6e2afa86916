/** What use cases of usage and limits are given beside the common parts. */

import type { TenantId } from '../../domain/ids.ts';
import type { Estimates } from '../../metering/admission.ts';

export interface MeteringSettings extends Estimates {
  /** Length of a rate window, milliseconds. */
  readonly windowMs: number;
  /** Whether a tenant's usage comes by events: what Envoy reports of its requests is not booked then. */
  readonly metersItself: (tenant: TenantId) => boolean;
}

export interface MeteringParts {
  readonly metering: MeteringSettings;
}
