/** Metrics of the HTTP API. Labels have path templates, so a client cannot create a series. */

import type { ErrorCode } from '../domain/errors.ts';
import { counter, histogram } from './metric-definition.ts';
import type { Metrics } from './metrics.ts';

export const HTTP_METRICS = {
  postern_http_requests_total: counter(['method', 'route', 'status'], 'Requests to the HTTP API by route and status.', {
    explanation:
      '`route` is the template, such as `/v1/iam/users/:id`; `none` if no route matches. Requests that are not HTTP do not count.',
  }),
  postern_http_request_seconds_total: counter(['method', 'route'], 'Time spent on requests to the HTTP API by route.'),
  postern_http_request_duration_seconds: histogram('Time to answer a request to the HTTP API.', {
    explanation: 'From the headers of the request to the end of its answer. An export counts with its whole duration.',
  }),
  postern_http_refusals_total: counter(['code'], 'Requests to the HTTP API that were answered 401 or 403, by code.', {
    explanation: 'A [sample](api.md#rejected-requests) of them is in the audit log.',
  }),
  postern_http_aborted_uploads_total: counter([], 'API requests whose client disconnected before they were complete.', {
    explanation: 'A request that is not complete within 30 s counts as well.',
  }),
} as const;

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

/** Returns the function that counts each request whose client disconnected before it was complete. */
export function abortedUploads(metrics: Metrics): () => void {
  let count = 0;
  metrics.show('postern_http_aborted_uploads_total', () => count);
  return () => {
    count++;
  };
}
