/** Creates a webhook, with a secret that only this response shows. */

import { Refusal } from '../../domain/errors.ts';
import { makeId, type TenantId } from '../../domain/ids.ts';
import { brokenConstraint } from '../../store/faults.ts';
import type { Transaction } from '../../store/transaction.ts';
import type { Caller } from '../caller/caller.ts';
import { tenantGone } from '../caller/refusals.ts';
import { change } from '../change/change.ts';
import { revealOnce } from '../change/idempotency.ts';
import { lockTenant } from '../tenants/queries.ts';
import type { WebhookParts } from './attempt.ts';
import { type IssuedWebhook, type NewWebhook, type WebhookRow, webhookResource } from './entity.ts';
import { countWebhooks, insertWebhook, type WebhookRef, type WebhookValues } from './queries.ts';
import { makeSecret, sealSecret } from './secret.ts';
import { maySend, readNewWebhook } from './values.ts';

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
    const created = webhookResource(row, caller.nowMs);
    audit.after = created;
    return created;
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
