/** Webhooks and their deliveries as lists and editors need them. */

import type { Webhook, WebhookDelivery } from '../../../client/index.ts';
import { type List, useList } from './list.ts';
import { type Read, tagged, useOne } from './one.ts';
import { useTenant } from './session.ts';

const PAGE = 50;
const WEBHOOKS = '/v1/iam/webhooks';
const WEBHOOK = '/v1/iam/webhooks/{id}';
const DELIVERIES = '/v1/iam/webhooks/{id}/deliveries';

export function useWebhooks(): List<Webhook> {
  const { id: tenant, client } = useTenant();
  return useList<typeof WEBHOOKS>([tenant, 'webhooks'], (cursor, signal) =>
    client.request('GET', WEBHOOKS, { query: { limit: PAGE, cursor }, signal }),
  );
}

export const readWebhook: Read<Webhook> = ({ client }, id, signal) =>
  tagged(client.send('GET', WEBHOOK, { path: { id }, signal }));

export function useWebhook(id: string) {
  return useOne('webhook', id, readWebhook);
}

/** @param state undefined: every state */
export function useDeliveries(id: string, state: WebhookDelivery['state'] | undefined): List<WebhookDelivery> {
  const { id: tenant, client } = useTenant();
  return useList<typeof DELIVERIES>([tenant, 'deliveries', id, state], (cursor, signal) =>
    client.request('GET', DELIVERIES, {
      path: { id },
      query: { state, limit: PAGE, cursor, ...(cursor === undefined ? { count: true } : {}) },
      signal,
    }),
  );
}
