/** A span for each sampled request to the API, named by the endpoint's path template. */

import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Span, Tracing } from '../telemetry/tracing.ts';
import { headerText } from './headers.ts';

const FIRST_SERVER_ERROR = 500;

export function traceRequests(server: FastifyInstance, tracing: Tracing): void {
  const spans = new WeakMap<FastifyRequest, Span>();
  /** Runs the following hooks within the request's span. */
  const enter = (request: FastifyRequest, next: () => void): void => {
    const span = spans.get(request);
    if (span === undefined) next();
    else tracing.within(span, next);
  };

  server.addHook('onRequest', (request, _reply, next) => {
    const { method, url = 'unknown path' } = request.routeOptions;
    const span = tracing.request(`${String(method)} ${url}`, headerText(request.raw.rawHeaders, 'traceparent'));
    if (span !== undefined) {
      span.set({ 'http.request.method': request.method, 'http.route': url, 'postern.request_id': request.id });
      spans.set(request, span);
    }
    enter(request, next);
  });
  // The end of the body is an event of the connection, outside the request's context.
  server.addHook('preValidation', (request, _reply, next) => enter(request, next));
  server.addHook('onResponse', (request, reply, next) => {
    const span = spans.get(request);
    const { statusCode } = reply;
    span?.set({ 'http.response.status_code': statusCode });
    span?.end(statusCode >= FIRST_SERVER_ERROR ? new Error(`status ${statusCode}`) : undefined);
    next();
  });
}
