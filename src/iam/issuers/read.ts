/** Reads issuers. */

import { type IssuerId, parseId, type TenantId } from '../../domain/ids.ts';
import type { Transaction } from '../../store/transaction.ts';
import type { Caller } from '../caller/caller.ts';
import { orNotFound } from '../caller/refusals.ts';
import { type List, type ListQuery, paged, scopeOf } from '../list/list.ts';
import type { IssuerResource } from './entity.ts';
import type { IssuerParts } from './parts.ts';
import { countIssuers, findIssuer, type IssuerFilter, listIssuers, lockIssuer, type StoredIssuer } from './queries.ts';
import { issuerResource } from './resource.ts';

export async function listIssuersPage(
  { db, issuers }: Pick<IssuerParts, 'db' | 'issuers'>,
  caller: Caller,
  query: ListQuery & IssuerFilter,
): Promise<List<IssuerResource>> {
  const { limit: _limit, cursor: _cursor, count: _count, ...filter } = query;
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
  const issuer = orNotFound(await findIssuer(db.knex, caller.tenant, issuerIdOf(text)), 'issuer');
  return issuerResource(issuer, issuers, caller.nowMs);
}

/** Locks an issuer of the tenant for a change. @throws Refusal `not_found` */
export async function holdIssuer(trx: Transaction, tenant: TenantId, text: string): Promise<StoredIssuer> {
  const id = issuerIdOf(text);
  await lockIssuer(trx, tenant, id, 'update');
  return orNotFound(await findIssuer(trx, tenant, id), 'issuer');
}

/** @throws Refusal `not_found` for any text that cannot be an id */
export function issuerIdOf(text: string): IssuerId {
  return orNotFound(parseId('iss', text), 'issuer');
}
