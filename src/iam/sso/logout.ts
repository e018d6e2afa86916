/**
 * Logouts of sessions that began at a provider: the provider ends them by a logout token (OpenID Connect Back-Channel
 * Logout 1.0), and a user that logs out here may also log out at the provider.
 */

import type { IssuerId, SessionId } from '../../domain/ids.ts';
import { LOGOUT_TOKEN_AGE_MS, type LogoutToken, logoutKid, verifyLogoutToken } from '../../identity/logout-token.ts';
import { opaqueDigest } from '../../identity/opaque-tokens.ts';
import { insertAudit } from '../../store/audit-rows.ts';
import { tenantTransaction } from '../../store/transaction.ts';
import { ownOrigin, type PageHeaders } from '../auth/origin.ts';
import type { Provenance } from '../auth/parts.ts';
import { applyHere } from '../change/change.ts';
import { openIdToken } from './id-token.ts';
import { SIGN_IN, type SsoParts } from './parts.ts';
import { ProviderError } from './provider.ts';
import { endSsoSessions, findSsoIssuer, issuerOfSession, noteLogout, type SsoIssuer, useOnce } from './queries.ts';
import { logoutDigest, NO_SID, STATE_KEPT_MS } from './state.ts';

/** The shortest time between two fetches of an issuer's keys that unknown keys cause. */
const REFRESH_EVERY_MS = 5_000;

/**
 * Ends the sessions that a logout token names, and writes an audit row for each. A session that has ended already, or
 * that began at another server, is no error. Rejects with a Fault if the store is unavailable.
 * @returns false for a token that is not valid, or that was used before
 */
export async function logoutByProvider(
  parts: SsoParts,
  issuerId: IssuerId | undefined,
  token: string,
  from: Provenance,
): Promise<boolean> {
  const issuer = issuerId === undefined ? undefined : await findSsoIssuer(parts.db.knex, issuerId);
  if (issuer === undefined) return false;
  const logout = await verified(parts, issuer, token, from);
  if (logout === undefined) return false;
  const { sid, subject, jti } = logout;
  const digest = opaqueDigest(`logout ${issuer.id} ${jti}`);
  // A login whose ID token names no session may be of this one.
  const sids = sid === undefined || subject === undefined ? [sid] : [sid, NO_SID];
  const names = sids.map((one) => logoutDigest(issuer.id, one, subject));
  await noteLogout(parts.db.knex, names, digest, STATE_KEPT_MS);
  const ended = await tenantTransaction(parts.db, issuer.tenantId, async (trx) => {
    if (!(await useOnce(trx, digest, 2 * LOGOUT_TOKEN_AGE_MS))) return undefined;
    const sessions = await endSsoSessions(trx, { issuerId: issuer.id, sid, subject });
    for (const { id, userId } of sessions) {
      await insertAudit(trx, {
        ...{ actorType: 'system', tenantId: issuer.tenantId, address: from.address },
        ...{ action: 'auth.logout', targetType: 'session', targetId: id, result: 'success' },
        after: { issuer: issuer.name, user_id: userId },
        requestId: from.requestId,
      });
    }
    return sessions.length;
  });
  if (ended !== undefined && ended > 0) await applyHere(parts);
  return ended !== undefined;
}

/** A provider that has just changed its keys signs with one that the last fetch did not bring. */
async function verified(
  parts: SsoParts,
  issuer: SsoIssuer,
  token: string,
  from: Provenance,
): Promise<LogoutToken | undefined> {
  const first = await verifyBy(issuer, token, from);
  if (first !== undefined || issuer.pastedKeys !== null) return first;
  const kid = logoutKid(token);
  if (kid === undefined || issuer.keys.some((key) => key['kid'] === kid)) return undefined;
  if (issuer.keysTriedMs !== null && issuer.keysTriedMs < REFRESH_EVERY_MS) return undefined;
  await parts.sso.refreshKeys(issuer);
  const renewed = await findSsoIssuer(parts.db.knex, issuer.id);
  return renewed === undefined ? undefined : verifyBy(renewed, token, from);
}

function verifyBy(
  { issuer, sso, keys, algorithms, leewaySeconds }: SsoIssuer,
  token: string,
  { nowMs }: Provenance,
): Promise<LogoutToken | undefined> {
  return verifyLogoutToken(token, { issuer, clientId: sso.client_id, keys, algorithms, leewaySeconds, nowMs });
}

/**
 * Returns a function that gives the address at which the browser also ends the provider's session; undefined for a
 * session that did not begin at a provider, and for a provider that has no such address or does not respond. The
 * provider sends the browser back to the sign-in page.
 */
export function providerLogoutOf(parts: SsoParts): (id: SessionId, page: PageHeaders) => Promise<string | undefined> {
  return async (id, page) => {
    const origin = ownOrigin(page, parts.origins);
    return origin === undefined ? undefined : logoutUrl(parts, id, `${origin}${SIGN_IN}`);
  };
}

async function logoutUrl(parts: SsoParts, id: SessionId, returnTo: string): Promise<string | undefined> {
  const session = await issuerOfSession(parts.db.knex, id);
  const issuer = session === undefined ? undefined : await findSsoIssuer(parts.db.knex, session.issuerId);
  if (session === undefined || issuer === undefined) return undefined;
  const { idTokenSealed: sealed } = session;
  const idToken = sealed === null ? undefined : openIdToken(parts, id, sealed);
  try {
    return await parts.sso.providers.endSessionUrl(issuer, idToken, returnTo);
  } catch (error) {
    if (error instanceof ProviderError) return undefined;
    throw error;
  }
}
