/** The operator's commands on issuers. There is no caller whose permissions count. */

import { parseIssuerName, type TenantId } from '../../domain/ids.ts';
import { insertAudit } from '../../store/audit-rows.ts';
import type { Queryable } from '../../store/queryable.ts';
import type { AdminParts } from '../caller/caller.ts';
import { onlyOneNamed, orNotFound } from '../caller/refusals.ts';
import { auditRow, OPERATOR } from '../change/audit-row.ts';
import { changeAsSystem } from '../change/change.ts';
import { lockTenant } from '../tenants/queries.ts';
import { findIssuer, type IssuerRef, issuersNamed, lockIssuer } from './queries.ts';
import { type KeyRefreshParts, type RefreshOutcome, refreshIssuerKeys } from './refresh-keys.ts';
import { writeRevokedBefore } from './revoke.ts';

type OperatorParts = Pick<AdminParts, 'db' | 'feed' | 'flush' | 'now'>;

/**
 * @param tenant the tenant of the issuer; undefined if its name is unique
 * @throws Refusal `not_found`; `invalid_parameter` if several tenants have an issuer with that name and no tenant is
 *   named
 */
export async function issuerOfName(q: Queryable, text: string, tenant: TenantId | undefined): Promise<IssuerRef> {
  const name = parseIssuerName(text);
  return onlyOneNamed(name === undefined ? [] : await issuersNamed(q, name), 'issuer', text, tenant);
}

/** Fetches the keys of an issuer now, and records the attempt. */
export async function refreshAsOperator(keys: KeyRefreshParts, { id, tenant_id }: IssuerRef): Promise<RefreshOutcome> {
  const outcome = await refreshIssuerKeys(keys, { id, tenantId: tenant_id });
  const after = outcome.kind === 'ok' ? { keys: outcome.keys.length } : { error: outcome.reason };
  const entry = { target: { type: 'issuer', id }, tenant: tenant_id, after } as const;
  const result = outcome.kind === 'ok' ? 'success' : 'failure';
  await insertAudit(keys.db.knex, auditRow(OPERATOR, 'issuer.refresh', entry, result));
  return outcome;
}

/**
 * Refuses the tokens of an issuer that were issued before a time, as `revokeBefore` does.
 * @param time RFC 3339. Default: the current second
 * @returns the time before which tokens are refused
 * @throws Refusal `not_found`; `invalid_field` for a time in the future
 */
export async function revokeBeforeAsOperator(
  parts: OperatorParts,
  { id, tenant_id }: IssuerRef,
  time: string | undefined,
): Promise<Date> {
  const target = { type: 'issuer', id } as const;
  return changeAsSystem(parts, OPERATOR, { action: 'issuer.revoke_before', target }, async (trx, audit) => {
    // The changes of callers hold the tenant, so none of a session that ends here commits later.
    await lockTenant(trx, tenant_id, 'update');
    await lockIssuer(trx, tenant_id, id, 'update');
    const before = orNotFound(await findIssuer(trx, tenant_id, id), 'issuer');
    const { revoked_before } = await writeRevokedBefore(trx, before, time, parts.now());
    audit.tenant = tenant_id;
    audit.before = { revoked_before: before.revoked_before };
    audit.after = { revoked_before };
    return revoked_before ?? new Date(parts.now());
  });
}
