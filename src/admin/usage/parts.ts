/** What use cases of usage and limits are given beside the common parts. */

import type { TenantId } from '../../domain/ids.ts';

export interface MeteringSettings {
  /** Length of a rate window, milliseconds. */
  readonly windowMs: number;
  /** The answer's bound of a request that names no token limit, in tokens. */
  readonly tokenEstimate: number;
  /** Whether a tenant's usage comes by events: what Envoy reports of its requests is not booked then. */
  readonly metersItself: (tenant: TenantId) => boolean;
}

export interface MeteringParts {
  readonly metering: MeteringSettings;
}
