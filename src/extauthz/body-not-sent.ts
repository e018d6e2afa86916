/** The fault of a body that Envoy did not send: an error for each route, made once, so that a flood of such requests costs no stack traces. */

import { BODY_SETTING } from '../decision/body.ts';
import type { Route } from '../decision/model.ts';
import { Fault } from '../domain/errors.ts';

/** Returns the fault of a route. */
export function notSentFaults(): (route: Route) => Fault {
  const faults = new Map<Route, Fault>();
  return (route) => {
    const known = faults.get(route);
    if (known !== undefined) return known;
    const fault = new Fault(
      `Envoy did not send the body of ${route.method} ${route.template}, which the decision reads. Set ${BODY_SETTING} for this route, or use the configuration that postern envoy config prints`,
    );
    faults.set(route, fault);
    return fault;
  };
}
