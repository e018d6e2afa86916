/** Reading keys. */

import { Refusal } from '../../domain/errors.ts';
import { parseId } from '../../domain/ids.ts';
import { type KeyStatus, listKeys } from '../../store/queries/api-keys.ts';
import { authorize, isAuthorized } from '../authorize.ts';
import { type AdminParts, type Caller, selfId } from '../caller.ts';
import { type List, type ListQuery, paged, scopeOf } from '../list.ts';
import { readableKey } from './access.ts';
import { type KeyResource, keyResource } from './resource.ts';

export interface KeyListQuery extends ListQuery {
  readonly status?: KeyStatus;
  readonly user_id?: string;
  /** RFC 3339 */
  readonly expires_before?: string;
}

/** Without `admin:keys` a user sees its own keys, whatever the filter does not say. */
export async function listKeysPage(parts: AdminParts, caller: Caller, query: KeyListQuery): Promise<List<KeyResource>> {
  const self = selfId(caller);
  const named = query.user_id ?? (isAuthorized(caller, 'admin:keys') ? undefined : self);
  authorize(caller, 'admin:keys', { self: named !== undefined && named === self });
  const userId = named === undefined ? undefined : parseId('usr', named);
  const nobody = named !== undefined && userId === undefined;
  const expiresBefore = query.expires_before === undefined ? undefined : new Date(query.expires_before);
  if (expiresBefore !== undefined && Number.isNaN(expiresBefore.getTime())) {
    throw new Refusal('invalid_parameter', 'expires_before is no instant.', { param: 'expires_before' });
  }
  const filter = {
    ...(query.status === undefined ? {} : { status: query.status }),
    ...(userId === undefined ? {} : { userId }),
    ...(expiresBefore === undefined ? {} : { expiresBefore }),
  };
  return paged(
    caller,
    'api-keys',
    query,
    async (page) => (nobody ? [] : listKeys(parts.db.knex, scopeOf(caller), filter, page, new Date(caller.nowMs))),
    (key) => [key.id],
    (key) => keyResource(key, caller.nowMs),
  );
}

/** @throws Refusal of the decision; `not_found` */
export async function getKey(parts: AdminParts, caller: Caller, id: string): Promise<KeyResource> {
  return keyResource(await readableKey(parts, caller, id), caller.nowMs);
}
