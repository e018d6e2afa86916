/** Metrics of the HTTP API. Labels have path templates, so a client cannot create a series. */

import type { ErrorCode } from '../domain/errors.ts';
import type { Metrics } from './metrics.ts';

export interface AnsweredRequest {
  /** The endpoint's; `any` if no endpoint matches the request. */
  readonly method: string;
  /** The endpoint's path template; `none` if no endpoint matches the request. */
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
  const durations = metrics.histogram('postern_http_request_duration_seconds');
  metrics.show('postern_http_requests_total', () =>
    [...routes.values()].flatMap(({ method, route, byStatus }) =>
      [...byStatus].map(([status, count]) => [method, route, String(status), count] as const),
    ),
  );
  metrics.show('postern_http_request_seconds_total', () =>
    [...routes.values()].map(({ method, route, totalMs }) => [method, route, totalMs / 1000]),
  );
  return ({ method, route, status, tookMs }) => {
    const key = `${method} ${route}`;
    const known = routes.getOrInsertComputed(key, () => ({ method, route, byStatus: new Map(), totalMs: 0 }));
    known.byStatus.set(status, (known.byStatus.get(status) ?? 0) + 1);
    known.totalMs += tookMs;
    durations.observe(tookMs);
  };
}

/** Returns the function that counts each rejected request by its code, which the error catalog bounds. */
export function httpRefusals(metrics: Metrics): (code: ErrorCode) => void {
  const counts = new Map<ErrorCode, number>();
  metrics.show('postern_http_refusals_total', () => counts);
  return (code) => counts.set(code, (counts.get(code) ?? 0) + 1);
}
