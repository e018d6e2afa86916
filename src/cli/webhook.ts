/** `postern webhook`: the webhooks of all tenants, for the operator. */

import { present } from '../domain/objects.ts';
import {
  createAsOperator,
  deleteAsOperator,
  replayAsOperator,
  rotateAsOperator,
  testAsOperator,
  webhookOfId,
} from '../iam/webhooks/as-operator.ts';
import { listDeliveries } from '../iam/webhooks/delivery-queries.ts';
import type { DeliveryRow, WebhookRow } from '../iam/webhooks/entity.ts';
import { listWebhooks, type WebhookRef } from '../iam/webhooks/queries.ts';
import { webhookTurns } from '../iam/webhooks/sender.ts';
import type { Store } from '../server/store.ts';
import { printable } from './apply-plan.ts';
import { type Arguments, tenantOption, UsageError, wordsOf } from './arguments.ts';
import type { LoadedConfig } from './configuration.ts';
import { printed } from './output.ts';
import { type OperatorParts, printList, scopeOption, withStore } from './with-store.ts';

const ONE_WEBHOOK = 'Give the id of exactly one webhook.';
/** The newest deliveries, which `deliveries` prints. */
const SHOWN_DELIVERIES = 50;

function partsOf({ secretKey, otherSecretKey }: Store, { config }: LoadedConfig, parts: OperatorParts) {
  return {
    ...parts,
    keys: { secretKey, otherSecretKey },
    fetch: { allowedHosts: config.webhooks.allowedHosts },
    turns: webhookTurns(),
  };
}

function withWebhook<T>(
  args: Arguments,
  id: string,
  work: (parts: ReturnType<typeof partsOf>, webhook: WebhookRef) => Promise<T>,
): Promise<T> {
  return withStore(args, async (store, loaded, parts) =>
    work(partsOf(store, loaded, parts), await webhookOfId(store.db.knex, id)),
  );
}

/** Prints one line for each webhook: its id, tenant, URL, events and state. */
export async function webhookListCommand(args: Arguments): Promise<number> {
  await withStore(args, async ({ db }) => {
    const scope = await scopeOption(args, db.knex);
    await printList(
      async (page) => {
        const rows = await listWebhooks(db.knex, scope, page);
        return { rows, more: rows.length === page.take };
      },
      ({ id }) => [id],
      (rows) => rows.map(lineOf),
    );
  });
  return 0;
}

function lineOf({ id, tenant_id, url, events, enabled, disabled_reason, dropped }: WebhookRow): string {
  const state = [
    enabled ? 'enabled' : 'disabled',
    ...(disabled_reason === null ? [] : [disabled_reason]),
    ...(dropped === 0 ? [] : [`${dropped} events left out`]),
  ];
  return `${id}  ${tenant_id}  ${printable(url)}  ${events.join(',')}  ${printable(state.join('; '))}\n`;
}

export async function webhookCreateCommand(args: Arguments): Promise<number> {
  const tenant = tenantOption(args);
  if (tenant === undefined) throw new UsageError('Give the tenant of the webhook with --tenant.');
  const [url, ...events] = args.words;
  if (url === undefined || events.length === 0)
    throw new UsageError('Give the URL and at least one event, for example key.expiring or budget.*.');
  const description = args.value('description');
  const { webhook, secret } = await withStore(args, (store, loaded, parts) =>
    createAsOperator(partsOf(store, loaded, parts), tenant, { url, events, ...present({ description }) }),
  );
  return printed(`${webhook.id}\n${secretLine(secret)}`);
}

export async function webhookRotateCommand(args: Arguments): Promise<number> {
  const [id] = wordsOf(args, ONE_WEBHOOK);
  const { secret } = await withWebhook(args, id, rotateAsOperator);
  return printed(`${secretLine(secret)}For 24 hours, each request has a signature of the former secret as well.\n`);
}

const secretLine = (secret: string): string => `${secret}\nStore the secret now. It is not shown again.\n`;

/** Sends a test. The exit code is 0 if the receiver accepted it, otherwise 1. */
export async function webhookTestCommand(args: Arguments): Promise<number> {
  const [id] = wordsOf(args, ONE_WEBHOOK);
  const row = await withWebhook(args, id, (parts, webhook) => testAsOperator(parts, webhook, parts.random(10)));
  process.stdout.write(deliveryLine(row));
  return row.state === 'delivered' ? 0 : 1;
}

export async function webhookDeliveriesCommand(args: Arguments): Promise<number> {
  const [id] = wordsOf(args, ONE_WEBHOOK);
  const rows = await withWebhook(args, id, ({ db }, webhook) =>
    listDeliveries(db.knex, webhook.id, {}, { after: undefined, take: SHOWN_DELIVERIES }),
  );
  for (const row of rows) process.stdout.write(deliveryLine(row));
  return 0;
}

function deliveryLine({ id, type, state, attempts, created_at, status, error }: DeliveryRow): string {
  const facts = [
    `${state} after ${attempts} ${attempts === 1 ? 'attempt' : 'attempts'}`,
    ...(status === null ? [] : [`status ${status}`]),
    ...(error === null ? [] : [error]),
  ];
  return `${id}  ${created_at.toISOString()}  ${type}  ${printable(facts.join('; '))}\n`;
}

/** Makes a delivery due again. Running servers send it within a second. */
export async function webhookReplayCommand(args: Arguments): Promise<number> {
  const [id, delivery] = wordsOf(args, 'Give the id of a webhook and the id of one of its deliveries.', 2);
  await withWebhook(args, id, (parts, webhook) => replayAsOperator(parts, webhook, delivery));
  return printed(`Running servers send ${delivery} again.\n`);
}

export async function webhookDeleteCommand(args: Arguments): Promise<number> {
  const [id] = wordsOf(args, ONE_WEBHOOK);
  await withWebhook(args, id, deleteAsOperator);
  return printed(`Deleted ${id} with its deliveries.\n`);
}
