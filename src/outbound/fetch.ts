/**
 * One request to a server that a tenant chose. It must not reach what only this server may reach: private networks,
 * this machine, the metadata service of a cloud. The addresses of the host are resolved once, checked, and connected
 * to; no second resolution can return another address. Redirects are not followed. The whole request and the response
 * are bounded, in time and bytes. Proxies of the environment are not used.
 */

import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { request as httpsRequest, type RequestOptions } from 'node:https';
import { isIPv6, type LookupFunction } from 'node:net';
import { isLoopbackAddress } from '../decision/address.ts';
import { systemCode } from '../domain/errors.ts';
import { isPublicAddress } from './addresses.ts';
import { type ResolveHost, resolveHost } from './resolve.ts';

// Not by an import, which loads Node's fetch as well and takes 40 ms of each start.
const { request: httpRequest } = process.getBuiltinModule('node:http');

/** Bounds a response's body by default: the bound of a discovery document and of a key set. */
const MAX_BYTES = 512 * 1024;
const TIMEOUT_MS = 5_000;
/** A connection may carry this many times `maxBytes`, because each byte of a body may come in a chunk of its own. */
const MOST_FRAMING = 8;
/** The bytes of a connection beyond that: handshake, headers, interim responses (status 1xx). */
const MAX_OTHER_BYTES = 128 * 1024;
const WATCH_MS = 20;

export interface FetchRules {
  /** Hosts that may have any address, as in a URL: `host`, or `host:port` for one port. */
  readonly allowedHosts: readonly string[];
  /** The setting that has them, for messages. Default: issuers.allowed-hosts. */
  readonly allowedHostsSetting?: string;
  /** Certificate authorities in PEM, in place of those of the system. */
  readonly ca?: string | undefined;
  /** Default: 512 KiB. */
  readonly maxBytes?: number;
  /**
   * Takes the beginning of a body that is longer than `maxBytes`, breaks off, or does not end in time. Default: the
   * request has then failed.
   */
  readonly cutsBody?: boolean;
  /** Bounds everything from the resolution of the host to the last byte. Default: 5 s. */
  readonly timeoutMs?: number;
  readonly method?: 'GET' | 'POST';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Ends the request, which has then failed. */
  readonly signal?: AbortSignal | undefined;
  /** Default: the resolver of the system or of Node. */
  readonly resolve?: ResolveHost;
}

export type FetchOutcome =
  | {
      readonly kind: 'ok';
      /** Never 3xx. */
      readonly status: number;
      readonly headers: IncomingHttpHeaders;
      readonly body: Buffer;
    }
  /** One sentence for an administrator of the tenant. It names no address and has at most 300 characters. */
  | { readonly kind: 'failed'; readonly reason: string };

/** A failure with a sentence of ours. */
class FetchError extends Error {
  override readonly name = 'FetchError';
}

/** Sends one request. Never rejects. */
export async function fetchBounded(url: string, rules: FetchRules): Promise<FetchOutcome> {
  const { timeoutMs = TIMEOUT_MS, resolve = resolveHost, allowedHostsSetting = 'issuers.allowed-hosts' } = rules;
  const deadline = AbortSignal.timeout(timeoutMs);
  const signal = rules.signal === undefined ? deadline : AbortSignal.any([deadline, rules.signal]);
  try {
    const target = parseTarget(url, rules.allowedHosts, allowedHostsSetting);
    const addresses = await inTime(resolve(target.host, target.isAllowed, signal), signal).catch((error: unknown) => {
      if (signal.aborted) throw error;
      throw new FetchError('The name of the host could not be resolved.');
    });
    checkAddresses(target, addresses, allowedHostsSetting);
    return await send(target, addresses, rules, signal);
  } catch (error) {
    return { kind: 'failed', reason: deadline.aborted ? TOO_SLOW : reasonOf(error) };
  }
}

interface Target {
  readonly url: URL;
  /** Without the brackets of an IPv6 address. */
  readonly host: string;
  readonly isAllowed: boolean;
}

function parseTarget(text: string, allowedHosts: readonly string[], setting: string): Target {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== 'https:' && url.protocol !== 'http:'))
    throw new FetchError('The address is not an https URL.');
  if (url.username !== '' || url.password !== '') throw new FetchError('The URL must not have a username or password.');
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const target = { url, host, isAllowed: isAllowedHost(url, allowedHosts) };
  if (url.protocol === 'http:' && !target.isAllowed) throw new FetchError(plainHttp(setting));
  return target;
}

const CLOSED = 'The server closed the connection.';
const TOO_SLOW = 'The server did not answer completely in time.';
const plainHttp = (setting: string): string =>
  `The URL must begin with https. http is possible on loopback only, for a host in the setting ${setting}.`;
const notPublic = (setting: string): string =>
  `The host has an address that is private or reserved. The operator can permit the host by the setting ${setting}.`;

/** Reports whether the operator permits a host to have any address. The URL's parser has made the host canonical. */
function isAllowedHost({ hostname, port, protocol }: URL, allowedHosts: readonly string[]): boolean {
  const actualPort = port === '' ? (protocol === 'http:' ? '80' : '443') : port;
  return allowedHosts.some((allowed) => allowed === hostname || allowed === `${hostname}:${actualPort}`);
}

