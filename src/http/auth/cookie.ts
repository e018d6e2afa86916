/**
 * The cookie that carries a browser's refresh token. Scripts cannot read it, it goes to /v1/auth alone, and other sites' pages cannot
 * make the browser send it; where a browser does not keep that promise, the Origin header is looked at too.
 */

import { type HeaderValue, REPEATED } from '../../decision/model.ts';

const NAME = 'postern_refresh';
const ATTRIBUTES = 'Path=/v1/auth; HttpOnly; Secure; SameSite=Strict';

/** @param maxAgeMs how long the token may lie unused */
export function setCookie(token: string, maxAgeMs: number): string {
  return `${NAME}=${token}; Max-Age=${Math.floor(maxAgeMs / 1000)}; ${ATTRIBUTES}`;
}

export function clearCookie(): string {
  return `${NAME}=; Max-Age=0; ${ATTRIBUTES}`;
}

/** The refresh token of a Cookie header (RFC 6265, section 4.2); undefined when there is none, or more than one. */
export function readCookie(header: HeaderValue): string | undefined {
  if (header === undefined || header === REPEATED) return undefined;
  const values = header
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${NAME}=`))
    .map((pair) => pair.slice(NAME.length + 1));
  return values.length === 1 && values[0] !== '' ? values[0] : undefined;
}

/**
 * Whether a page of our own sent the request. Without `origins` ours is the host that the request names; no Origin, or `null`, is
 * nobody's.
 * @param origins `http.origins`, such as `https://ai.example.com`
 */
export function isOwnOrigin(origin: HeaderValue, host: HeaderValue, origins: readonly string[] | undefined): boolean {
  if (origin === undefined || origin === REPEATED) return false;
  const sent = origin.toLowerCase();
  if (origins !== undefined) return origins.some((own) => own.toLowerCase() === sent);
  if (host === undefined || host === REPEATED || host === '') return false;
  const [, scheme, sentHost] = /^(https?):\/\/([^/]+)$/.exec(sent) ?? [];
  const usualPort = scheme === 'https' ? ':443' : ':80';
  const own = host.toLowerCase();
  return sentHost === own || `${sentHost}${usualPort}` === own;
}
