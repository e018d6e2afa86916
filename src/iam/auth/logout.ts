/**
 * Logouts: the session of a refresh token or an access token ends. A repeated logout changes nothing and is no error.
 */

import { Refusal } from '../../domain/errors.ts';
import type { SessionId } from '../../domain/ids.ts';
import { isRefreshToken, opaqueDigest } from '../../identity/opaque-tokens.ts';
import { tenantTransaction } from '../../store/transaction.ts';
import { invalidCredential } from '../caller/admission.ts';
import { holdAlone } from '../caller/queries.ts';
import { applyHere } from '../change/change.ts';
import { endSession, sessionOfToken, sessionOwner } from '../sessions/queries.ts';
import { record } from './audit.ts';
import type { AuthParts, Provenance } from './parts.ts';
import type { PresentedToken } from './refresh.ts';

export interface LoggedOut {
  readonly id: SessionId;
  /** False: it had ended before. */
  readonly endedNow: boolean;
}

/**
 * A token that is unknown, or was sent in the wrong way, has no session to end. The response is the same.
 * @returns the session of the token; undefined = it has none
 */
export async function logoutByRefreshToken(
  parts: AuthParts,
  presented: PresentedToken,
  from: Provenance,
): Promise<LoggedOut | undefined> {
  if (!isRefreshToken(presented.text)) return undefined;
  const found = await sessionOfToken(parts.db.knex, opaqueDigest(presented.text));
  if (found === undefined || found.cookie !== (presented.via === 'cookie')) return undefined;
  return { id: found.id, endedNow: await end(parts, found.id, from) };
}

/**
 * Verifies the token, but not that its session is active, because a repeated logout is no error.
 * @throws Refusal `token_expired` or `invalid_credential` if the token proves no session
 */
export async function logoutByAccessToken(parts: AuthParts, token: string, from: Provenance): Promise<void> {
  const verified = await parts.tokens.verify(token);
  switch (verified.kind) {
    case 'valid':
      await end(parts, verified.sessionId, from);
      return;
    case 'expired':
      throw new Refusal('token_expired', 'The access token has expired. Log out with the refresh token.');
    case 'invalid':
    case 'foreign':
      throw invalidCredential();
    default:
      return verified satisfies never;
  }
}

/** Returns true if the session ended now. */
async function end(parts: AuthParts, id: SessionId, from: Provenance): Promise<boolean> {
  // A session never changes its owner, and an owner never changes its tenant.
  const owner = await sessionOwner(parts.db.knex, id);
  if (owner === undefined) return false;
  const { user_id: userId, api_key_id: keyId, tenant_id: tenantId } = owner;
  const ended = await tenantTransaction(parts.db, tenantId, async (trx) => {
    await holdAlone(trx, tenantId, id);
    if (!(await endSession(trx, id))) return false;
    await record(trx, from, {
      action: 'auth.logout',
      actor: userId ?? keyId ?? undefined,
      tenant: tenantId,
      target: { type: 'session', id },
      result: 'success',
    });
    return true;
  });
  if (ended) await applyHere(parts);
  return ended;
}
