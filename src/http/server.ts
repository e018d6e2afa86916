/**
 * The HTTP listener: parses requests strictly, admits callers, runs endpoints, and sends every error as problem
 * details.
 */

import type { Socket } from 'node:net';
import {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  fastify,
  LogController,
} from 'fastify';
import { Refusal } from '../domain/errors.ts';
import { makeId } from '../domain/ids.ts';
import type { RefusedRequest } from '../iam/change/refusal-windows.ts';
import type { AnsweredRequest } from '../telemetry/http-metrics.ts';
import type { Tracing } from '../telemetry/tracing.ts';
import { type AdmissionParts, admitEarly, admittedNow, principalOf } from './admission.ts';
import { MAX_BODY_BYTES } from './body-limits.ts';
import type { Answer, Endpoint } from './endpoint.ts';
import {
  isAbortedUpload,
  refusalOf,
  refuseUnknown,
  refuseUnreadable,
  sendProblem,
  unknownPath,
  unsupportedType,
} from './error-responses.ts';
import { headerText } from './headers.ts';
import { runWithPreconditions } from './preconditions.ts';
import { type AppliedEverywhere, withPreference } from './prefer.ts';
import { type PathTarget, refusedRequest } from './refused.ts';
import { rawInput, refuseManyParameters, refuseUnclearHost, requestIdOf } from './request-input.ts';
import { sendStream } from './streams.ts';
import { traceRequests } from './traces.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    readonly target?: PathTarget | undefined;
    readonly form?: boolean;
    readonly oauth?: boolean;
  }
}

interface HttpParts extends AdmissionParts {
  /** Bytes from a secure source. */
  readonly random: (size: number) => Uint8Array;
  /** Default: no request waits for other replicas. */
  readonly appliedEverywhere?: AppliedEverywhere;
  /** Called for each request whose client disconnected, or took too long, before the request was complete. */
  readonly onAbortedUpload?: () => void;
  /** Called after each response, also if the client disconnected before it was complete. */
  readonly onAnswered?: (request: AnsweredRequest) => void;
  /** Called for each request that is answered 401 or 403, before the answer. Must not throw. */
  readonly onRefused?: (refused: RefusedRequest) => void;
  /** Reports whether the process is stopping. Its responses then close their connections. Default: never. */
  readonly draining?: () => boolean;
  /** Default: no log. */
  readonly log?: FastifyBaseLogger;
  /** Default: no traces. */
  readonly tracing?: Tracing | undefined;
}

const MAX_HEADER_BYTES = 32_768;
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 30_000;
const KEEP_ALIVE_TIMEOUT_MS = 75_000;
const MAX_CONNECTIONS = 4_096;
/** The labels of all requests that no endpoint matches, because clients choose their methods and paths. */
const NO_ROUTE = { method: 'any', route: 'none' } as const;

/** Creates the server. It does not listen yet; `listen` and `close` are the instance's own. */
export function createHttp(parts: HttpParts, endpoints: readonly Endpoint[]): FastifyInstance {
  const options = {
    bodyLimit: MAX_BODY_BYTES,
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    trustProxy: false,
    // While the process drains, requests that still arrive get normal responses.
    return503OnClosing: false,
    // One logger for all requests. Log lines name the request themselves.
    childLoggerFactory: (logger: FastifyBaseLogger) => logger,
    logController: new LogController({ disableRequestLogging: true }),
    // Node would answer a request without Host itself, without a problem document.
    http: { maxHeaderSize: MAX_HEADER_BYTES, headersTimeout: HEADERS_TIMEOUT_MS, requireHostHeader: false },
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: 512 },
    genReqId: () => makeId('req', parts.now(), parts.random(10)),
    frameworkErrors: (_error: Error, request: FastifyRequest, reply: FastifyReply) => {
      // Fastify runs no hooks for a path that it cannot decode.
      setHeaders(parts, request, reply);
      sendProblem(unknownPath(), request, reply);
      parts.onAnswered?.({ ...NO_ROUTE, status: reply.statusCode, tookMs: reply.elapsedTime });
    },
    clientErrorHandler: (_error: Error, socket: Socket) => {
      refuseUnreadable(parts, socket);
    },
  };
  const server: FastifyInstance = fastify(
    parts.log === undefined ? options : { ...options, loggerInstance: parts.log },
  );
  server.server.maxConnections = MAX_CONNECTIONS;
  // Node would answer an unknown expectation with a 417 without a body. A server may ignore it (RFC 9110, section 10.1.1).
  server.server.on('checkExpectation', (request, response) => server.server.emit('request', request, response));
  acceptBodies(server);

  // First, so that all other hooks run within the request's span.
  if (parts.tracing !== undefined) traceRequests(server, parts.tracing);
  server.addHook('onRequest', async (request, reply) => {
    setHeaders(parts, request, reply);
    // Before the body is read.
    refuseUnclearHost(request.raw);
    if (request.is404) return refuseUnknown(endpoints, request, reply);
    refuseManyParameters(request.url);
    return undefined;
  });
  server.addHook('onResponse', async (request, reply) => {
    const { method, url: route } = request.routeOptions;
    const matched = route === undefined || request.is404 ? NO_ROUTE : { method: String(method), route };
    parts.onAnswered?.({ ...matched, status: reply.statusCode, tookMs: reply.elapsedTime });
  });
  server.setErrorHandler((error, request, reply) => {
    if (isAbortedUpload(error, request)) {
      parts.onAbortedUpload?.();
      request.log.debug({ reqId: request.id }, 'a client went away before its request was complete');
    } else {
      const refusal = refusalOf(error, request);
      if (refusal instanceof Refusal) reportRefused(parts, request, refusal);
      else request.log.error({ err: error, reqId: request.id }, 'a request could not be answered');
    }
    sendProblem(error, request, reply);
  });
  server.setNotFoundHandler((request, reply) => refuseUnknown(endpoints, request, reply));

  for (const endpoint of endpoints) addEndpoint(server, parts, endpoint);
  return server;
}

