/** The HTTP door: reads requests strictly, lets callers in, runs endpoints, and writes every error in one shape. */

import type { Socket } from 'node:net';
import {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  fastify,
  LogController,
} from 'fastify';
import type { CredentialResolver } from '../credential-cache/resolution.ts';
import type { Principal } from '../decision/model.ts';
import { isPlatformAdmin } from '../decision/tenant.ts';
import { Refusal } from '../domain/errors.ts';
import { makeId, parseId, type RequestId, type TenantId } from '../domain/ids.ts';
import { refuseRotated } from '../iam/caller/admission.ts';
import { authorize } from '../iam/caller/authorize.ts';
import type { Caller } from '../iam/caller/caller.ts';
import type { RefusedRequest } from '../iam/change/refusal-windows.ts';
import type { AnsweredRequest } from '../telemetry/http-metrics.ts';
import type { Tracing } from '../telemetry/tracing.ts';
import { authenticate, type IncomingRequest, type NamedTenant } from './authenticate.ts';
import { isSmall, MAX_BODY_BYTES, sizeText } from './body-limits.ts';
import { sourceOf, type TrustedProxies } from './client-address.ts';
import type { Answer, Callers, Endpoint, RawRequestInput } from './endpoint.ts';
import { headerText, headerValue } from './headers.ts';
import { type JsonResult, parseJson } from './json.ts';
import { allowedMethods } from './known-paths.ts';
import { MERGE_PATCH } from './patch.ts';
import { runWithPreconditions } from './preconditions.ts';
import { type AppliedEverywhere, withPreference } from './prefer.ts';
import { problemOf } from './problems.ts';
import { type PathTarget, refusedRequest } from './refused.ts';
import { forwardedScheme } from './scheme.ts';
import { sendStream } from './streams.ts';
import { traceRequests } from './traces.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    readonly target?: PathTarget | undefined;
  }
}

export interface HttpParts {
  readonly resolver: CredentialResolver;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Bytes from a secure source. */
  readonly random: (size: number) => Uint8Array;
  readonly trusted: TrustedProxies;
  /**
   * The tenant of the user or key of an id; undefined = there is none. Called only for platform administrators. Default: ids are looked
   * up in the effective tenant.
   */
  readonly homeOf?: (id: string) => Promise<TenantId | undefined>;
  /** Default: no request waits for other replicas. */
  readonly appliedEverywhere?: AppliedEverywhere;
  /** Called for each request with X-Forwarded-For from a peer that is not trusted. */
  readonly onUntrustedForwarding?: (peer: string) => void;
  /** Called for each request whose client went away, or took too long, before the request was complete. */
  readonly onAbortedUpload?: () => void;
  /** Called after each answer, also if the client went away before it was complete. */
  readonly onAnswered?: (request: AnsweredRequest) => void;
  /** Called for each request that is answered 401 or 403, before the answer. Must not throw. */
  readonly onRefused?: (refused: RefusedRequest) => void;
  /** Reports whether the process is stopping: its answers then end their connections. Default: never. */
  readonly draining?: () => boolean;
  /** Absent: nothing is logged. */
  readonly log?: FastifyBaseLogger;
  /** Default: no traces. */
  readonly tracing?: Tracing | undefined;
}

const MAX_HEADER_BYTES = 32_768;
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 30_000;
const KEEP_ALIVE_TIMEOUT_MS = 75_000;
const MAX_CONNECTIONS = 4_096;
/** Of one query. */
const MAX_PARAMETERS = 64;
/** Names all requests that no endpoint matches: their methods and paths are the clients' choice. */
const NO_ROUTE = { method: 'any', route: 'none' } as const;

