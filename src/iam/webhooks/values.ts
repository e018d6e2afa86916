/** Reads the values of a webhook from a request. */

import type { FieldError } from '../../domain/problem-details.ts';
import { writtenAddressProblem } from '../../outbound/written-address.ts';
import { authorize } from '../caller/authorize.ts';
import type { Caller } from '../caller/caller.ts';
import { throwIfInvalid } from '../caller/refusals.ts';
import { patternProblem, selectsAudit } from './catalog.ts';
import type { NewWebhook, WebhookChanges } from './entity.ts';
import type { WebhookValues } from './queries.ts';

/** The operator's setting for hosts with private addresses. */
export const ALLOWED_HOSTS_SETTING = 'webhooks.allowed-hosts';

/** @throws Refusal `invalid_field` */
export function readNewWebhook(request: NewWebhook, allowedHosts: readonly string[]): WebhookValues {
  const { url, events, description = null, enabled = true } = request;
  throwIfInvalid([...urlErrors(url, allowedHosts), ...eventErrors(events)]);
  return { url, events: [...new Set(events)], description, enabled, disabled_reason: null };
}

/** @throws Refusal `invalid_field` */
export function readWebhookChanges(
  before: WebhookValues,
  request: WebhookChanges,
  allowedHosts: readonly string[],
): WebhookValues {
  const { url = before.url, events = before.events, description = before.description } = request;
  const { enabled = before.enabled } = request;
  throwIfInvalid([
    ...(request.url === undefined ? [] : urlErrors(url, allowedHosts)),
    ...(request.events === undefined ? [] : eventErrors(events)),
  ]);
  const disabled_reason = enabled || request.enabled === false ? null : before.disabled_reason;
  return { url, events: [...new Set(events)], description, enabled, disabled_reason };
}

/** Returns an error for a text to which the server would not send anything. */
export function urlErrors(url: string, allowedHosts: readonly string[]): readonly FieldError[] {
  const message = writtenAddressProblem(url, {
    hosts: allowedHosts,
    setting: ALLOWED_HOSTS_SETTING,
    refusesPrivate: true,
  });
  return message === undefined ? [] : [{ path: '/url', message }];
}

export function eventErrors(events: readonly string[], path = '/events'): readonly FieldError[] {
  return events.flatMap((pattern, i) => {
    const message = patternProblem(pattern);
    return message === undefined ? [] : [{ path: `${path}/${i}`, message }];
  });
}

/**
 * A webhook shows its receiver the rows that its patterns select, so a caller that writes one must be able to read them.
 * @throws Refusal `insufficient_permission`, `denied_by_policy`
 */
export function maySend(caller: Caller, { events }: Pick<WebhookValues, 'events'>): void {
  if (selectsAudit(events)) authorize(caller, 'audit:read');
}
