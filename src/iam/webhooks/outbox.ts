/**
 * Turns rows of the audit log into deliveries. The log is the outbox: an event is a row of its cause's transaction, so
 * a change that is rolled back announces nothing. Rows are read in the order of their seals. The place up to which they
 * were read is stored with the deliveries, in one transaction, so a row becomes deliveries once.
 */

import { DEFAULT_TENANT, makeId, type WebhookId } from '../../domain/ids.ts';
import type { RandomSource } from '../../identity/api-keys.ts';
import type { Database } from '../../store/database.ts';
import type { Queryable } from '../../store/queryable.ts';
import { type Transaction, transaction } from '../../store/transaction.ts';
import { followAudit, newestCursor, UnknownCursorError } from '../audit/follow.ts';
import type { AuditResource } from '../audit/schemas.ts';
import { PLATFORM_EVENT, selectedEvent } from './catalog.ts';
import { insertDeliveries, type NewDelivery } from './delivery-queries.ts';
import {
  anyWebhook,
  holdOutbox,
  isOutboxBehind,
  type ListeningWebhook,
  listeningWebhooks,
  moveOutbox,
} from './outbox-queries.ts';

/** The largest number of waiting deliveries of one webhook. */
export const MAX_BACKLOG = 10_000;
/** Pages of one run. The next run continues. */
const MAX_PAGES = 20;
/** A body that is longer has the event without the states before and after the change. */
const MAX_BODY_LENGTH = 64 * 1024;

interface OutboxParts {
  readonly db: Database;
  readonly random: RandomSource;
  /** Called if rows were removed, or the database was restored, before their events were read. Must not throw. */
  readonly onSkipped?: (reason: string) => void;
}

/** @returns the number of new deliveries. Rejects with a Fault if the store is unavailable. */
export async function fillOutbox(parts: OutboxParts): Promise<number> {
  let made = 0;
  for (let page = 0; page < MAX_PAGES && (await isOutboxBehind(parts.db.knex)); page++) {
    const step = await transaction(parts.db, (trx) => nextPage(parts, trx));
    made += step.made;
    if (!step.more) break;
  }
  return made;
}

const DONE = { made: 0, more: false };

async function nextPage(
  { random, onSkipped }: OutboxParts,
  trx: Transaction,
): Promise<{ readonly made: number; readonly more: boolean }> {
  const cursor = await holdOutbox(trx);
  // Another process has it.
  if (cursor === undefined) return DONE;
  const skip = async (): Promise<typeof DONE> => {
    await moveOutbox(trx, await newestCursor(trx));
    return DONE;
  };
  if (!(await anyWebhook(trx))) return skip();
  try {
    const { rows, next, more, lost } = await followAudit(trx, cursor);
    if (lost > 0) onSkipped?.(`${lost} seals of the audit log were removed before their events were sent`);
    const made = await insertDeliveries(
      trx,
      await deliveriesOf(
        trx,
        rows.map(({ row }) => row),
        random,
      ),
      MAX_BACKLOG,
    );
    await moveOutbox(trx, next);
    return { made, more };
  } catch (error) {
    if (!(error instanceof UnknownCursorError)) throw error;
    onSkipped?.(error.message);
    return skip();
  }
}

async function deliveriesOf(
  q: Queryable,
  rows: readonly AuditResource[],
  random: RandomSource,
): Promise<readonly NewDelivery[]> {
  const tenants = new Set(rows.flatMap((row) => receiverOf(row) ?? []));
  const webhooks = Map.groupBy<string, ListeningWebhook>(
    await listeningWebhooks(q, [...tenants]),
    ({ tenant_id }) => tenant_id,
  );
  return rows.flatMap((row) => {
    const tenant = receiverOf(row);
    const listening: readonly ListeningWebhook[] = tenant === undefined ? [] : (webhooks.get(tenant) ?? []);
    return listening.flatMap(({ id, events, created_at }) => {
      const type = row.time < created_at ? undefined : selectedEvent(events, row);
      return type === undefined ? [] : [newDelivery(id, type, row, random)];
    });
  });
}

/** Returns the tenant whose webhooks receive a row. A row without a tenant is for readers of the whole platform only. */
function receiverOf({ tenant_id, action }: AuditResource): string | undefined {
  return tenant_id ?? (action === PLATFORM_EVENT ? DEFAULT_TENANT : undefined);
}

function newDelivery(webhook_id: WebhookId, type: string, row: AuditResource, random: RandomSource): NewDelivery {
  const id = makeId('dlv', Date.now(), random(10));
  const body = (data: object): string => JSON.stringify({ type, timestamp: row.time, data });
  const whole = body(row);
  if (whole.length <= MAX_BODY_LENGTH) return { id, webhook_id, type, body: whole };
  const { before: _before, after: _after, ...rest } = row;
  return { id, webhook_id, type, body: body({ ...rest, truncated: true }) };
}
