/** Statements on webhooks. Those on their deliveries are in delivery-queries.ts. */

import type { TenantId, WebhookId } from '../../domain/ids.ts';
import { type Page, scopeBinding, scopeCondition, type TenantScope } from '../../store/paging.ts';
import { countUpTo } from '../../store/prepared.ts';
import { type Queryable, writtenRow } from '../../store/queryable.ts';
import { columnsOf, updateOf } from '../schema/entity.ts';
import { type WebhookRow, type WebhookTable, webhook } from './entity.ts';

const COLUMNS = columnsOf(webhook);
const webhooks = (q: Queryable) => q<WebhookTable>('webhooks');

/** Lists webhooks by id, so in the order in which they were created. */
export async function listWebhooks(q: Queryable, scope: TenantScope, page: Page): Promise<readonly WebhookRow[]> {
  const { rows } = await q.raw<{ rows: WebhookRow[] }>(
    `select ${COLUMNS.join(', ')} from webhooks where ${scopeCondition(scope, 'tenant_id')} and id collate "C" > :after
     order by id collate "C" limit :take`,
    { ...scopeBinding(scope), after: page.after?.[0] ?? '', take: page.take },
  );
  return rows;
}

export function countWebhooks(q: Queryable, scope: TenantScope, most: number): Promise<number> {
  const sql = `select from webhooks where ${scopeCondition(scope, 'tenant_id')}`;
  return countUpTo(q, { sql, bindings: scopeBinding(scope) }, most);
}

/** @param lock locks the webhook against other changes until the transaction ends; new deliveries do not wait */
export async function findWebhook(
  q: Queryable,
  tenant: TenantId,
  id: WebhookId,
  lock = false,
): Promise<WebhookRow | undefined> {
  const found = q<WebhookRow>('webhooks').where({ tenant_id: tenant, id });
  return (lock ? found.forNoKeyUpdate() : found).first(COLUMNS);
}

/** A webhook and its tenant. */
export interface WebhookRef {
  readonly id: WebhookId;
  readonly tenant_id: TenantId;
}

/** Returns the webhook of an id in any tenant. */
export async function webhookRef(q: Queryable, id: WebhookId): Promise<WebhookRef | undefined> {
  return webhooks(q).where({ id }).first('id', 'tenant_id');
}

/** The values that a request sets. */
export type WebhookValues = Pick<WebhookRow, 'url' | 'events' | 'description' | 'enabled' | 'disabled_reason'>;

/** Throws an error of the constraint `webhooks_by_url` if the tenant has a webhook with the URL. */
export async function insertWebhook(
  q: Queryable,
  row: WebhookRef & WebhookValues & { readonly secret_sealed: Buffer },
): Promise<WebhookRow> {
  return writtenRow<WebhookRow>(await webhooks(q).insert(row, COLUMNS));
}

/** Changes a locked webhook. Throws like `insertWebhook`. */
export async function updateWebhookRow(q: Queryable, id: WebhookId, values: WebhookValues): Promise<WebhookRow> {
  const { disabled_reason } = values;
  const changes = { ...updateOf(webhook, values), disabled_reason, updated_at: q.raw('clock_timestamp()') };
  return writtenRow<WebhookRow>(
    await q('webhooks')
      .where({ id })
      .update(changes, [...COLUMNS]),
  );
}

/** Deletes a webhook. Its deliveries are sent no more, and stay until upkeep removes them. */
export async function deleteWebhookRow(q: Queryable, id: WebhookId): Promise<void> {
  await webhooks(q).where({ id }).delete();
}

/** Replaces the secret of a locked webhook. The former one signs as well for `overlapMs`. */
export async function replaceWebhookSecret(
  q: Queryable,
  id: WebhookId,
  sealed: Buffer,
  overlapMs: number,
): Promise<WebhookRow> {
  const { rows } = await q.raw<{ rows: WebhookRow[] }>(
    `update webhooks set previous_sealed = secret_sealed, secret_sealed = :sealed,
       previous_until = clock_timestamp() + make_interval(secs => cast(:overlap as double precision)), updated_at = clock_timestamp()
     where id = :id returning ${COLUMNS.join(', ')}`,
    { id, sealed, overlap: overlapMs / 1000 },
  );
  return writtenRow(rows);
}

interface SealedSecrets {
  readonly secret_sealed: Buffer;
  readonly previous_sealed: Buffer | null;
}

/** The sealed secrets of all webhooks, locked until the transaction ends. */
export async function lockWebhookSecrets(
  trx: Queryable,
): Promise<readonly (SealedSecrets & { readonly id: WebhookId })[]> {
  return webhooks(trx).orderBy('id').select('id', 'secret_sealed', 'previous_sealed').forUpdate();
}

/** Replaces sealed secrets. The same secret in another seal is no change of the webhook. */
export async function replaceWebhookSeals(trx: Queryable, id: WebhookId, sealed: SealedSecrets): Promise<void> {
  await trx('webhooks').where({ id }).update(sealed);
}
