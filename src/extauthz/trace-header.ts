/** The trace that a checked request belongs to. Read only if traces are on. */

import { headerOf } from './draft.ts';
import { TRACEPARENT } from './header-names.ts';

/** Returns the header `traceparent` of the message that was read last; undefined if it is absent or came more than once. */
export function traceparentOf(bytes: Buffer): string | undefined {
  const header = headerOf(bytes, TRACEPARENT);
  return typeof header === 'string' ? header : undefined;
}
