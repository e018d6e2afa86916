/** Reads the input of an endpoint from a request: parameters, query, and a body of JSON. */

import type { FastifyRequest } from 'fastify';
import { REPEATED } from '../decision/model.ts';
import { Refusal } from '../domain/errors.ts';
import { parseId, type RequestId } from '../domain/ids.ts';
import type { IncomingRequest } from './authenticate.ts';
import { isSmall } from './body-limits.ts';
import { forwardedScheme, type TrustedProxies } from './client-address.ts';
import type { RawRequestInput } from './endpoint.ts';
import { parseForm } from './form.ts';
import { headerText, headerValue } from './headers.ts';
import { parseJson } from './json.ts';

const MAX_PARAMETERS = 64;
/** Headers whose lines together are one list (RFC 9110, section 5.3). */
const LISTS: ReadonlySet<string> = new Set(['accept', 'accept-encoding', 'if-none-match']);

/** @param form true: the body is a form in place of JSON */
export function rawInput(
  request: FastifyRequest,
  incoming: IncomingRequest,
  trusted: TrustedProxies,
  form: boolean,
): RawRequestInput {
  const bytes = request.body instanceof Uint8Array ? request.body : new Uint8Array();
  const parsed = bytes.length === 0 ? undefined : form ? formOf(bytes, request) : jsonOf(bytes, request);
  const params = paramsOf(request);
  return {
    body: parsed?.value,
    allErrors: isSmall(bytes.length, parsed?.values ?? 0),
    query: queryOf(request),
    param: (name) => params[name] ?? '',
    header: (name) => (LISTS.has(name) ? headerText : headerValue)(request.raw.rawHeaders, name),
    address: incoming.address,
    throttledAs: incoming.throttledAs,
    scheme: forwardedScheme(request.raw.socket.remoteAddress, request.raw.rawHeaders, trusted),
    requestId: incoming.requestId,
    nowMs: incoming.nowMs,
  };
}

interface ParsedBody {
  readonly value: unknown;
  /** The number of values. */
  readonly values: number;
}

function formOf(bytes: Uint8Array, request: FastifyRequest): ParsedBody {
  refuseEncoded(request);
  const value = parseForm(bytes);
  return { value, values: Object.keys(value).length };
}

function refuseEncoded({ raw }: FastifyRequest): void {
  const encoding = headerValue(raw.rawHeaders, 'content-encoding');
  if (encoding === undefined) return;
  // Content codings are case-insensitive (RFC 9110, section 8.4.1).
  if (encoding === REPEATED || encoding.toLowerCase() !== 'identity')
    throw new Refusal('unsupported_media_type', 'Send the body unencoded.');
}

function jsonOf(bytes: Uint8Array, request: FastifyRequest): ParsedBody {
  refuseEncoded(request);
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

/**
 * @throws Refusal `invalid_parameter` for more parameters than any endpoint has, because validation would read each of
 * them
 */
export function refuseManyParameters(url: string): void {
  if (url.split('&', MAX_PARAMETERS + 1).length > MAX_PARAMETERS)
    throw new Refusal('invalid_parameter', `The query has more than ${MAX_PARAMETERS} parameters.`);
}

/**
 * @throws Refusal `malformed_request` for a request of HTTP/1.1 without a Host header, and for more than one (RFC 9112,
 * section 3.2)
 */
export function refuseUnclearHost({ httpVersion, rawHeaders }: FastifyRequest['raw']): void {
  const host = headerValue(rawHeaders, 'host');
  if (typeof host === 'string' || (host === undefined && httpVersion !== '1.1')) return;
  throw new Refusal('malformed_request', 'A request needs exactly one Host header.');
}

/** Returns the parameters of the query. One that is not percent-encoded UTF-8 is null, which no schema accepts. */
export function queryOf({ query, url }: FastifyRequest): Readonly<Record<string, unknown>> {
  const at = url.indexOf('?');
  const sent = at === -1 ? [] : url.slice(at + 1).split('&');
  // Fastify returns such a parameter as it was sent.
  const malformed = sent.filter((text) => !isDecodable(text)).map((text) => [text.replace(/=.*/, ''), null] as const);
  return { ...Object(query), ...Object.fromEntries(malformed) };
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

/** Returns the path parameters, percent-decoded. */
export function paramsOf({ params }: FastifyRequest): Readonly<Record<string, string | undefined>> {
  return Object.fromEntries(Object.entries(Object(params)).map(([name, value]) => [name, String(value)]));
}

/** Returns the request's id, which `genReqId` created. Fastify types it as text. */
export function requestIdOf(request: FastifyRequest): RequestId {
  const id = parseId('req', request.id);
  if (id === undefined) throw new Error('the request has no id of this server');
  return id;
}
