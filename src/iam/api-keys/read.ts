/** Reads keys: with `admin:keys` all of the tenant, otherwise the caller's own. */

import { parseId } from '../../domain/ids.ts';
import type { Transaction } from '../../store/transaction.ts';
import { authorize, isAuthorized } from '../caller/authorize.ts';
import { type AdminParts, type Caller, selfId } from '../caller/caller.ts';
import type { HeldCaller } from '../caller/hold-caller.ts';
import { notFound } from '../caller/refusals.ts';
import { type List, paged, scopeOf } from '../list/list.ts';
import type { CatalogParts } from '../permissions/catalog.ts';
import { type Noticed, noticedKey } from '../permissions/notices.ts';
import { type KeyOwnerResource, type KeyResource, type KeyRow, keyResource } from './entity.ts';
import { countKeys, type KeyFilter, listKeys, ownersOf } from './list-queries.ts';
import { platformPermissions } from './platform-permissions.ts';
import { findKey, lockKey } from './queries.ts';
import { type KeyFilterQuery, type KeyListQuery, keyOrders } from './schemas.ts';

const DAY_MS = 86_400_000;

/** Without `admin:keys`, a user sees its own keys. */
export async function listKeysPage(
  parts: AdminParts & CatalogParts,
  caller: Caller,
  query: KeyListQuery,
): Promise<List<KeyResource & Noticed & { readonly owner?: KeyOwnerResource | null }>> {
  const named = keyFilterOf(caller, query);
  const widerThan = query.wider_than_used === true ? platformPermissions(parts.routes) : undefined;
  const filter = named && { ...named, widerThan };
  const order = keyOrders.orderOf(query);
  const now = new Date(caller.nowMs);
  const withOwners = query.include === 'owner';
  if (withOwners)
    authorize(caller, 'admin:users', { self: filter?.userId !== undefined && filter.userId === selfId(caller) });
  const scope = scopeOf(caller);
  return paged(
    caller,
    'api-keys',
    keyOrders.inOrder(query),
    async (page) => {
      if (filter === undefined) return [];
      const { rows, more } = await listKeys(parts.db.knex, scope, filter, page, now, order);
      const owners = withOwners ? await ownersOf(parts.db.knex, rows) : undefined;
      return { rows: rows.map((key) => ({ key, owners })), more };
    },
    ({ key }) => key.position,
    ({ key, owners }) => {
      const shown = noticedKey(parts, keyResource(key, caller.nowMs));
      return owners === undefined ? shown : { ...shown, owner: owners.get(key.id) ?? null };
    },
    async (most) => (filter === undefined ? 0 : countKeys(parts.db.knex, scope, filter, now, most)),
  );
}

/**
 * The filter for the keys that the caller may see among those of the query.
 * @returns undefined if `user_id` or `created_by` is no id, so that no key matches
 * @throws Refusal of the decision
 */
export function keyFilterOf(caller: Caller, query: KeyFilterQuery): KeyFilter | undefined {
  const { status, issuer, prefix, q, unused_days: days, without_expiry: withoutExpiry } = query;
  const self = selfId(caller);
  const named = query.user_id ?? (isAuthorized(caller, 'admin:keys') ? undefined : self);
  authorize(caller, 'admin:keys', { self: named !== undefined && named === self });
  const userId = named === undefined ? undefined : parseId('usr', named);
  if (named !== undefined && userId === undefined) return undefined;
  const createdBy =
    query.created_by === undefined ? undefined : (parseId('usr', query.created_by) ?? parseId('key', query.created_by));
  if (query.created_by !== undefined && createdBy === undefined) return undefined;
  const expiresBefore = query.expires_before === undefined ? undefined : new Date(query.expires_before);
  const unusedSince = days === undefined ? undefined : new Date(caller.nowMs - days * DAY_MS);
  const searchesOwners = isAuthorized(caller, 'admin:users');
  return { status, userId, createdBy, expiresBefore, withoutExpiry, unusedSince, issuer, prefix, q, searchesOwners };
}

/** @throws Refusal of the decision; `not_found` */
export async function getKey(parts: AdminParts, caller: Caller, text: string): Promise<KeyResource> {
  return keyResource(await readKey(parts, caller, text), caller.nowMs);
}

/** @throws Refusal of the decision; `not_found` */
export async function readKey(parts: AdminParts, caller: Caller, text: string): Promise<KeyRow> {
  const id = parseId('key', text);
  return admitted(caller, id && (await findKey(parts.db.knex, caller.tenant, id)));
}

/**
 * Locks a key until the transaction ends.
 * @throws Refusal of the decision; `not_found`
 */
export async function holdKey(trx: Transaction, caller: HeldCaller, text: string): Promise<KeyRow> {
  const id = parseId('key', text);
  return admitted(caller, id && (await lockKey(trx, caller.tenant, id, 'update')));
}

/** Checks the permission first: a caller without it gets the same refusal, whether or not the key exists. */
function admitted(caller: Caller, key: KeyRow | undefined): KeyRow {
  const owner = key?.user_id ?? undefined;
  authorize(caller, 'admin:keys', { self: owner !== undefined && owner === selfId(caller) });
  if (key === undefined) throw notFound('key');
  return key;
}
