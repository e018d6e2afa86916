/** Fetches the keys of an issuer on request. */

import { Refusal } from '../../domain/errors.ts';
import { insertAudit } from '../../store/audit-rows.ts';
import type { Caller } from '../caller/caller.ts';
import { asCaller } from '../caller/hold-caller.ts';
import { invalidField, orNotFound } from '../caller/refusals.ts';
import { actorOf, auditRow } from '../change/audit-row.ts';
import type { IssuerResource } from './entity.ts';
import type { IssuerParts } from './parts.ts';
import { findIssuer } from './queries.ts';
import { issuerIdOf, issuerResource } from './read.ts';
import { refreshIssuerKeys } from './refresh-keys.ts';

/**
 * Resolves after the issuer has answered or has not. `keys.error` of the result is the reason why the keys could not be
 * fetched; the last good keys then stay in use.
 * @throws Refusal `not_found`; `invalid_field` for pasted keys; `unavailable` if too many refreshes are under way
 */
export async function refreshIssuer(parts: IssuerParts, caller: Caller, text: string): Promise<IssuerResource> {
  const { db, issuers } = parts;
  const id = issuerIdOf(text);
  // A request to the issuer cannot be undone, so the caller's rights are verified in the database first.
  const issuer = orNotFound(await asCaller(db, caller, {}, (trx) => findIssuer(trx, caller.tenant, id)), 'issuer');
  if (issuer.jwks !== null) {
    throw invalidField('/jwks', 'The keys of this issuer are pasted, so there is nothing to fetch.');
  }
  const outcome = await refreshIssuerKeys(issuers.keys, { id, tenantId: issuer.tenant_id });
  const row = orNotFound(await findIssuer(db.knex, caller.tenant, id), 'issuer');
  if (outcome.kind === 'failed' && row.fetch_error === null) {
    throw new Refusal('unavailable', outcome.reason, { retryAfter: 1 });
  }
  const { keys } = issuerResource(row, issuers, caller.nowMs);
  const entry = {
    target: { type: 'issuer', id },
    tenant: issuer.tenant_id,
    after: { keys: keys.count, error: keys.error },
  } as const;
  const result = outcome.kind === 'ok' ? 'success' : 'failure';
  await insertAudit(db.knex, auditRow(actorOf(caller), 'issuer.refresh', entry, result));
  return issuerResource(row, issuers, caller.nowMs);
}
