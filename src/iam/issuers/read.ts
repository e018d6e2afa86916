/** Reads issuers, and shows them with the state of their keys. */

import type { TenantId } from '../../domain/ids.ts';
import type { Transaction } from '../../store/transaction.ts';
import type { Caller } from '../caller/caller.ts';
import { orNotFound, requestedId } from '../caller/refusals.ts';
import { filterOf, type List, type ListQuery, paged, scopeOf } from '../list/list.ts';
import { resourceOf } from '../schema/entity.ts';
import { type IssuerFilter, type IssuerKeysState, type IssuerResource, issuer } from './entity.ts';
import type { IssuerParts, IssuerSettings } from './parts.ts';
import { countIssuers, findIssuer, listIssuers, lockIssuer, type StoredIssuer } from './queries.ts';

export async function listIssuersPage(
  { db, issuers }: Pick<IssuerParts, 'db' | 'issuers'>,
  caller: Caller,
  query: ListQuery & IssuerFilter,
): Promise<List<IssuerResource>> {
  const filter = filterOf(query);
  const scope = scopeOf(caller);
  return paged(
    caller,
    'issuers',
    query,
    (page) => listIssuers(db.knex, scope, filter, page),
    (issuer) => [issuer.name, issuer.tenant_id],
    (issuer) => issuerResource(issuer, issuers, caller.nowMs),
    (most) => countIssuers(db.knex, scope, filter, most),
  );
}

/** @throws Refusal `not_found` */
export async function getIssuer(
  { db, issuers }: Pick<IssuerParts, 'db' | 'issuers'>,
  caller: Caller,
  text: string,
): Promise<IssuerResource> {
  const issuer = orNotFound(await findIssuer(db.knex, caller.tenant, requestedId('iss', text)), 'issuer');
  return issuerResource(issuer, issuers, caller.nowMs);
}

/** Locks an issuer of the tenant for a change. @throws Refusal `not_found` */
export async function holdIssuer(trx: Transaction, tenant: TenantId, text: string): Promise<StoredIssuer> {
  const id = requestedId('iss', text);
  await lockIssuer(trx, tenant, id, 'update');
  return orNotFound(await findIssuer(trx, tenant, id), 'issuer');
}

export function issuerResource(
  row: StoredIssuer,
  { maxStalenessMs }: Pick<IssuerSettings, 'maxStalenessMs'>,
  nowMs: number,
): IssuerResource {
  return resourceOf(issuer, row, { keys: keysState(row, maxStalenessMs, nowMs) });
}

function keysState(row: StoredIssuer, maxStalenessMs: number, nowMs: number): IssuerKeysState {
  const { jwks, jwks_set_at, key_count: count, kids } = row;
  if (jwks !== null) return { count, kids, pasted: true, fetched_at: jwks_set_at, error: null, stale: false };
  const { fetched_at, fetch_error: error } = row;
  const stale = fetched_at !== null && nowMs - fetched_at.getTime() > maxStalenessMs;
  return { count, kids, pasted: false, fetched_at, error, stale };
}
