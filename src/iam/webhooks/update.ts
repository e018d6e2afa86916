/** Updates, rotates and deletes a webhook. */

import type { SecretKeys } from '../../identity/seal.ts';
import type { Transaction } from '../../store/transaction.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { change } from '../change/change.ts';
import { revealOnce } from '../change/idempotency.ts';
import type { WebhookParts } from './attempt.ts';
import { refuseTakenUrl } from './create.ts';
import {
  type IssuedWebhook,
  type WebhookChanges,
  type WebhookResource,
  type WebhookRow,
  webhookResource,
} from './entity.ts';
import { deleteWebhookRow, replaceWebhookSecret, updateWebhookRow, type WebhookValues } from './queries.ts';
import { holdWebhook, webhookIdOf } from './read.ts';
import { makeSecret, sealSecret } from './secret.ts';
import { maySend, readWebhookChanges } from './values.ts';

/** How long the former secret signs as well. */
const OVERLAP_MS = 24 * 3_600_000;

/** @throws Refusal `not_found`, `invalid_field`, `insufficient_permission`, `already_exists` */
export async function updateWebhook(
  parts: WebhookParts,
  caller: Caller,
  text: string,
  request: WebhookChanges,
): Promise<WebhookResource> {
  const entry = { action: 'webhook.update', target: { type: 'webhook', id: text } } as const;
  return change(parts, caller, entry, async ({ trx, caller, audit, checkPreconditions }) => {
    const before = await holdWebhook(trx, caller.tenant, text);
    maySend(caller, before);
    checkPreconditions(webhookResource(before, caller.nowMs));
    const values = readWebhookChanges(before, request, parts.webhooks.fetch.allowedHosts);
    maySend(caller, values);
    const after = webhookResource(await writeWebhook(trx, before, values), caller.nowMs);
    audit.before = webhookResource(before, caller.nowMs);
    audit.after = after;
    return after;
  });
}

/** Writes the new values of a locked webhook. @throws Refusal `already_exists` */
export function writeWebhook(trx: Transaction, { id }: WebhookRow, values: WebhookValues): Promise<WebhookRow> {
  return updateWebhookRow(trx, id, values).catch(refuseTakenUrl);
}

/** Gives a webhook another secret. For 24 hours, the former one signs as well. @throws Refusal `not_found` */
export async function rotateWebhook(parts: WebhookParts, caller: Caller, text: string): Promise<IssuedWebhook> {
  const secret = makeSecret(parts.random);
  const entry = { action: 'webhook.rotate', target: { type: 'webhook', id: text } } as const;
  const resource = await change(parts, caller, entry, async ({ trx, caller, audit, checkPreconditions }) => {
    const before = await holdWebhook(trx, caller.tenant, text);
    checkPreconditions(webhookResource(before, caller.nowMs));
    const after = webhookResource(await writeSecret(trx, parts, before, secret), caller.nowMs);
    audit.before = webhookResource(before, caller.nowMs);
    audit.after = after;
    return after;
  });
  return { ...resource, ...revealOnce(caller, { secret }) };
}

export function writeSecret(
  trx: Transaction,
  keys: SecretKeys,
  { id }: WebhookRow,
  secret: string,
): Promise<WebhookRow> {
  return replaceWebhookSecret(trx, id, sealSecret(keys, id, secret), OVERLAP_MS);
}

/** Deletes a webhook with its deliveries, also those that wait. @throws Refusal `not_found` */
export async function deleteWebhook(parts: AdminParts, caller: Caller, text: string): Promise<void> {
  const entry = { action: 'webhook.delete', target: { type: 'webhook', id: text } } as const;
  await change(parts, caller, entry, async ({ trx, caller, audit, checkPreconditions }) => {
    const before = await holdWebhook(trx, caller.tenant, text);
    checkPreconditions(webhookResource(before, caller.nowMs));
    audit.before = webhookResource(before, caller.nowMs);
    await deleteWebhookRow(trx, webhookIdOf(text));
  });
}
