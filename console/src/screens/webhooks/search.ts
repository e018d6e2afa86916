import { flag, type Given, oneOf, text } from '../../shell/search.ts';

export interface WebhooksSearch {
  /** True: the drawer of a new webhook is open. */
  readonly add?: true;
}

export function webhooksSearch(given: Given): WebhooksSearch {
  return flag(given, 'add');
}

export const WEBHOOK_TABS = ['deliveries', 'settings'] as const;
export const DELIVERY_STATES = ['waiting', 'delivered', 'failed'] as const;

export interface WebhookSearch {
  readonly tab?: (typeof WEBHOOK_TABS)[number];
  /** Only deliveries in this state. */
  readonly state?: (typeof DELIVERY_STATES)[number];
  /** The delivery whose drawer is open. */
  readonly delivery?: string;
}

export function webhookSearch(given: Given): WebhookSearch {
  return {
    ...oneOf(given, 'tab', WEBHOOK_TABS),
    ...oneOf(given, 'state', DELIVERY_STATES),
    ...text(given, 'delivery'),
  };
}
