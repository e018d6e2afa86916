/** The names beside the ids in the rows of a list. */

import { isPlatformAdmin } from '../../decision/tenant.ts';
import { isAuthorized } from '../caller/authorize.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { scopeOf } from './list.ts';
import { type NamedKind, namesOfIds } from './name-queries.ts';

export interface NamedId {
  readonly kind: NamedKind;
  readonly id: string;
}

/**
 * Reads the names that the caller may read, in its scope: those of users need `admin:users`, those of keys
 * `admin:keys`.
 * @returns a function that returns the name of an id; null if there is none
 */
export async function readNames(
  parts: Pick<AdminParts, 'db'>,
  caller: Caller,
  named: readonly NamedId[],
): Promise<(of: NamedId) => string | null> {
  const read = async (kind: NamedKind): Promise<ReadonlyMap<string, string>> => {
    if (!mayRead(caller, kind)) return new Map();
    const ids = new Set(named.flatMap((one) => (one.kind === kind ? [one.id] : [])));
    return namesOfIds(parts.db.knex, scopeOf(caller), kind, [...ids]);
  };
  const [users, keys, tenants] = await Promise.all([read('user'), read('api_key'), read('tenant')]);
  const names = { user: users, api_key: keys, tenant: tenants };
  return ({ kind, id }) => names[kind].get(id) ?? null;
}

function mayRead(caller: Caller, kind: NamedKind): boolean {
  switch (kind) {
    case 'user':
      return isAuthorized(caller, 'admin:users');
    case 'api_key':
      return isAuthorized(caller, 'admin:keys');
    case 'tenant':
      return isPlatformAdmin(caller.principal);
    default:
      return kind satisfies never;
  }
}
