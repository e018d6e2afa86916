/** Runs an endpoint on the terms that the request's headers set: what the resource must be like, and that asking again does nothing twice. */

import type { Caller } from '../iam/caller/caller.ts';
import type { Answer, Callers, Endpoint, RawAsk } from './endpoint.ts';
import { readIdempotentRequest } from './idempotency.ts';
import { conditional, type HeaderLines, readPreconditions, tagged } from './preconditions.ts';

/** @throws Refusal as the endpoint does; `invalid_parameter` for malformed terms */
export async function runOnTerms(
  endpoint: Endpoint,
  ask: RawAsk,
  callers: Callers | undefined,
  header: HeaderLines,
): Promise<Answer> {
  if (callers === undefined) return endpoint.run(ask, undefined);
  const terms = { preconditions: readPreconditions(header), idempotency: readIdempotentRequest(endpoint, ask) };
  const on = (caller: Caller): Caller => ({ ...caller, ...terms });
  const answer = await endpoint.run(ask, {
    caller: on(callers.caller),
    again: callers.again,
    callerIn: async (tenantId) => on(await callers.callerIn(tenantId)),
  });
  const shown = endpoint.answers[answer.status]?.headers?.includes('etag') === true ? tagged(answer) : answer;
  if (endpoint.method === 'GET') return conditional(shown, terms.preconditions);
  if (terms.idempotency?.replayed !== true) return shown;
  return { ...shown, headers: { ...shown.headers, 'idempotency-replayed': 'true' } };
}