function checkAddresses({ url, isAllowed }: Target, addresses: readonly string[], setting: string): void {
  if (addresses.length === 0) throw new FetchError('The name of the host could not be resolved.');
  if (url.protocol === 'http:' && !addresses.every(isLoopbackAddress)) throw new FetchError(plainHttp(setting));
  if (!isAllowed && !addresses.every(isPublicAddress)) throw new FetchError(notPublic(setting));
}

/** Gives the checked addresses to the connection, in place of a resolution of its own. */
function pinned(addresses: readonly string[]): LookupFunction {
  const found = addresses.map((address) => ({ address, family: isIPv6(address) ? 6 : 4 }));
  return (_host, options, callback) => {
    const [first] = found;
    if (options.all === true) callback(null, found);
    else callback(null, first?.address ?? '', first?.family);
  };
}

async function send(
  { url, host }: Target,
  addresses: readonly string[],
  { ca, maxBytes = MAX_BYTES, cutsBody = false, method = 'GET', headers, body }: FetchRules,
  signal: AbortSignal,
): Promise<FetchOutcome> {
  const options: RequestOptions = {
    host,
    port: url.port === '' ? undefined : Number(url.port),
    path: `${url.pathname}${url.search}`,
    method,
    // Kubernetes answers 406 to a request for its keys that accepts JSON only.
    headers: { accept: 'application/json, application/jwk-set+json', 'accept-encoding': 'identity', ...headers },
    // A connection of its own, so that none that was checked for another host is reused.
    agent: false,
    lookup: pinned(addresses),
    signal,
    ...(ca === undefined ? {} : { ca }),
  };
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const request = (url.protocol === 'http:' ? httpRequest : httpsRequest)(options, resolve);
  // A listener for the request's whole life: an error after the response must not end the process.
  request.on('error', reject);
  // A server that switches protocols (status 101) ends the request without a response and without an error.
  request.on('close', () => reject(new FetchError(CLOSED)));
  // Interim responses, extensions of chunks and empty lines are no part of a body, and the parser takes them without an
  // end.
  let isTooMuch = false;
  const watch = setInterval(() => {
    isTooMuch = (request.socket?.bytesRead ?? 0) > MOST_FRAMING * maxBytes + MAX_OTHER_BYTES;
    if (isTooMuch) request.destroy();
  }, WATCH_MS);
  request.end(body);
  try {
    const response = await promise;
    const status = response.statusCode ?? 0;
    if (status >= 300 && status < 400) throw new FetchError(`The server redirects (status ${status}).`);
    const content = await bodyOf(response, maxBytes, cutsBody);
    // A body without a length ends with its connection, also if the bound ended that.
    if (!cutsBody) signal.throwIfAborted();
    return { kind: 'ok', status, headers: response.headers, body: content };
  } catch (error) {
    throw isTooMuch ? new FetchError('The server sends too much beside its response.') : error;
  } finally {
    clearInterval(watch);
    request.destroy();
  }
}

async function bodyOf(response: IncomingMessage, maxBytes: number, cuts: boolean): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of response.iterator({ destroyOnReturn: true })) {
      const piece = Buffer.from(chunk);
      bytes += piece.length;
      if (bytes > maxBytes && !cuts) throw new FetchError(`The response has more than ${maxBytes} bytes.`);
      chunks.push(piece);
      if (bytes >= maxBytes && cuts) break;
    }
  } catch (error) {
    if (!cuts) throw error;
  }
  return Buffer.concat(chunks).subarray(0, maxBytes);
}

/** Rejects when the signal aborts; a resolution of the system cannot be stopped. */
async function inTime<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const late = (): void => reject(signal.reason);
  signal.addEventListener('abort', late, { once: true });
  try {
    return await Promise.race([work, promise]);
  } finally {
    signal.removeEventListener('abort', late);
  }
}

/** Failures of a connection whose code shows an administrator the cause. */
const CONNECTION_FAILURES: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'The host refused the connection.',
  ECONNRESET: CLOSED,
  EHOSTUNREACH: 'The host cannot be reached.',
  ENETUNREACH: 'The host cannot be reached.',
};

/** No text of the server and no address: the reason is shown to the tenant. */
function reasonOf(error: unknown): string {
  if (error instanceof FetchError) return error.message;
  const code = codeOf(error);
  if (code === undefined) return 'The request failed.';
  const known = CONNECTION_FAILURES[code];
  if (known !== undefined) return known;
  if (/^(?:ERR_TLS|ERR_SSL|CERT_|DEPTH_ZERO|UNABLE_TO_|SELF_SIGNED|HOSTNAME_)/.test(code))
    return `The server's certificate is not accepted (${code}).`;
  return `The request failed (${code}).`;
}

function codeOf(error: unknown): string | undefined {
  const causes: readonly unknown[] = error instanceof AggregateError ? error.errors : [error];
  return causes
    .map(systemCode)
    .find((code) => code !== undefined)
    ?.slice(0, 100);
}