/** Not listening yet; `listen` and `close` are the instance's own. */
export function createHttp(parts: HttpParts, endpoints: readonly Endpoint[]): FastifyInstance {
  const options = {
    bodyLimit: MAX_BODY_BYTES,
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    trustProxy: false,
    // While draining, what still arrives is answered like everything else.
    return503OnClosing: false,
    // One for all: what is logged of a request names it.
    childLoggerFactory: (logger: FastifyBaseLogger) => logger,
    logController: new LogController({ disableRequestLogging: true }),
    http: { maxHeaderSize: MAX_HEADER_BYTES, headersTimeout: HEADERS_TIMEOUT_MS },
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: 512 },
    genReqId: () => makeId('req', parts.now(), parts.random(10)),
    frameworkErrors: (_error: Error, request: FastifyRequest, reply: FastifyReply) => {
      sendProblem(notFound(), request, reply);
      // Fastify runs no hooks for a path that it cannot decode.
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

  server.removeAllContentTypeParsers();
  server.addContentTypeParser(
    /^application\/json\s*(?:;\s*charset="?utf-8"?\s*)?$/i,
    { parseAs: 'buffer' },
    (_request, body, done) => {
      done(null, body);
    },
  );
  server.addContentTypeParser(
    /^application\/merge-patch\+json\s*(?:;\s*charset="?utf-8"?\s*)?$/i,
    { parseAs: 'buffer' },
    (request, body, done) => {
      if (request.method === 'PATCH') done(null, body);
      else done(unsupportedType(request));
    },
  );

  // First, so that all other hooks run within the request's span.
  if (parts.tracing !== undefined) traceRequests(server, parts.tracing);
  server.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id);
    reply.header('x-content-type-options', 'nosniff');
    reply.header('cache-control', 'no-store');
    // A proxy that keeps its connections would send a request on one that closes at that moment, and could not tell whether it was
    // processed. So connections end with an answer, and no idle one is left when the listener closes.
    if (parts.draining?.() === true) reply.header('connection', 'close');
    // Before the body is read, whatever is said about it: what is not here takes none.
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

/** The result of `admit` before the body was read, for the handler of the same request. */
const admissions = new WeakMap<FastifyRequest, Admitted>();

/** The principals that requests have proved. */
const principals = new WeakMap<FastifyRequest, Principal>();

interface Admitted {
  readonly incoming: IncomingRequest;
  readonly callers: Callers | undefined;
}

function addEndpoint(server: FastifyInstance, parts: HttpParts, endpoint: Endpoint): void {
  server.route({
    config: { target: endpoint.target },
    method: endpoint.method,
    url: endpoint.path,
    // By its Content-Length before it is read, otherwise by what has come of it.
    bodyLimit: endpoint.maxBodyBytes,
    // Before the body is read: a caller that is not admitted does not make the server parse anything.
    onRequest: async (request) => {
      admissions.set(request, await admit(parts, endpoint, request));
    },
    handler: async (request, reply) => {
      const admitted = await admittedNow(parts, endpoint, request);
      const input = rawInput(request, admitted.incoming, parts.trusted);
      const { rawHeaders } = request.raw;
      const answer = await runWithPreconditions(endpoint, input, admitted.callers, (name) =>
        headerText(rawHeaders, name),
      );
      return send(await withPreference(answer, endpoint, rawHeaders, parts.appliedEverywhere), reply);
    },
  });
}

/** Admits the caller again if a body was read: it may have taken half a minute to come, and the caller's rights may have ended since. */
async function admittedNow(parts: HttpParts, endpoint: Endpoint, request: FastifyRequest): Promise<Admitted> {
  const first = admissions.get(request);
  if (first === undefined) throw new Error(`${endpoint.path} was reached without admission`);
  return endpoint.method === 'GET' || endpoint.access === 'public' ? first : admit(parts, endpoint, request);
}

async function admit(parts: HttpParts, endpoint: Endpoint, request: FastifyRequest): Promise<Admitted> {
  const { rawHeaders, socket } = request.raw;
  const { address, throttledAs, untrustedForwarder } = sourceOf(socket.remoteAddress, rawHeaders, parts.trusted);
  if (untrustedForwarder !== undefined && !admissions.has(request)) parts.onUntrustedForwarding?.(untrustedForwarder);
  const incoming: IncomingRequest = {
    rawHeaders,
    address,
    throttledAs,
    requestId: requestIdOf(request),
    nowMs: parts.now(),
    onProved: (principal) => principals.set(request, principal),
  };
  if (endpoint.access === 'public') return { incoming, callers: undefined };
  const { access } = endpoint;
  const enter = (named: NamedTenant | undefined): Promise<Caller> =>
    authenticate(parts.resolver, incoming, access, named);
  const named = endpoint.takesTenant ? tenantParameter(request) : undefined;
  const allowed = (caller: Caller): Caller => {
    if (access !== 'any' && access !== 'use-case') authorize(caller, access);
    return caller;
  };
  const entered = await atHomeOf(parts, endpoint, request, await enter(named), (home) =>
    enter({ text: home, every: false }),
  );
  if (endpoint.writes) refuseRotated(entered.principal);
  const caller = allowed(entered);
  return {
    incoming,
    callers: {
      caller,
      again: async () =>
        allowed(await authenticate(parts.resolver, { ...incoming, nowMs: parts.now() }, access, named)),
      callerIn: async (tenantId) => (tenantId === undefined ? caller : enter({ text: tenantId, every: false })),
    },
  };
}

/**
 * Admits a platform administrator that names no tenant to the tenant of the user or key that the path names. The ids of users and keys are
 * unique across tenants.
 */
async function atHomeOf(
  { homeOf }: HttpParts,
  { target }: Endpoint,
  request: FastifyRequest,
  caller: Caller,
  enter: (home: TenantId) => Promise<Caller>,
): Promise<Caller> {
  const isNamed =
    headerValue(request.raw.rawHeaders, 'x-tenant-id') !== undefined || queryOf(request)['tenant_id'] !== undefined;
  if (
    homeOf === undefined ||
    isNamed ||
    !isPlatformAdmin(caller.principal) ||
    (target?.type !== 'user' && target?.type !== 'api_key')
  )
    return caller;
  const home = await homeOf(paramsOf(request)[target.param] ?? '');
  return home === undefined || home === caller.tenant ? caller : enter(home);
}

/** A repeated one is no single text and is refused by the query's schema. */
function tenantParameter(request: FastifyRequest): NamedTenant | undefined {
  const value = queryOf(request)['tenant_id'];
  return typeof value === 'string' ? { text: value, every: true } : undefined;
}

function rawInput(request: FastifyRequest, incoming: IncomingRequest, trusted: TrustedProxies): RawRequestInput {
  const bytes = request.body instanceof Uint8Array ? request.body : new Uint8Array();
  const json = bytes.length === 0 ? undefined : jsonOf(bytes, request);
  const params = paramsOf(request);
  return {
    body: json?.value,
    allErrors: isSmall(bytes.length, json?.values ?? 0),
    query: queryOf(request),
    param: (name) => params[name] ?? '',
    header: (name) => headerValue(request.raw.rawHeaders, name),
    address: incoming.address,
    throttledAs: incoming.throttledAs,
    scheme: forwardedScheme(request.raw.socket.remoteAddress, request.raw.rawHeaders, trusted),
    requestId: incoming.requestId,
    nowMs: incoming.nowMs,
  };
}

function jsonOf(bytes: Uint8Array, request: FastifyRequest): Extract<JsonResult, { kind: 'json' }> {
  const encoding = headerValue(request.raw.rawHeaders, 'content-encoding');
  if (encoding !== undefined && encoding !== 'identity')
    throw new Refusal('unsupported_media_type', 'Send the body unencoded.');
  const result = parseJson(bytes);
  switch (result.kind) {
    case 'error':
      throw new Refusal('invalid_json', result.message);
    case 'excessive':
      throw new Refusal('invalid_field', result.message, { errors: [{ path: '', message: result.message }] });
    case 'json':
      return result;
    default:
      return result satisfies never;
  }
}

/** @throws Refusal `invalid_parameter`. No endpoint has so many, and each unknown one would be looked at. */
function refuseManyParameters(url: string): void {
  let count = 0;
  for (let at = url.indexOf('&'); at !== -1; at = url.indexOf('&', at + 1)) {
    if (++count < MAX_PARAMETERS) continue;
    throw new Refusal('invalid_parameter', `The query has more than ${MAX_PARAMETERS} parameters.`);
  }
}

function queryOf(request: FastifyRequest): Readonly<Record<string, unknown>> {
  return typeof request.query === 'object' && request.query !== null ? { ...request.query } : {};
}

/** Path parameters, percent-decoded. */
function paramsOf({ params }: FastifyRequest): Readonly<Record<string, string | undefined>> {
  return Object.fromEntries(Object.entries(Object(params)).map(([name, value]) => [name, String(value)]));
}

function send(answer: Answer, reply: FastifyReply): FastifyReply {
  reply.status(answer.status).headers(answer.headers ?? {});
  if (answer.file !== undefined) return reply.type(answer.file.type).send(answer.file.bytes);
  if (answer.stream !== undefined) return sendStream(answer.stream, reply);
  return answer.body === undefined ? reply.send() : reply.type('application/json').send(JSON.stringify(answer.body));
}

/** A wrong method, or a wrong path. */
function refuseUnknown(endpoints: readonly Endpoint[], request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const allowed = allowedMethods(endpoints, request.url);
  if (allowed.length > 0) reply.header('allow', allowed.join(', '));
  sendProblem(allowed.length > 0 ? methodNotAllowed(request.method) : notFound(), request, reply);
  return reply;
}

function sendProblem(cause: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const error = refusalOf(cause, request);
  const { status, headers, body } = problemOf(error, request.id);
  // Paths that cannot be decoded come here before any hook has run.
  reply.header('x-request-id', request.id);
  reply.status(status).headers(headers).type('application/problem+json').send(JSON.stringify(body));
}

/** Clients leave as they like, so their leaving is no fault of this server. A fault while the body is under way is another error. */
function isAbortedUpload(cause: unknown, { raw }: FastifyRequest): boolean {
  return !raw.complete && cause instanceof Error && cause === raw.errored;
}

function reportRefused({ onRefused, trusted }: HttpParts, request: FastifyRequest, refusal: Refusal): void {
  if (onRefused === undefined) return;
  const refused = refusedRequest(request, refusal, {
    id: requestIdOf(request),
    principal: principals.get(request),
    target: request.routeOptions.config.target,
    trusted,
  });
  if (refused !== undefined) onRefused(refused);
}

/** What the framework itself refuses, in the words of the catalogue; anything else passes as it is. */
function refusalOf(cause: unknown, request: FastifyRequest): unknown {
  const code = typeof cause === 'object' && cause !== null && 'code' in cause ? cause.code : undefined;
  switch (code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new Refusal('body_too_large', `The body is larger than ${sizeText(request.routeOptions.bodyLimit)}.`);
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
    case 'FST_ERR_CTP_INVALID_TYPE':
      return unsupportedType(request);
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return new Refusal('malformed_request', 'The body is not as long as its Content-Length.');
    default:
      return cause;
  }
}

function notFound(): Refusal {
  return new Refusal('not_found', 'There is nothing here.');
}

function unsupportedType({ method }: FastifyRequest): Refusal {
  const types = method === 'PATCH' ? `application/json or ${MERGE_PATCH}` : 'application/json';
  return new Refusal('unsupported_media_type', `Send the body as ${types} in UTF-8.`);
}

function methodNotAllowed(method: string): Refusal {
  return new Refusal('method_not_allowed', `${method} is not supported here.`);
}

/** Fastify types its ids as text; they are all made by `genReqId`. */
function requestIdOf(request: FastifyRequest): RequestId {
  const id = parseId('req', request.id);
  if (id === undefined) throw new Error('the request has no id of ours');
  return id;
}

/** What Node's parser refuses never becomes a request: it is answered on the socket, which is then closed. */
function refuseUnreadable(parts: HttpParts, socket: Socket): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const refusal = new Refusal('malformed_request', 'The request cannot be read as HTTP/1.1.');
  const id = makeId('req', parts.now(), parts.random(10));
  const { status, body } = problemOf(refusal, id);
  const text = JSON.stringify(body);
  const head = [
    `HTTP/1.1 ${status} Bad Request`,
    'Content-Type: application/problem+json',
    `Content-Length: ${Buffer.byteLength(text)}`,
    `X-Request-ID: ${id}`,
    'Connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${text}`);
}
