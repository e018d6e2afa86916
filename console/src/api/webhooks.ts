/** Webhooks and their deliveries as lists and editors need them. */

import { useQuery } from '@tanstack/react-query';
import type { Webhook, WebhookDelivery } from '../../../client/index.ts';
import type { Tagged } from './edit.ts';
import { type List, useList } from './list.ts';
import { type Tenant, useTenant } from './session.ts';

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

/** Reads one webhook with the ETag that an edit sends. */
export async function readWebhook({ client }: Tenant, id: string, signal?: AbortSignal): Promise<Tagged<Webhook>> {
  const { data, etag } = await client.send('GET', WEBHOOK, { path: { id }, signal });
  return { data, etag };
}

export function useWebhook(id: string) {
  const tenant = useTenant();
  return useQuery({
    queryKey: [tenant.id, 'webhook', id],
    queryFn: ({ signal }) => readWebhook(tenant, id, signal),
  });
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
