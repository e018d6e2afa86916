/** The claims of an access token (RFC 9068 and our own), read from a payload whose signature has been verified. */

import { parseId, parseTenantId, type SessionId, type TenantId, type UserId } from '../domain/ids.ts';

interface TokenClaims {
  readonly userId: UserId;
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
  const userId = typeof sub === 'string' ? parseId('usr', sub) : undefined;
  const sessionId = typeof sid === 'string' ? parseId('ses', sid) : undefined;
  const tenantId = typeof tenant_id === 'string' ? parseTenantId(tenant_id) : undefined;
  if (
    userId === undefined ||
    sessionId === undefined ||
    tenantId === undefined ||
    typeof jti !== 'string' ||
    jti === ''
  ) {
    return undefined;
  }
  // Postern never writes `nbf`. A token with it requires a check that does not exist here.
  if (!isSeconds(iat) || !isSeconds(exp) || claims['nbf'] !== undefined) {
    return undefined;
  }
  return { userId, sessionId, tenantId, iat, exp };
}

function isSeconds(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}
