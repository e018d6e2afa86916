/**
 * The cookie with a browser's refresh token. Scripts cannot read it, the browser sends it only to /v1/auth, and pages
 * of other sites cannot make the browser send it. The server also checks the Origin header, for browsers that do not
 * enforce SameSite.
 */

import type { HeaderValue } from '../../decision/model.ts';

const NAME = 'postern_refresh';
/**
 * A page without TLS, and another server of the domain, cannot set a cookie with this prefix. `__Host-` does not permit
 * a path.
 */
const SECURE_NAME = `__Secure-${NAME}`;
const ATTRIBUTES = 'Path=/v1/auth; HttpOnly; Secure; SameSite=Strict';

export type CookieName = typeof NAME | typeof SECURE_NAME;

/**
 * Chrome accepts no prefixed cookie from a page without TLS, not even from http://localhost, whose Secure cookies it
 * accepts.
 */
export function cookieName(scheme: 'https' | 'http'): CookieName {
  return scheme === 'https' ? SECURE_NAME : NAME;
}

/** @param maxAgeMs the lifetime of an unused token */
export function setCookie(name: CookieName, token: string, maxAgeMs: number): string {
  return `${name}=${token}; Max-Age=${Math.floor(maxAgeMs / 1000)}; ${ATTRIBUTES}`;
}

export function clearCookie(name: CookieName): string {
  return `${name}=; Max-Age=0; ${ATTRIBUTES}`;
}

/**
 * Returns the refresh token of a Cookie header (RFC 6265, section 4.2). Undefined if there is none, or more than one.
 */
export function readCookie(header: HeaderValue, name: string): string | undefined {
  if (typeof header !== 'string') return undefined;
  const values = header
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`))
    .map((pair) => pair.slice(name.length + 1));
  return values.length === 1 && values[0] !== '' ? values[0] : undefined;
}
