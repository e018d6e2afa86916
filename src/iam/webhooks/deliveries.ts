/** Replays a delivery, and sends a test. */

import { Refusal } from '../../domain/errors.ts';
import { makeId, type WebhookId } from '../../domain/ids.ts';
import { insertAudit } from '../../store/audit-rows.ts';
import type { Queryable } from '../../store/queryable.ts';
import type { Caller } from '../caller/caller.ts';
import { asCaller } from '../caller/hold-caller.ts';
import { orNotFound, requestedId } from '../caller/refusals.ts';
import { actorOf, auditRow } from '../change/audit-row.ts';
import { change, preconditionsCheck } from '../change/change.ts';
import { attemptDelivery, type SendParts, type WebhookParts } from './attempt.ts';
import { TEST_EVENT } from './catalog.ts';
import { claimDelivery, findDelivery, insertDeliveries, replayDeliveryRow } from './delivery-queries.ts';
import { type DeliveryResource, type DeliveryRow, deliveryResource, webhookResource } from './entity.ts';
import { MAX_BACKLOG } from './outbox.ts';
import type { WebhookRef } from './queries.ts';
import { holdWebhook } from './read.ts';

/** Sends a delivery again, with the same id and body. @throws Refusal `not_found` */
export async function replayDelivery(
  parts: WebhookParts,
  caller: Caller,
  text: string,
  deliveryText: string,
): Promise<DeliveryResource> {
  const target = { type: 'webhook', id: text } as const;
  return change(parts, caller, { action: 'webhook.replay', target }, async ({ trx, caller, audit }) => {
    const { id } = await holdWebhook(trx, caller.tenant, text);
    const row = await replayOf(trx, id, deliveryText);
    audit.after = { delivery: row.id, type: row.type };
    return deliveryResource(row);
  });
}

/** Makes a delivery of a webhook due. @throws Refusal `not_found` */
export async function replayOf(trx: Queryable, id: WebhookId, text: string): Promise<DeliveryRow> {
  return orNotFound(await replayDeliveryRow(trx, id, requestedId('dlv', text)), 'delivery');
}

/**
 * Sends the event `webhook.test` once, and resolves with its outcome.
 * @throws Refusal `not_found`; `unavailable` if too many attempts are under way
 */
export async function testWebhook(parts: WebhookParts, caller: Caller, text: string): Promise<DeliveryResource> {
  const { db, webhooks, writes } = parts;
  writes?.admit(caller, 'webhook.test');
  // A request to the receiver cannot be undone, so the caller's rights are verified in the database first.
  const webhook = await asCaller(db, caller, {}, async (trx, held) => {
    const found = await holdWebhook(trx, held.tenant, text);
    preconditionsCheck(held)(webhookResource(found, held.nowMs));
    return found;
  });
  const row = await sendTest(webhooks, webhook, caller.nowMs, parts.random(10));
  const entry = {
    target: { type: 'webhook', id: webhook.id },
    tenant: webhook.tenant_id,
    after: { delivery: row.id, state: row.state, status: row.status },
  } as const;
  const result = row.state === 'delivered' ? 'success' : 'failure';
  const audit = auditRow(actorOf(caller), 'webhook.test', entry, result);
  await insertAudit(db.knex, audit);
  writes?.wrote(caller, [audit]);
  return deliveryResource(row);
}

/** @throws Refusal `unavailable` */
export async function sendTest(
  parts: SendParts,
  { id, tenant_id }: WebhookRef,
  nowMs: number,
  random: Uint8Array,
): Promise<DeliveryRow> {
  const { knex } = parts.db;
  const delivery = makeId('dlv', nowMs, random);
  const run = parts.turns.run(async () => {
    const body = JSON.stringify({
      type: TEST_EVENT,
      timestamp: new Date(nowMs).toISOString(),
      data: { webhook_id: id, tenant_id },
    });
    await insertDeliveries(knex, [{ id: delivery, webhook_id: id, type: TEST_EVENT, body }], 2 * MAX_BACKLOG);
    const claimed = await claimDelivery(knex, id, delivery);
    if (claimed !== undefined) await attemptDelivery(parts, claimed);
    return findDelivery(knex, id, delivery);
  }, tenant_id);
  const row = await run;
  if (row !== undefined) return row;
  throw new Refusal('unavailable', 'Too many deliveries are under way. Try again.', { retryAfter: 1 });
}
