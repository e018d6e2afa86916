/** Error responses: rejections by endpoints, by the framework and by Node's parser, all as problem details. */

import type { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Refusal, systemCode } from '../domain/errors.ts';
import { makeId } from '../domain/ids.ts';
import { sizeText } from './body-limits.ts';
import type { Endpoint } from './endpoint.ts';
import { FORM } from './form.ts';
import { oauthError } from './oauth-errors.ts';
import { MERGE_PATCH } from './patch.ts';
import { problemOf } from './problems.ts';

/** Rejects a request that no endpoint matches: 405 with `Allow` if the path is known, otherwise 404. */
export function refuseUnknown(
  endpoints: readonly Endpoint[],
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  const allowed = allowedMethods(endpoints, request.url);
  if (allowed.length > 0) reply.header('allow', allowed.join(', '));
  sendProblem(allowed.length > 0 ? methodNotAllowed(request.method) : unknownPath(), request, reply);
  return reply;
}

export function sendProblem(cause: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const error = refusalOf(cause, request);
  const { status, headers, body } = problemOf(error, request.id);
  const isOAuth = request.routeOptions.config.oauth === true;
  reply
    .status(status)
    .headers(headers)
    .type(isOAuth ? 'application/json' : 'application/problem+json')
    .send(JSON.stringify(isOAuth ? oauthError(body) : body));
}

/**
 * Reports whether the client disconnected before its request was complete. A fault during that time is another error.
 */
export function isAbortedUpload(cause: unknown, { raw }: FastifyRequest): boolean {
  return !raw.complete && cause instanceof Error && cause === raw.errored;
}

/** Returns the Refusal for an error of the framework, and every other error unchanged. */
export function refusalOf(cause: unknown, request: FastifyRequest): unknown {
  switch (systemCode(cause)) {
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

export function unknownPath(): Refusal {
  return new Refusal('not_found', 'No endpoint has this path. GET /docs shows all of them.');
}

export function unsupportedType({ method, routeOptions }: FastifyRequest): Refusal {
  const json = method === 'PATCH' ? `application/json or ${MERGE_PATCH}` : 'application/json';
  const types = routeOptions.config.form === true ? FORM : json;
  return new Refusal('unsupported_media_type', `Send the body as ${types} in UTF-8.`);
}

function methodNotAllowed(method: string): Refusal {
  return new Refusal('method_not_allowed', `${method} is not supported here.`);
}

/** Answers on the socket when Node's parser rejects the bytes of a request, and closes it. */
export function refuseUnreadable(
  parts: { readonly now: () => number; readonly random: (size: number) => Uint8Array },
  socket: Socket,
): void {
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
    'Cache-Control: no-store',
    'X-Content-Type-Options: nosniff',
    'Connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${text}`);
}

/** Returns the methods for the `Allow` header; empty if no endpoint has this path. HEAD comes with GET. */
function allowedMethods(endpoints: readonly Pick<Endpoint, 'method' | 'path'>[], url: string): readonly string[] {
  const path = url.split('?', 1)[0] ?? '';
  const segments = segmentsOf(path);
  const methods = endpoints
    .filter((endpoint) => matches(segmentsOf(endpoint.path), segments))
    .map((endpoint) => endpoint.method);
  return methods.includes('GET') ? [...methods, 'HEAD'] : methods;
}

function segmentsOf(path: string): readonly string[] {
  return path.replace(/(?<=.)\/$/, '').split('/');
}

/** `*` at the end of a template matches one segment or more. */
function matches(template: readonly string[], segments: readonly string[]): boolean {
  if (template.at(-1) === '*') {
    const fixed = template.slice(0, -1);
    return segments.length > fixed.length && matches(fixed, segments.slice(0, fixed.length));
  }
  return (
    template.length === segments.length &&
    template.every((part, i) => (part.startsWith(':') ? segments[i] !== '' : part === segments[i]))
  );
}
