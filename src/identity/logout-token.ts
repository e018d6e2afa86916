/** Logout tokens, by which an OpenID provider ends sessions (OpenID Connect Back-Channel Logout 1.0, section 2.6). */

import type { JSONWebKeySet, JWK } from 'jose';
import { decodeProtectedHeader } from 'jose/decode/protected_header';
import { createLocalJWKSet } from 'jose/jwks/local';
import { jwtVerify } from 'jose/jwt/verify';
import { isObject } from '../domain/json.ts';
import type { IssuerKey } from '../domain/records.ts';
import { isSubject } from './claims.ts';
import { hasUnreadableName } from './issuer-token-form.ts';

const EVENT = 'http://schemas.openid.net/event/backchannel-logout';
/** Older tokens are rejected, so that their ids need not be remembered for longer. */
export const LOGOUT_TOKEN_AGE_MS = 600_000;
const MAX_TOKEN_LENGTH = 16 * 1024;
/**
 * `logout+jwt` distinguishes a logout token from tokens of another kind. Providers that are older than the final
 * specification send no type of its own.
 */
const TYPES: ReadonlySet<string | undefined> = new Set([undefined, 'JWT', 'logout+jwt', 'application/logout+jwt']);

export interface LogoutToken {
  /** The session at the provider. Undefined: all sessions of the subject end. */
  readonly sid: string | undefined;
  readonly subject: string | undefined;
  readonly jti: string;
}

interface LogoutRules {
  readonly issuer: string;
  readonly clientId: string;
  readonly keys: readonly IssuerKey[];
  readonly algorithms: readonly string[];
  readonly leewaySeconds: number;
  readonly nowMs: number;
}

/** Returns undefined for a token that is not valid now. */
export async function verifyLogoutToken(token: string, rules: LogoutRules): Promise<LogoutToken | undefined> {
  if (!mayBeParsed(token)) return undefined;
  const verified = await signedToken(token, rules);
  if (verified === undefined) return undefined;
  const { payload, protectedHeader } = verified;
  const { jti, sid, sub, events } = payload;
  if (!TYPES.has(protectedHeader.typ) || 'nonce' in payload || !isLogout(events)) return undefined;
  if (!isText(jti) || !(sid === undefined || isText(sid)) || !(sub === undefined || isText(sub))) return undefined;
  return sid === undefined && sub === undefined ? undefined : { sid, subject: sub, jti };
}

function mayBeParsed(token: string): boolean {
  return token.length <= MAX_TOKEN_LENGTH && !hasUnreadableName(token);
}

async function signedToken(token: string, rules: LogoutRules) {
  const keys: JSONWebKeySet = { keys: rules.keys.map((key): JWK => ({ ...key })) };
  try {
    return await jwtVerify(token, createLocalJWKSet(keys), {
      issuer: rules.issuer,
      audience: rules.clientId,
      algorithms: [...rules.algorithms],
      clockTolerance: rules.leewaySeconds,
      maxTokenAge: LOGOUT_TOKEN_AGE_MS / 1000,
      requiredClaims: ['iss', 'aud', 'iat', 'jti', 'events'],
      currentDate: new Date(rules.nowMs),
    });
  } catch {
    return undefined;
  }
}

function isLogout(events: unknown): boolean {
  return isObject(events) && isObject(events[EVENT]);
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && isSubject(value);
}

/** Returns the name of the key in an unverified token; undefined for a text without one. */
export function logoutKid(token: string): string | undefined {
  if (!mayBeParsed(token)) return undefined;
  try {
    const { kid } = decodeProtectedHeader(token);
    return typeof kid === 'string' ? kid : undefined;
  } catch {
    return undefined;
  }
}
