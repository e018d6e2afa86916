/** The parts that the use cases of issuers need, in addition to those of every use case. */

import type { AdminParts } from '../caller/caller.ts';
import type { KeyRefreshParts } from './refresh-keys.ts';

export interface IssuerSettings {
  /** Hosts of issuers that may have any address, as in a URL: `host` or `host:port`. */
  readonly allowedHosts: readonly string[];
  /** How long fetched keys are used without a newer fetch. */
  readonly maxStalenessMs: number;
}

export interface IssuerParts extends AdminParts {
  readonly issuers: IssuerSettings & { readonly keys: KeyRefreshParts };
  /** The key under which the secrets of clients are sealed. */
  readonly secretKey: string;
}
