/**
 * Finds the tenant of a user, key, issuer, budget or webhook, because an id does not contain it and a platform administrator may
 * not know it.
 */

import { parseId, type TenantId } from '../../domain/ids.ts';
import { tenantOfKey } from '../api-keys/queries.ts';
import { tenantOfBudget } from '../budgets/queries.ts';
import { tenantOfIssuer } from '../issuers/queries.ts';
import { tenantOfUser } from '../users/queries.ts';
import { webhookRef } from '../webhooks/queries.ts';
import type { AdminParts } from './caller.ts';

/**
 * For platform administrators alone.
 * @returns the tenant of the user, key, issuer, budget or webhook; undefined where there is none of that id
 */
export async function homeOf({ db }: Pick<AdminParts, 'db'>, text: string): Promise<TenantId | undefined> {
  const user = parseId('usr', text);
  if (user !== undefined) return tenantOfUser(db.knex, { kind: 'every' }, user);
  const key = parseId('key', text);
  if (key !== undefined) return tenantOfKey(db.knex, key);
  const issuer = parseId('iss', text);
  if (issuer !== undefined) return tenantOfIssuer(db.knex, issuer);
  const budget = parseId('bud', text);
  if (budget !== undefined) return tenantOfBudget(db.knex, budget);
  const webhook = parseId('whk', text);
  return webhook && (await webhookRef(db.knex, webhook))?.tenant_id;
}
