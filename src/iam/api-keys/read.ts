/** Reading keys. */

import { Refusal } from '../../domain/errors.ts';
import { parseId } from '../../domain/ids.ts';
import { authorize, isAuthorized } from '../caller/authorize.ts';
import { type AdminParts, type Caller, selfId } from '../caller/caller.ts';
import { type List, type ListQuery, paged, scopeOf } from '../list/list.ts';
import type { CatalogParts } from '../permissions/catalog.ts';
import { type Noticed, noticedKey } from '../permissions/notices.ts';
import { readableKey } from './access.ts';
import { countKeys, type KeyFilter, type KeyStatus, listKeys } from './queries.ts';
import { type KeyResource, keyResource } from './resource.ts';

export interface KeyListQuery extends ListQuery {
  readonly status?: KeyStatus;
  readonly user_id?: string;
  /** The id of the user or the key that created it. */
  readonly created_by?: string;
  /** RFC 3339 */
  readonly expires_before?: string;
  /** The beginning of the shown prefix. */
  readonly prefix?: string;
  /** Any part of name, description or metadata. */
  readonly q?: string;
}

/** Without `admin:keys` a user sees its own keys, whatever the filter does not say. */
export async function listKeysPage(
  parts: AdminParts & CatalogParts,
  caller: Caller,
  query: KeyListQuery,
): Promise<List<KeyResource & Noticed>> {
  const filter = keyFilterOf(caller, query);
  const now = new Date(caller.nowMs);
  const scope = scopeOf(caller);
  return paged(
    caller,
    'api-keys',
    query,
    async (page) => (filter === undefined ? [] : listKeys(parts.db.knex, scope, filter, page, now)),
    (key) => [key.id],
    (key) => noticedKey(parts, keyResource(key, caller.nowMs)),
    async (most) => (filter === undefined ? 0 : countKeys(parts.db.knex, scope, filter, now, most)),
  );
}

export type KeyFilterQuery = Omit<KeyListQuery, keyof ListQuery>;

/**
 * The keys that the caller may see among those of the query.
 * @returns undefined when there are none, because `user_id` or `created_by` is no id
 * @throws Refusal of the decision, `invalid_parameter`
 */
export function keyFilterOf(caller: Caller, query: KeyFilterQuery): KeyFilter | undefined {
  const { status, prefix, q } = query;
  const self = selfId(caller);
  const named = query.user_id ?? (isAuthorized(caller, 'admin:keys') ? undefined : self);
  authorize(caller, 'admin:keys', { self: named !== undefined && named === self });
  const userId = named === undefined ? undefined : parseId('usr', named);
  if (named !== undefined && userId === undefined) return undefined;
  const createdBy =
    query.created_by === undefined ? undefined : (parseId('usr', query.created_by) ?? parseId('key', query.created_by));
  if (query.created_by !== undefined && createdBy === undefined) return undefined;
  const expiresBefore = query.expires_before === undefined ? undefined : new Date(query.expires_before);
  if (expiresBefore !== undefined && Number.isNaN(expiresBefore.getTime())) {
    throw new Refusal('invalid_parameter', 'expires_before must be an RFC 3339 time, such as 2026-11-30T12:00:00Z.', {
      param: 'expires_before',
    });
  }
  return {
    ...(status === undefined ? {} : { status }),
    ...(userId === undefined ? {} : { userId }),
    ...(createdBy === undefined ? {} : { createdBy }),
    ...(expiresBefore === undefined ? {} : { expiresBefore }),
    ...(prefix === undefined ? {} : { prefix }),
    ...(q === undefined ? {} : { q }),
  };
}

/** @throws Refusal of the decision; `not_found` */
export async function getKey(parts: AdminParts, caller: Caller, id: string): Promise<KeyResource> {
  return keyResource(await readableKey(parts, caller, id), caller.nowMs);
}
