/** Reads webhooks and their deliveries. */

import type { TenantId } from '../../domain/ids.ts';
import { present } from '../../domain/objects.ts';
import type { Queryable } from '../../store/queryable.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { orNotFound, requestedId } from '../caller/refusals.ts';
import { type List, type ListQuery, paged, scopeOf } from '../list/list.ts';
import { countDeliveries, type DeliveryFilter, listDeliveries } from './delivery-queries.ts';
import {
  type DeliveryResource,
  deliveryResource,
  type WebhookResource,
  type WebhookRow,
  webhookResource,
} from './entity.ts';
import { countWebhooks, findWebhook, listWebhooks } from './queries.ts';

export async function listWebhooksPage(
  { db }: Pick<AdminParts, 'db'>,
  caller: Caller,
  query: ListQuery,
): Promise<List<WebhookResource>> {
  const scope = scopeOf(caller);
  return paged(
    caller,
    'webhooks',
    query,
    (page) => listWebhooks(db.knex, scope, page),
    ({ id }) => [id],
    (row) => webhookResource(row, caller.nowMs),
    (most) => countWebhooks(db.knex, scope, most),
  );
}

/** @throws Refusal `not_found` */
export async function getWebhook(
  { db }: Pick<AdminParts, 'db'>,
  caller: Caller,
  text: string,
): Promise<WebhookResource> {
  return webhookResource(await webhookOf(db.knex, caller.tenant, text), caller.nowMs);
}

/** Lists the deliveries of a webhook, newest first. @throws Refusal `not_found` */
export async function listDeliveriesPage(
  { db }: Pick<AdminParts, 'db'>,
  caller: Caller,
  text: string,
  query: ListQuery & DeliveryFilter,
): Promise<List<DeliveryResource>> {
  const { id } = await webhookOf(db.knex, caller.tenant, text);
  const filter = present({ state: query.state });
  return paged(
    caller,
    `deliveries of ${id}`,
    query,
    (page) => listDeliveries(db.knex, id, filter, page),
    (row) => [row.id],
    deliveryResource,
    (most) => countDeliveries(db.knex, id, filter, most),
  );
}

/** Locks a webhook of the tenant for a change. @throws Refusal `not_found` */
export function holdWebhook(trx: Queryable, tenant: TenantId, text: string): Promise<WebhookRow> {
  return webhookOf(trx, tenant, text, true);
}

async function webhookOf(q: Queryable, tenant: TenantId, text: string, lock = false): Promise<WebhookRow> {
  return orNotFound(await findWebhook(q, tenant, requestedId('whk', text), lock), 'webhook');
}
