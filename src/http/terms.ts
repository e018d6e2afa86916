/** Runs a route on the terms that the request's headers set: what the resource must be like, and that asking again does nothing twice. */

import type { Caller } from '../iam/caller/caller.ts';
import { readIdempotentRequest } from './idempotency.ts';
import { conditional, type HeaderLines, readPreconditions, tagged } from './preconditions.ts';
import type { Answer, Callers, RawAsk, Route } from './route.ts';

/** @throws Refusal as the route does; `invalid_parameter` for malformed terms */
export async function runOnTerms(
  route: Route,
  ask: RawAsk,
  callers: Callers | undefined,
  header: HeaderLines,
): Promise<Answer> {
  if (callers === undefined) return route.run(ask, undefined);
  const terms = { preconditions: readPreconditions(header), idempotency: readIdempotentRequest(route, ask) };
  const on = (caller: Caller): Caller => ({ ...caller, ...terms });
  const answer = await route.run(ask, {
    caller: on(callers.caller),
    again: callers.again,
    callerIn: async (tenantId) => on(await callers.callerIn(tenantId)),
  });
  const shown = route.answers[answer.status]?.headers?.includes('etag') === true ? tagged(answer) : answer;
  if (route.method === 'GET') return conditional(shown, terms.preconditions);
  if (terms.idempotency?.replayed !== true) return shown;
  return { ...shown, headers: { ...shown.headers, 'idempotency-replayed': 'true' } };
}
