/** The resources of a webhook and of a delivery. */

import { resourceOf } from '../schema/entity.ts';
import {
  type DeliveryResource,
  type DeliveryRow,
  delivery,
  type WebhookResource,
  type WebhookRow,
  webhook,
} from './entity.ts';

export function webhookResource(row: WebhookRow, nowMs: number): WebhookResource {
  const { previous_until: until } = row;
  return resourceOf(webhook, row, { previous_until: until !== null && until.getTime() > nowMs ? until : null });
}

export function deliveryResource(row: DeliveryRow): DeliveryResource {
  return resourceOf(delivery, row, {});
}
