/** Creates, updates, rotates and deletes webhooks. Only the responses of a creation and of a rotation show the secret. */

import { Refusal } from '../../domain/errors.ts';
import { makeId, type TenantId } from '../../domain/ids.ts';
import type { SecretKeys } from '../../identity/seal.ts';
import { brokenConstraint } from '../../store/faults.ts';
import type { Transaction } from '../../store/transaction.ts';
import { authorize } from '../caller/authorize.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { requestedId, tenantGone } from '../caller/refusals.ts';
import { change, recorded } from '../change/change.ts';
import { revealOnce } from '../change/idempotency.ts';
import { lockTenant } from '../tenants/queries.ts';
import type { WebhookParts } from './attempt.ts';
import { keepsAuditRows } from './delivery-queries.ts';
import {
  type IssuedWebhook,
  type NewWebhook,
  type WebhookChanges,
  type WebhookResource,
  type WebhookRow,
  webhookResource,
} from './entity.ts';
import {
  countWebhooks,
  deleteWebhookRow,
  insertWebhook,
  replaceWebhookSecret,
  updateWebhookRow,
  type WebhookRef,
  type WebhookValues,
} from './queries.ts';
import { holdWebhook } from './read.ts';
import { makeSecret, sealSecret } from './secret.ts';
import { maySend, readNewWebhook, readWebhookChanges } from './values.ts';

/** The largest number of webhooks of one tenant. */
export const MAX_WEBHOOKS = 20;

/** @throws Refusal `invalid_field`, `insufficient_permission`, `already_exists`, `quota_exceeded` */
export async function createWebhook(parts: WebhookParts, caller: Caller, request: NewWebhook): Promise<IssuedWebhook> {
  const values = readNewWebhook(request, parts.webhooks.fetch.allowedHosts);
  const id = makeId('whk', caller.nowMs, parts.random(10));
  const secret = makeSecret(parts.random);
  const target = { type: 'webhook', id } as const;
  const resource = await change(parts, caller, { action: 'webhook.create', target }, async ({ trx, caller, audit }) => {
    maySend(caller, values);
    const row = await writeNewWebhook(trx, { id, tenant_id: caller.tenant }, values, sealSecret(parts, id, secret));
    return recorded(audit, undefined, webhookResource(row, caller.nowMs));
  });
  return { ...resource, ...revealOnce(caller, { secret }) };
}

/**
 * Call it while no other transaction can add a webhook to the tenant.
 * @throws Refusal `already_exists`, `quota_exceeded`; `tenant_mismatch` for a deleted tenant
 */
export async function writeNewWebhook(
  trx: Transaction,
  ref: WebhookRef,
  values: WebhookValues,
  sealed: Buffer,
): Promise<WebhookRow> {
  if ((await lockTenant(trx, ref.tenant_id, 'share')) === undefined) throw tenantGone();
  await reserveWebhook(trx, ref.tenant_id);
  return insertWebhook(trx, { ...ref, ...values, secret_sealed: sealed }).catch(refuseTakenUrl);
}

async function reserveWebhook(trx: Transaction, tenant: TenantId): Promise<void> {
  if ((await countWebhooks(trx, { kind: 'one', tenant }, MAX_WEBHOOKS)) < MAX_WEBHOOKS) return;
  throw new Refusal('quota_exceeded', `The tenant already has ${MAX_WEBHOOKS} webhooks, which is the limit.`);
}

/** Throws the refusal for a taken URL, or the error. */
export function refuseTakenUrl(error: unknown): never {
  if (brokenConstraint(error) !== 'webhooks_by_url') throw error;
  throw new Refusal('already_exists', 'The tenant already has a webhook with this URL. Change its events instead.', {
    param: 'url',
  });
}

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
    // Its deliveries, which may be older than its patterns, go to the new address: those that wait, and each that is replayed.
    if (values.url !== before.url && (await keepsAuditRows(trx, before.id))) authorize(caller, 'audit:read');
    const row = await updateWebhookRow(trx, before.id, values).catch(refuseTakenUrl);
    return recorded(audit, webhookResource(before, caller.nowMs), webhookResource(row, caller.nowMs));
  });
}

/** Gives a webhook another secret. For 24 hours, the former one signs as well. @throws Refusal `not_found` */
export async function rotateWebhook(parts: WebhookParts, caller: Caller, text: string): Promise<IssuedWebhook> {
  const secret = makeSecret(parts.random);
  const entry = { action: 'webhook.rotate', target: { type: 'webhook', id: text } } as const;
  const resource = await change(parts, caller, entry, async ({ trx, caller, audit, checkPreconditions }) => {
    const before = await holdWebhook(trx, caller.tenant, text);
    checkPreconditions(webhookResource(before, caller.nowMs));
    const row = await writeSecret(trx, parts, before, secret);
    return recorded(audit, webhookResource(before, caller.nowMs), webhookResource(row, caller.nowMs));
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
    await deleteWebhookRow(trx, requestedId('whk', text));
  });
}
