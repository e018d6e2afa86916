/**
 * The webhooks of a tenant in a setup file. A file has no secret: a new webhook sends nothing until it is rotated, and
 * the secret of a stored one stays.
 */

import { makeId, type TenantId } from '../../domain/ids.ts';
import type { FieldError } from '../../domain/problem-details.ts';
import { type WebhookRow, webhookResource } from '../webhooks/entity.ts';
import { deleteWebhookRow, updateWebhookRow, type WebhookValues } from '../webhooks/queries.ts';
import { NO_SECRET } from '../webhooks/secret.ts';
import { urlErrors } from '../webhooks/values.ts';
import { MAX_WEBHOOKS, writeNewWebhook } from '../webhooks/write.ts';
import type { PlannedAction } from './action.ts';
import type { SetupMembers, Wanted } from './members.ts';
import type { SetupError } from './read.ts';
import { auditedResource, planResources, type SetupResource } from './resource-plan.ts';

type Values = Pick<WebhookValues, 'events' | 'description' | 'enabled'>;
export type WantedWebhook = Wanted<Values, string>;
export type WebhookAction = PlannedAction<WebhookRow, Values, string>;

export const WEBHOOK_MEMBERS: SetupMembers<Values> = {
  events: {},
  description: { empty: null },
  enabled: { initial: true },
};

/** @param wanted undefined: the file does not state the webhooks. @param prune deletes webhooks that it does not name */
export function planWebhooks(
  tenant: TenantId,
  wanted: readonly WantedWebhook[] | undefined,
  stored: readonly WebhookRow[],
  prune: boolean,
  /** `webhooks.allowed-hosts`. */
  allowedHosts: readonly string[],
  errors: SetupError[],
): readonly WebhookAction[] {
  const known = new Set(stored.map(({ url }) => url));
  for (const { at, key } of wanted ?? []) if (!known.has(key)) errors.push(...atUrl(at, urlErrors(key, allowedHosts)));
  const actions = planResources(webhookResources(tenant), wanted, stored, prune, errors);
  const count = (verb: WebhookAction['verb']): number => actions.filter((action) => action.verb === verb).length;
  const [last] = wanted?.slice(-1) ?? [];
  if (last !== undefined && count('create') > 0 && stored.length + count('create') - count('delete') > MAX_WEBHOOKS)
    errors.push({
      path: last.at,
      message: `A tenant has at most ${MAX_WEBHOOKS} webhooks, and this file gives it more.`,
    });
  return actions;
}

const atUrl = (at: string, errors: readonly FieldError[]): readonly SetupError[] =>
  errors.map(({ message }) => ({ path: `${at}/url`, message }));

function webhookResources(tenant: TenantId): SetupResource<WebhookRow, Values, string> {
  return auditedResource({
    type: 'webhook',
    tenant,
    members: WEBHOOK_MEMBERS,
    keyOf: ({ url }) => url,
    idOf: (row) => row.id,
    show: webhookResource,
    insert: ({ trx, nowMs, random }, url, values) => {
      const ref = { id: makeId('whk', nowMs, random(10)), tenant_id: tenant };
      return writeNewWebhook(trx, ref, { ...values, url, disabled_reason: null }, NO_SECRET);
    },
    update: ({ trx }, before, values) => {
      const disabled_reason = values.enabled ? null : before.disabled_reason;
      return updateWebhookRow(trx, before.id, { ...values, url: before.url, disabled_reason });
    },
    remove: ({ trx }, row) => deleteWebhookRow(trx, row.id),
  });
}
