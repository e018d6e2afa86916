/** The claims of an access token (RFC 9068 and our own), read from a payload whose signature has been verified. */

import { type KeyId, parseId, parseTenantId, type SessionId, type TenantId, type UserId } from '../domain/ids.ts';
import { isObject } from '../domain/json.ts';

interface TokenClaims {
  /** The user or the key whose session it is. */
  readonly subject: { readonly kind: 'user'; readonly id: UserId } | { readonly kind: 'api_key'; readonly id: KeyId };
  readonly sessionId: SessionId;
  readonly tenantId: TenantId;
  /** Seconds since the epoch. */
  readonly iat: number;
  readonly exp: number;
}

/**
 * Returns the claims if all required ones have their type and issuer and audience are exactly ours; otherwise
 * undefined. Does not check times.
 */
export function readClaims(payload: string, issuer: string, audience: string): TokenClaims | undefined {
  const claims = parseObject(payload);
  if (claims === undefined || claims['iss'] !== issuer || claims['aud'] !== audience) {
    return undefined;
  }
  const { sub, sid, tenant_id, jti, iat, exp } = claims;
  const subject = typeof sub === 'string' ? subjectOf(sub) : undefined;
  const sessionId = typeof sid === 'string' ? parseId('ses', sid) : undefined;
  const tenantId = typeof tenant_id === 'string' ? parseTenantId(tenant_id) : undefined;
  if (
    subject === undefined ||
    sessionId === undefined ||
    tenantId === undefined ||
    typeof jti !== 'string' ||
    jti === ''
  ) {
    return undefined;
  }
  if (!isSeconds(iat) || !isSeconds(exp)) {
    return undefined;
  }
  // The token of a narrowed session has `nbf`, equal to `iat`. Servers that do not know `scope` reject it.
  if (claims['nbf'] !== (claims['scope'] === undefined ? undefined : iat)) {
    return undefined;
  }
  return { subject, sessionId, tenantId, iat, exp };
}

function subjectOf(sub: string): TokenClaims['subject'] | undefined {
  const userId = parseId('usr', sub);
  if (userId !== undefined) return { kind: 'user', id: userId };
  const keyId = parseId('key', sub);
  return keyId && { kind: 'api_key', id: keyId };
}

function isSeconds(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

function parseObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
