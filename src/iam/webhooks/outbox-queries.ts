/** Statements on the place in the audit log up to which events were read, and on the webhooks that receive them. */

import { runPrepared } from '../../store/prepared.ts';
import type { Queryable } from '../../store/queryable.ts';
import type { AuditCursor } from '../audit/queries.ts';
import type { WebhookRow } from './entity.ts';

const BEHIND = {
  name: 'is_outbox_behind',
  text: `select exists (
    select from webhook_cursor c where c.seal is distinct from (select seq from audit_seals order by seq desc limit 1)
      or c.row_id < (select max(id) from audit_seals s, unnest(s.row_ids) id where s.seq = c.seal)
  ) as behind`,
};

/** Reports whether rows may have been sealed since. */
export async function isOutboxBehind(q: Queryable): Promise<boolean> {
  const [row] = await runPrepared<{ behind: boolean }>(q, BEHIND, []);
  return row?.behind === true;
}

const HOLD = {
  name: 'hold_outbox',
  text: 'select seal, row_id as row, hash from webhook_cursor for update skip locked',
};

/** Locks the place until the transaction ends. Undefined: another process has it. */
export async function holdOutbox(trx: Queryable): Promise<AuditCursor | undefined> {
  const [cursor] = await runPrepared<AuditCursor>(trx, HOLD, []);
  return cursor;
}

const MOVE = { name: 'move_outbox', text: 'update webhook_cursor set seal = $1, row_id = $2, hash = $3' };

export async function moveOutbox(trx: Queryable, { seal, row, hash }: AuditCursor): Promise<void> {
  await runPrepared(trx, MOVE, [seal, row, hash]);
}

const ANY = { name: 'any_webhook', text: 'select exists (select from webhooks where enabled) as found' };

export async function anyWebhook(q: Queryable): Promise<boolean> {
  const [row] = await runPrepared<{ found: boolean }>(q, ANY, []);
  return row?.found === true;
}

export type ListeningWebhook = Pick<WebhookRow, 'id' | 'tenant_id' | 'events' | 'created_at'>;

const LISTENING = {
  name: 'listening_webhooks',
  text: 'select id, tenant_id, events, created_at from webhooks where enabled and tenant_id = any($1::text[])',
};

/** Returns the enabled webhooks of these tenants. */
export async function listeningWebhooks(
  q: Queryable,
  tenants: readonly string[],
): Promise<readonly ListeningWebhook[]> {
  return tenants.length === 0 ? [] : runPrepared<ListeningWebhook>(q, LISTENING, [tenants]);
}
