/**
 * Fetches the keys of issuers on request, refuses tokens by the time at which they were issued, and deletes issuers.
 * Both of the latter end what began with the tokens.
 */

import { Refusal } from '../../domain/errors.ts';
import { insertAudit } from '../../store/audit-rows.ts';
import type { Transaction } from '../../store/transaction.ts';
import type { Caller } from '../caller/caller.ts';
import { mayGiveByIssuer } from '../caller/escalation.ts';
import { asCaller } from '../caller/hold-caller.ts';
import { invalidField, orNotFound, requestedId } from '../caller/refusals.ts';
import { actorOf, auditRow } from '../change/audit-row.ts';
import { change, preconditionsCheck } from '../change/change.ts';
import type { IssuerResource } from './entity.ts';
import type { IssuerParts } from './parts.ts';
import { deleteIssuerRow, findIssuer, type StoredIssuer, updateIssuerRow, writtenIssuer } from './queries.ts';
import { holdIssuer, issuerResource } from './read.ts';
import { countReferences, endSessionsOfIssuer, revokeProvedKeys, unlinkUsers } from './reference-queries.ts';
import { refreshIssuerKeys } from './refresh-keys.ts';
import { secondOf } from './write.ts';

/** A clock may differ from the database's by this much. */
const MAX_AHEAD_MS = 60_000;

/**
 * Refuses the tokens of an issuer that were issued before a time. A time before an earlier one has no effect. All
 * sessions that began with its tokens end, because a session does not know when its token was issued.
 * @param time RFC 3339. Default: the current second
 * @throws Refusal `not_found`; `invalid_field` for a time in the future
 */
export async function revokeBefore(
  parts: IssuerParts,
  caller: Caller,
  text: string,
  time: string | undefined,
): Promise<IssuerResource> {
  const entry = { action: 'issuer.revoke_before', target: { type: 'issuer', id: text } } as const;
  return change(parts, caller, entry, async ({ trx, caller: { tenant, nowMs }, audit, checkPreconditions }) => {
    const before = await holdIssuer(trx, tenant, text);
    checkPreconditions(issuerResource(before, parts.issuers, nowMs));
    const row = await writeRevokedBefore(trx, before, time, nowMs);
    audit.before = { revoked_before: before.revoked_before };
    audit.after = { revoked_before: row.revoked_before };
    return issuerResource(row, parts.issuers, nowMs);
  });
}

/**
 * @param time default: the current second, because most `iat` are whole seconds. A client that gets a new token at once
 *   after the call could otherwise not use it.
 * @throws Refusal `invalid_field` for a time in the future
 */
export async function writeRevokedBefore(
  trx: Transaction,
  issuer: StoredIssuer,
  time: string | undefined,
  nowMs: number,
): Promise<StoredIssuer> {
  const { id, tenant_id, revoked_before } = issuer;
  const requestedMs = time === undefined ? secondOf(nowMs) : Date.parse(time);
  if (requestedMs > nowMs + MAX_AHEAD_MS) {
    throw invalidField('/time', 'The time is in the future. Tokens that are not issued yet cannot be refused.');
  }
  if (revoked_before === null || requestedMs > revoked_before.getTime()) {
    await updateIssuerRow(trx, id, { revoked_before: new Date(requestedMs) });
  }
  await endSessionsOfIssuer(trx, id, 'all');
  return writtenIssuer(trx, tenant_id, id);
}

/** The largest number of keys, and of links of users, that one deletion ends. */
const MAX_FORCED = 10_000;

/**
 * Deletes an issuer. With `force`, it also revokes the keys with a proof of this issuer, removes the links of users and
 * the roles that its mapping gave.
 * @throws Refusal `not_found`, `in_use`; `escalation` with `force`, if the caller lacks what the keys or users have
 */
export async function deleteIssuer(parts: IssuerParts, caller: Caller, text: string, force: boolean): Promise<void> {
  const entry = { action: 'issuer.delete', target: { type: 'issuer', id: text } } as const;
  await change(parts, caller, entry, async ({ trx, caller, audit, checkPreconditions }) => {
    const issuer = await holdIssuer(trx, caller.tenant, text);
    const { keys, links } = await countReferences(trx, issuer.id, MAX_FORCED + 1);
    if (keys + links > 0) {
      if (!force) throw inUse(keys, links);
      if (keys > MAX_FORCED || links > MAX_FORCED) throw tooMany();
      await mayGiveByIssuer(trx, caller, issuer.id, { mapped: [], provesUsers: true });
    }
    checkPreconditions(issuerResource(issuer, parts.issuers, caller.nowMs));
    await removeIssuer(trx, issuer);
    audit.before = issuerResource(issuer, parts.issuers, caller.nowMs);
    audit.after = { revoked_keys: keys, unlinked: links };
  });
}

/** Ends everything that an issuer's tokens prove, and deletes it. */
export async function removeIssuer(trx: Transaction, { id }: StoredIssuer): Promise<void> {
  await endSessionsOfIssuer(trx, id, 'all');
  await revokeProvedKeys(trx, id);
  await unlinkUsers(trx, id);
  await deleteIssuerRow(trx, id);
}

function inUse(keys: number, links: number): Refusal {
  const parts = [
    ...(keys === 0 ? [] : [`API keys with a proof of this issuer: ${many(keys)}.`]),
    ...(links === 0 ? [] : [`Subjects of this issuer that are linked to users: ${many(links)}.`]),
  ];
  return new Refusal(
    'in_use',
    `${parts.join(' ')} Use force=true to revoke these keys and to remove the links and their roles.`,
  );
}

function many(count: number): string {
  return count > MAX_FORCED ? `more than ${MAX_FORCED}` : String(count);
}

function tooMany(): Refusal {
  return new Refusal(
    'in_use',
    `More than ${MAX_FORCED} keys or users refer to this issuer. Disable it, then revoke keys or delete users first.`,
  );
}

/**
 * Resolves after the issuer has answered or has not. `keys.error` of the result is the reason why the keys could not be
 * fetched; the last good keys then stay in use.
 * @throws Refusal `not_found`; `invalid_field` for pasted keys; `unavailable` if too many refreshes are under way
 */
export async function refreshIssuer(parts: IssuerParts, caller: Caller, text: string): Promise<IssuerResource> {
  const { db, issuers, writes } = parts;
  writes?.admit(caller, 'issuer.refresh');
  const id = requestedId('iss', text);
  // A request to the issuer cannot be undone, so the caller's rights are verified in the database first.
  const issuer = await asCaller(db, caller, {}, async (trx, held) => {
    const found = orNotFound(await findIssuer(trx, held.tenant, id), 'issuer');
    preconditionsCheck(held)(issuerResource(found, issuers, held.nowMs));
    return found;
  });
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
  const audit = auditRow(actorOf(caller), 'issuer.refresh', entry, result);
  await insertAudit(db.knex, audit);
  writes?.wrote(caller, [audit]);
  return issuerResource(row, issuers, caller.nowMs);
}
