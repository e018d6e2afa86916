/** The operator's commands on webhooks. There is no caller whose permissions count. */

import { makeId, type TenantId } from '../../domain/ids.ts';
import { insertAudit } from '../../store/audit-rows.ts';
import type { Queryable } from '../../store/queryable.ts';
import type { AdminParts } from '../caller/caller.ts';
import { orNotFound, requestedId } from '../caller/refusals.ts';
import { auditRow, OPERATOR } from '../change/audit-row.ts';
import { changeAsSystem } from '../change/change.ts';
import type { SendParts } from './attempt.ts';
import { replayOf, sendTest } from './deliveries.ts';
import { type DeliveryRow, type NewWebhook, type WebhookRow, webhookResource } from './entity.ts';
import { deleteWebhookRow, type WebhookRef, webhookRef } from './queries.ts';
import { holdWebhook } from './read.ts';
import { makeSecret, sealSecret } from './secret.ts';
import { readNewWebhook } from './values.ts';
import { writeNewWebhook, writeSecret } from './write.ts';

type OperatorParts = Pick<AdminParts, 'db' | 'feed' | 'flush' | 'now' | 'random'> & Pick<SendParts, 'keys' | 'fetch'>;

interface Issued {
  readonly webhook: WebhookRow;
  readonly secret: string;
}

/** Returns the webhook of an id, in any tenant. @throws Refusal `not_found` */
export async function webhookOfId(q: Queryable, text: string): Promise<WebhookRef> {
  return orNotFound(await webhookRef(q, requestedId('whk', text)), 'webhook');
}

/** @throws Refusal `invalid_field`, `already_exists`, `quota_exceeded`, `tenant_mismatch` for an unknown tenant */
export async function createAsOperator(parts: OperatorParts, tenant: TenantId, request: NewWebhook): Promise<Issued> {
  const values = readNewWebhook(request, parts.fetch.allowedHosts);
  const ref = { id: makeId('whk', parts.now(), parts.random(10)), tenant_id: tenant };
  const secret = makeSecret(parts.random);
  const target = { type: 'webhook', id: ref.id } as const;
  return changeAsSystem(parts, OPERATOR, { action: 'webhook.create', target }, async (trx, audit) => {
    const webhook = await writeNewWebhook(trx, ref, values, sealSecret(parts.keys, ref.id, secret));
    audit.tenant = tenant;
    audit.after = webhookResource(webhook, parts.now());
    return { webhook, secret };
  });
}

/** @throws Refusal `not_found` */
export async function rotateAsOperator(parts: OperatorParts, { id, tenant_id }: WebhookRef): Promise<Issued> {
  const secret = makeSecret(parts.random);
  const target = { type: 'webhook', id } as const;
  return changeAsSystem(parts, OPERATOR, { action: 'webhook.rotate', target }, async (trx, audit) => {
    const before = await holdWebhook(trx, tenant_id, id);
    const webhook = await writeSecret(trx, parts.keys, before, secret);
    audit.tenant = tenant_id;
    audit.before = webhookResource(before, parts.now());
    audit.after = webhookResource(webhook, parts.now());
    return { webhook, secret };
  });
}

/** @throws Refusal `not_found` */
export async function deleteAsOperator(parts: OperatorParts, { id, tenant_id }: WebhookRef): Promise<void> {
  const target = { type: 'webhook', id } as const;
  await changeAsSystem(parts, OPERATOR, { action: 'webhook.delete', target }, async (trx, audit) => {
    audit.tenant = tenant_id;
    audit.before = webhookResource(await holdWebhook(trx, tenant_id, id), parts.now());
    await deleteWebhookRow(trx, id);
  });
}

/** Makes a delivery due. Running servers send it. @throws Refusal `not_found` */
export async function replayAsOperator(
  parts: OperatorParts,
  { id, tenant_id }: WebhookRef,
  text: string,
): Promise<DeliveryRow> {
  const target = { type: 'webhook', id } as const;
  return changeAsSystem(parts, OPERATOR, { action: 'webhook.replay', target }, async (trx, audit) => {
    const row = await replayOf(trx, id, text);
    audit.tenant = tenant_id;
    audit.after = { delivery: row.id, type: row.type };
    return row;
  });
}

export async function testAsOperator(parts: SendParts, ref: WebhookRef, random: Uint8Array): Promise<DeliveryRow> {
  const row = await sendTest(parts, ref, parts.now(), random);
  const after = { delivery: row.id, state: row.state, status: row.status };
  const entry = { target: { type: 'webhook', id: ref.id }, tenant: ref.tenant_id, after } as const;
  const result = row.state === 'delivered' ? 'success' : 'failure';
  await insertAudit(parts.db.knex, auditRow(OPERATOR, 'webhook.test', entry, result));
  return row;
}
