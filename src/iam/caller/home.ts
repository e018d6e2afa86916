/**
 * Finds the tenant of a user, key, issuer, budget or webhook, because an id does not contain it and a platform administrator may
 * not know it.
 */

import { parseId, type TenantId } from '../../domain/ids.ts';
import { tenantsOf } from '../tenants/queries.ts';
import type { AdminParts } from './caller.ts';

const TABLES = [
  ['usr', 'users'],
  ['key', 'api_keys'],
  ['iss', 'issuers'],
  ['bud', 'budgets'],
  ['whk', 'webhooks'],
] as const;

/** For platform administrators alone. @returns the existing tenant of the resource; undefined if there is none */
export async function homeOf({ db }: Pick<AdminParts, 'db'>, text: string): Promise<TenantId | undefined> {
  const [, table] = TABLES.find(([prefix]) => parseId(prefix, text) !== undefined) ?? [];
  return table && (await tenantsOf(db.knex, table, [text])).get(text);
}
