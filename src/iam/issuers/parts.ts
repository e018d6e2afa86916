/** The parts that the use cases of issuers need, in addition to those of every use case. */

import type { KeyRefreshParts } from './refresh-keys.ts';

export interface IssuerParts {
  readonly issuers: {
    readonly keys: KeyRefreshParts;
    /** Hosts of issuers that may have any address, as in a URL: `host` or `host:port`. */
    readonly allowedHosts: readonly string[];
    /** How long fetched keys are used without a newer fetch. */
    readonly maxStalenessMs: number;
  };
}
