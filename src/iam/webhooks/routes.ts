/** /v1/iam/webhooks */

import { Type } from 'typebox';
import { shows } from '../../http/answers.ts';
import { callerEndpoint, type Endpoint } from '../../http/endpoint.ts';
import { resourceEndpoints } from '../../http/resource-endpoints.ts';
import { listOf } from '../schema/resource-parts.ts';
import { closed, countedPage, tenantFilter } from '../schema/schemas.ts';
import type { WebhookParts } from './attempt.ts';
import { replayDelivery, testWebhook } from './deliveries.ts';
import { deliveryState, newWebhook, Webhook, WebhookDelivery, WebhookWithSecret, webhookChanges } from './entity.ts';
import { getWebhook, listDeliveriesPage, listWebhooksPage } from './read.ts';
import { createWebhook, deleteWebhook, rotateWebhook, updateWebhook } from './write.ts';

const listing = Type.Object({ ...countedPage, ...tenantFilter }, closed);
const deliveries = Type.Object(
  { ...countedPage, state: Type.Optional({ ...deliveryState, description: 'Only deliveries in this state.' }) },
  closed,
);

const WEBHOOK = '/v1/iam/webhooks/:id';

const webhooks = resourceEndpoints({
  path: '/v1/iam/webhooks',
  param: 'id',
  type: 'webhook',
  nouns: ['webhook', 'webhooks'],
  schema: Webhook,
  permission: 'admin:webhooks',
});

const common = { permission: 'admin:webhooks', target: { type: 'webhook', param: 'id' } } as const;

export function webhookEndpoints(parts: WebhookParts): readonly Endpoint[] {
  return [
    webhooks.list({
      operationId: 'listWebhooks',
      summary: 'List webhooks.',
      query: listing,
      run: ({ caller, query }) => listWebhooksPage(parts, caller, query),
    }),
    webhooks.create({
      operationId: 'createWebhook',
      summary:
        "Create a webhook, to which the tenant's events are sent. The response has the secret of the signatures.",
      body: newWebhook,
      shows: { description: 'The webhook, with its secret.', schema: WebhookWithSecret },
      refusals: ['already_exists', 'quota_exceeded'],
      run: ({ caller, body }) => createWebhook(parts, caller, body),
    }),
    webhooks.get({
      operationId: 'getWebhook',
      summary: 'Get a webhook.',
      run: ({ caller }, id) => getWebhook(parts, caller, id),
    }),
    webhooks.update({
      operationId: 'updateWebhook',
      summary: 'Update a webhook: the members that are present.',
      body: webhookChanges,
      refusals: ['already_exists'],
      run: ({ caller, body }, id) => updateWebhook(parts, caller, id, body),
    }),
    webhooks.delete({
      operationId: 'deleteWebhook',
      summary: 'Delete a webhook with its deliveries, also those that wait.',
      run: ({ caller }, id) => deleteWebhook(parts, caller, id),
    }),
    webhooks.action('rotate', {
      operationId: 'rotateWebhook',
      summary: 'Give a webhook a new secret. For 24 hours, each request has a signature of the former one as well.',
      shows: { description: 'The webhook, with its new secret.', schema: WebhookWithSecret },
      run: ({ caller }, id) => rotateWebhook(parts, caller, id),
    }),
    callerEndpoint({
      ...common,
      method: 'POST',
      path: `${WEBHOOK}/test`,
      operationId: 'testWebhook',
      summary: 'Send the event `webhook.test` to a webhook once, also to a disabled one, and answer with the outcome.',
      answers: shows('The delivery after its attempt.', WebhookDelivery),
      refusals: ['not_found', 'precondition_failed'],
      run: ({ caller, param }) => testWebhook(parts, caller, param('id')),
    }),
    callerEndpoint({
      ...common,
      method: 'GET',
      path: `${WEBHOOK}/deliveries`,
      operationId: 'listWebhookDeliveries',
      summary: 'List the deliveries of a webhook of the last 30 days, newest first.',
      query: deliveries,
      answers: shows('One page of deliveries.', listOf(WebhookDelivery)),
      refusals: ['not_found'],
      run: ({ caller, param, query }) => listDeliveriesPage(parts, caller, param('id'), query),
    }),
    callerEndpoint({
      ...common,
      method: 'POST',
      path: `${WEBHOOK}/deliveries/:delivery/replay`,
      operationId: 'replayWebhookDelivery',
      summary: 'Send a delivery again, with the same id and body.',
      answers: shows('The delivery, which waits for its attempt.', WebhookDelivery),
      refusals: ['not_found'],
      run: ({ caller, param }) => replayDelivery(parts, caller, param('id'), param('delivery')),
    }),
  ];
}
