/**
 * The cookie that carries a browser's refresh token. Scripts cannot read it, it goes to /v1/auth alone, and other sites' pages cannot
 * make the browser send it; where a browser does not keep that promise, the Origin header is looked at too.
 */

import type { HeaderValue } from '../../decision/model.ts';

const NAME = 'postern_refresh';
/** A page that came without TLS, and another server of the domain, cannot set a cookie with this prefix. The path rules `__Host-` out. */
const SECURE_NAME = `__Secure-${NAME}`;
const ATTRIBUTES = 'Path=/v1/auth; HttpOnly; Secure; SameSite=Strict';

export type CookieName = typeof NAME | typeof SECURE_NAME;

/** Chrome takes no prefixed cookie from a page without TLS, not even from http://localhost, whose Secure cookies it takes. */
export function cookieName(scheme: 'https' | 'http'): CookieName {
  return scheme === 'https' ? SECURE_NAME : NAME;
}

/** @param maxAgeMs how long the token may lie unused */
export function setCookie(name: CookieName, token: string, maxAgeMs: number): string {
  return `${name}=${token}; Max-Age=${Math.floor(maxAgeMs / 1000)}; ${ATTRIBUTES}`;
}

export function clearCookie(name: CookieName): string {
  return `${name}=; Max-Age=0; ${ATTRIBUTES}`;
}

/** The refresh token of a Cookie header (RFC 6265, section 4.2); undefined when there is none, or more than one. */
export function readCookie(header: HeaderValue, name: CookieName): string | undefined {
  if (typeof header !== 'string') return undefined;
  const values = header
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`))
    .map((pair) => pair.slice(name.length + 1));
  return values.length === 1 && values[0] !== '' ? values[0] : undefined;
}