/** Sets the headers that every response has. An endpoint may replace `cache-control`. */
function setHeaders({ draining }: HttpParts, request: FastifyRequest, reply: FastifyReply): void {
  reply.header('x-request-id', request.id);
  reply.header('x-content-type-options', 'nosniff');
  reply.header('cache-control', 'no-store');
  // A proxy that reuses connections could send a request on a connection that closes at that moment, without knowing
  // whether the server processed it. So each response closes its connection, and none is idle when the listener closes.
  if (draining?.() === true) reply.header('connection', 'close');
}

/** Bodies are read as bytes: JSON, for PATCH a JSON merge patch, and for the endpoints that take it a form. */
function acceptBodies(server: FastifyInstance): void {
  server.removeAllContentTypeParsers();
  for (const [type, isForm] of [
    [/^application\/json\s*(?:;\s*charset="?utf-8"?\s*)?$/i, false],
    [/^application\/x-www-form-urlencoded\s*(?:;\s*charset="?utf-8"?\s*)?$/i, true],
  ] as const) {
    server.addContentTypeParser(type, { parseAs: 'buffer' }, (request, body, done) => {
      if ((request.routeOptions.config.form === true) === isForm) done(null, body);
      else done(unsupportedType(request));
    });
  }
  server.addContentTypeParser(
    /^application\/merge-patch\+json\s*(?:;\s*charset="?utf-8"?\s*)?$/i,
    { parseAs: 'buffer' },
    (request, body, done) => {
      if (request.method === 'PATCH') done(null, body);
      else done(unsupportedType(request));
    },
  );
}

function addEndpoint(server: FastifyInstance, parts: HttpParts, endpoint: Endpoint): void {
  server.route({
    config: { target: endpoint.target, form: endpoint.form, oauth: endpoint.oauth },
    method: endpoint.method,
    url: endpoint.path,
    // Fastify checks Content-Length before it reads a body, otherwise the bytes that have arrived.
    bodyLimit: endpoint.maxBodyBytes,
    // Before the body is read: a caller that is not admitted does not make the server parse anything.
    onRequest: async (request) => admitEarly(parts, endpoint, request),
    handler: async (request, reply) => {
      const admitted = await admittedNow(parts, endpoint, request);
      const input = rawInput(request, admitted.incoming, parts.trusted, endpoint.form);
      const { rawHeaders } = request.raw;
      const answer = await runWithPreconditions(endpoint, input, admitted.callers, (name) =>
        headerText(rawHeaders, name),
      );
      return send(await withPreference(answer, endpoint, rawHeaders, parts.appliedEverywhere), reply);
    },
  });
}

function send(answer: Answer, reply: FastifyReply): FastifyReply {
  reply.status(answer.status).headers(answer.headers ?? {});
  if (answer.file !== undefined) return reply.type(answer.file.type).send(answer.file.bytes);
  if (answer.stream !== undefined) return sendStream(answer.stream, reply);
  return answer.body === undefined ? reply.send() : reply.type('application/json').send(JSON.stringify(answer.body));
}

function reportRefused({ onRefused, trusted }: HttpParts, request: FastifyRequest, refusal: Refusal): void {
  if (onRefused === undefined) return;
  const refused = refusedRequest(request, refusal, {
    id: requestIdOf(request),
    principal: principalOf(request),
    target: request.routeOptions.config.target,
    trusted,
  });
  if (refused !== undefined) onRefused(refused);
}
