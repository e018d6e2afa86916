/** The page that sent a request, for the checks of its cookie. */

import type { HeaderValue } from '../../decision/model.ts';
import type { ForwardedScheme, Scheme } from '../../http/client-address.ts';

export interface PageHeaders {
  readonly origin: HeaderValue;
  readonly host: HeaderValue;
  /** The scheme of the client's connection, as a trusted proxy reports it. */
  readonly scheme: ForwardedScheme;
}

/**
 * Reports whether a page of this server sent the request. Its origins are the configured ones. By default, it is the
 * origin that `Host` names: with the scheme that a trusted proxy reports, without a report `https`, and also `http` for
 * a loopback host. A request without Origin, or with `null`, has no page.
 * @param origins `http.origins`, such as `https://ai.example.com`; undefined: not configured
 */
export function isOwnOrigin({ origin, host, scheme }: PageHeaders, origins: readonly string[] | undefined): boolean {
  if (typeof origin !== 'string') return false;
  const sent = origin.toLowerCase();
  if (origins !== undefined) return origins.some((own) => own.toLowerCase() === sent);
  if (typeof host !== 'string' || host === '') return false;
  const [, sentScheme, sentHost] = /^(https?):\/\/([^/]+)$/.exec(sent) ?? [];
  if (!schemesOf(host, scheme).some((own) => own === sentScheme)) return false;
  const usualPort = sentScheme === 'https' ? ':443' : ':80';
  const own = host.toLowerCase();
  return sentHost === own || `${sentHost}${usualPort}` === own;
}

/**
 * Returns the origin at which the browser has this server, for addresses that another server sends the browser back to:
 * the configured origin of the request's host, by default the first one; without a configuration, that of `Host`.
 * @returns undefined without a readable `Host`
 */
export function ownOrigin(page: PageHeaders, origins: readonly string[] | undefined): string | undefined {
  const host = typeof page.host === 'string' ? page.host.toLowerCase() : '';
  if (origins !== undefined) return origins.find((own) => new URL(own).host === host) ?? origins[0];
  return HOST.test(host) && page.scheme !== 'unreadable' ? `${pageScheme(page)}://${host}` : undefined;
}

/** A name, an IPv4 address or an IPv6 address in brackets, with or without a port. */
const HOST = /^(?:[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.?|\[[0-9a-f:.]+\])(?::\d{1,5})?$/;

/** Returns the scheme of the page: that of its Origin, otherwise that of the connection. */
export function pageScheme({ origin, host, scheme }: PageHeaders): Scheme {
  const sent = typeof origin === 'string' ? /^(https?):/i.exec(origin)?.[1]?.toLowerCase() : undefined;
  if (sent === 'https' || sent === 'http') return sent;
  if (scheme === 'https' || scheme === 'http') return scheme;
  return typeof host === 'string' && isLoopback(host) ? 'http' : 'https';
}

/**
 * A browser stores no Secure cookie of a page without TLS, except from loopback, where `http` is a page of this
 * machine.
 */
function schemesOf(host: string, scheme: ForwardedScheme): readonly Scheme[] {
  switch (scheme) {
    case 'https':
    case 'http':
      return [scheme];
    case 'unreadable':
      return [];
    case undefined:
      return isLoopback(host) ? ['https', 'http'] : ['https'];
    default:
      return scheme satisfies never;
  }
}

const LOOPBACK = /^(?:(?:[a-z0-9-]+\.)*localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i;

function isLoopback(host: string): boolean {
  return LOOPBACK.test(host);
}
