/**
 * Webhooks: addresses that a tenant's events are sent to. The definition of their columns and of what the API shows,
 * accepts and may change. A webhook belongs to its tenant: it stays when the user that created it is deleted.
 */

import { type Static, Type } from 'typebox';
import {
  changesComponent,
  column,
  converted,
  newComponent,
  type ResourceOf,
  type RowOf,
  resourceOf,
  shownComponent,
  type TableOf,
  unselected,
} from '../schema/entity.ts';
import {
  component,
  countOf,
  dateTime,
  described,
  flagOf,
  nullable,
  shownText,
  shownTextOrNull,
} from '../schema/keywords.ts';
import { instant, prefixedId, tenantId, text, texts, withheld } from '../schema/resource-parts.ts';
import { oneOf, title } from '../schema/schemas.ts';
import { EVENT_PATTERN, EVENTS, TEST_EVENT } from './catalog.ts';

const webhookId = prefixedId('whk');

const EVENT_LIST = Object.entries(EVENTS)
  .map(([name, { description }]) => `- \`${name}\`: ${description}`)
  .join('\n');

const patterns = Type.Unsafe<readonly string[]>(
  Type.Array(Type.String({ maxLength: 200, pattern: EVENT_PATTERN }), {
    minItems: 1,
    maxItems: 50,
    description: `Events, groups such as \`budget.*\`, or \`*\`. Events:\n\n${EVENT_LIST}\n- \`audit.<action>\`: any other row of the tenant's audit log, for example \`audit.role.update\`. It needs \`audit:read\` as well.`,
  }),
);

export const MAX_URL_LENGTH = 2048;

const enabled = flagOf('Whether events are sent to it. Default: true.');
const note = { description: 'A text for the console and for lists. Null: none.' };

export const webhook = {
  id: column(webhookId),
  tenant_id: column(tenantId),
  url: column(text, {
    accepts: Type.String({
      minLength: 1,
      maxLength: MAX_URL_LENGTH,
      description: 'An https address on the public internet, or a host that `webhooks.allowed-hosts` names.',
    }),
    changes: true,
  }),
  events: column(
    Type.Unsafe<readonly string[]>({ ...texts, description: 'The events that are sent, by name or by group.' }),
    {
      accepts: patterns,
      changes: true,
    },
  ),
  description: column(nullable(Type.String(note)), {
    accepts: Type.Optional(nullable({ ...title(200), ...note })),
    changes: true,
  }),
  enabled: column(enabled, { accepts: Type.Optional(enabled), changes: true }),
  disabled_reason: column(shownTextOrNull('Why the server disabled the webhook. Null: it did not.')),
  /** The time from which the former secret no longer signs. */
  previous_until: converted(
    nullable(instant),
    nullable(dateTime('The former secret signs as well until this time. Null: there is none.')),
  ),
  dropped: column(countOf('Events that were left out because 10,000 deliveries waited.')),
  created_at: column(instant),
  updated_at: column(instant),
  secret_sealed: unselected<Buffer>(),
  previous_sealed: unselected<Buffer | null>(),
};

export interface WebhookRow extends RowOf<typeof webhook> {}
export interface WebhookTable extends TableOf<typeof webhook> {}
export interface WebhookResource extends ResourceOf<typeof webhook> {}

export function webhookResource(row: WebhookRow, nowMs: number): WebhookResource {
  const { previous_until: until } = row;
  return resourceOf(webhook, row, { previous_until: until !== null && until.getTime() > nowMs ? until : null });
}

export const Webhook = shownComponent('Webhook', webhook);

export const WebhookWithSecret = component(
  'WebhookWithSecret',
  Type.Object({
    ...Webhook.properties,
    secret: Type.Optional(shownText('The key of the signatures, `whsec_…`. Only this response contains it.')),
    ...withheld,
  }),
);
export type IssuedWebhook = Static<typeof WebhookWithSecret>;

const example = { url: 'https://hooks.acme.example/postern', events: ['budget.*', 'key.expiring'] };

export const newWebhook = newComponent('NewWebhook', webhook, { examples: [example] });
export type NewWebhook = Static<typeof newWebhook>;

export const webhookChanges = changesComponent('WebhookChanges', webhook, { examples: [{ enabled: false }] });
export type WebhookChanges = Static<typeof webhookChanges>;

export const deliveryState = oneOf('waiting', 'delivered', 'failed');

/** An event that is sent to a webhook. */
export const delivery = {
  id: column(described(prefixedId('dlv'), 'The same in every attempt: the header `webhook-id`.')),
  webhook_id: column(webhookId),
  type: column(Type.String({ description: 'The name of the event.', examples: ['key.revoked', TEST_EVENT] })),
  state: column(deliveryState),
  attempts: column(Type.Integer({ minimum: 0 })),
  created_at: column(instant),
  attempted_at: column(nullable(instant)),
  /** While an attempt runs: when another process may take it over. */
  next_attempt_at: column(nullable(dateTime('Null: no further attempt is due.'))),
  status: column(nullable(Type.Integer({ description: 'The status of the last answer. Null: there was none.' }))),
  answer: column(shownTextOrNull('The first 1 KiB of the last answer.')),
  error: column(shownTextOrNull('Why the last attempt failed.')),
};
export interface DeliveryRow extends RowOf<typeof delivery> {}
export interface DeliveryResource extends ResourceOf<typeof delivery> {}

export function deliveryResource(row: DeliveryRow): DeliveryResource {
  return resourceOf(delivery, row, {});
}

export const WebhookDelivery = shownComponent('WebhookDelivery', delivery);
