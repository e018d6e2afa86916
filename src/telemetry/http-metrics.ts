/** The HTTP API, as metrics. Routes are templates, so a client cannot make a series. */

import type { ErrorCode } from '../domain/errors.ts';
import type { Metrics } from './metrics.ts';

export interface AnsweredRequest {
  /** The route's; `any` for a request of no route. */
  readonly method: string;
  /** The route's template; `none` for a request of no route. */
  readonly route: string;
  readonly status: number;
  readonly tookMs: number;
}

interface RouteCount {
  readonly method: string;
  readonly route: string;
  readonly byStatus: Map<number, number>;
  totalMs: number;
}

/** Returns the function that counts each answered request. */
export function httpRequests(metrics: Metrics): (request: AnsweredRequest) => void {
  const routes = new Map<string, RouteCount>();
  const durations = metrics.histogram(
    'postern_http_request_duration_seconds',
    'Time to answer a request to the HTTP API.',
  );
  metrics.counters(
    { name: 'postern_http_requests_total', help: 'Requests to the HTTP API by route and status.' },
    ['method', 'route', 'status'],
    () =>
      [...routes.values()].flatMap(({ method, route, byStatus }) =>
        [...byStatus].map(([status, value]) => ({ labels: { method, route, status: String(status) }, value })),
      ),
  );
  metrics.counters(
    { name: 'postern_http_request_seconds_total', help: 'Time spent on requests to the HTTP API by route.' },
    ['method', 'route'],
    () =>
      [...routes.values()].map(({ method, route, totalMs }) => ({ labels: { method, route }, value: totalMs / 1000 })),
  );
  return ({ method, route, status, tookMs }) => {
    const key = `${method} ${route}`;
    const known = routes.get(key) ?? { method, route, byStatus: new Map<number, number>(), totalMs: 0 };
    routes.set(key, known);
    known.byStatus.set(status, (known.byStatus.get(status) ?? 0) + 1);
    known.totalMs += tookMs;
    durations.observe(tookMs);
  };
}

/** Returns the function that counts each refused request by its code, which the catalogue of errors bounds. */
export function httpRefusals(metrics: Metrics): (code: ErrorCode) => void {
  const counts = new Map<ErrorCode, number>();
  metrics.counters(
    { name: 'postern_http_refusals_total', help: 'Requests to the HTTP API that were answered 401 or 403, by code.' },
    ['code'],
    () => [...counts].map(([code, value]) => ({ labels: { code }, value })),
  );
  return (code) => counts.set(code, (counts.get(code) ?? 0) + 1);
}
