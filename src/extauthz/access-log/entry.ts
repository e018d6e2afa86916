/** What Postern reads of one finished request in Envoy's access log. */

import type { Usage } from './usage.ts';

export interface FinishedRequest {
  /** The reservation id that the check's answer carried; entries without one are not reported. */
  readonly reservation: string;
  /** What the check's answer said of the request, as Envoy kept it. Names are at most 512 bytes long. */
  readonly tenant: string | undefined;
  readonly user: string | undefined;
  readonly key: string | undefined;
  readonly model: string | undefined;
  /** `METHOD template` */
  readonly route: string | undefined;
  /** What the upstream said it spent; undefined when it did not say, or Envoy could not read it. */
  readonly usage: Usage | undefined;
  /** Of the answer's status line; 0 = there was no answer. */
  readonly status: number;
  readonly requestBytes: number;
  readonly responseBytes: number;
}
