/** The source of a request under /v1/auth, and the page that sent it. */

import { REPEATED } from '../../decision/model.ts';
import type { RequestInput } from '../../http/endpoint.ts';
import type { PageHeaders } from './origin.ts';
import type { Provenance } from './parts.ts';

export type AnyInput = RequestInput<unknown, unknown>;

export function provenance({ header, address, throttledAs, requestId, nowMs }: AnyInput): Provenance {
  const agent = header('user-agent');
  return { address, throttledAs, userAgent: agent === REPEATED ? undefined : agent, requestId, nowMs };
}

export function pageOf({ header, scheme }: AnyInput): PageHeaders {
  return { origin: header('origin'), host: header('host'), scheme };
}
