/**
 * Statements on deliveries. An attempt is claimed for a short time, so that another process repeats it if the process
 * of the attempt dies.
 */

import type { DeliveryId, TenantId, WebhookId } from '../../domain/ids.ts';
import { type AuditRow, auditedBy, auditValues } from '../../store/audit-rows.ts';
import type { Page } from '../../store/paging.ts';
import { countUpTo, runPrepared } from '../../store/prepared.ts';
import type { Queryable } from '../../store/queryable.ts';
import { columnsOf } from '../schema/entity.ts';
import { PLATFORM_EVENT } from './catalog.ts';
import { type DeliveryRow, delivery } from './entity.ts';

const COLUMNS = columnsOf(delivery);

export interface DeliveryFilter {
  readonly state?: DeliveryRow['state'];
}

const conditionsOf = ({ state }: DeliveryFilter): string =>
  ['webhook_id = :webhook', ...(state === undefined ? [] : ['state = :state'])].join(' and ');

/** Lists the deliveries of a webhook, newest first: ids are ordered by time. */
export async function listDeliveries(
  q: Queryable,
  webhook: WebhookId,
  filter: DeliveryFilter,
  page: Page,
): Promise<readonly DeliveryRow[]> {
  const after = page.after?.[0];
  const { rows } = await q.raw<{ rows: DeliveryRow[] }>(
    `select ${COLUMNS.join(', ')} from webhook_deliveries where ${conditionsOf(filter)}
       ${after === undefined ? '' : 'and id < :after'} order by id desc limit :take`,
    { webhook, ...filter, ...(after === undefined ? {} : { after }), take: page.take },
  );
  return rows;
}

export function countDeliveries(
  q: Queryable,
  webhook: WebhookId,
  filter: DeliveryFilter,
  most: number,
): Promise<number> {
  const sql = `select from webhook_deliveries where ${conditionsOf(filter)}`;
  return countUpTo(q, { sql, bindings: { webhook, ...filter } }, most);
}

export async function findDelivery(q: Queryable, webhook: WebhookId, id: DeliveryId): Promise<DeliveryRow | undefined> {
  const { rows } = await q.raw<{ rows: DeliveryRow[] }>(
    `select ${COLUMNS.join(', ')} from webhook_deliveries where webhook_id = :webhook and id = :id`,
    { webhook, id },
  );
  return rows[0];
}

/** Reports whether deliveries of a webhook, sent or not, contain rows of the audit log that only its readers may see. */
export async function keepsAuditRows(q: Queryable, webhook: WebhookId): Promise<boolean> {
  const { rows } = await q.raw<{ rows: { kept: boolean }[] }>(
    `select exists (
       select from webhook_deliveries where webhook_id = :webhook and type like 'audit.%' and type <> :platform
     ) as kept`,
    { webhook, platform: PLATFORM_EVENT },
  );
  return rows[0]?.kept === true;
}

/** Makes a delivery due now, with all its attempts. One that an attempt is claimed for is due after the claim. */
export async function replayDeliveryRow(
  q: Queryable,
  webhook: WebhookId,
  id: DeliveryId,
): Promise<DeliveryRow | undefined> {
  const { rows } = await q.raw<{ rows: DeliveryRow[] }>(
    `update webhook_deliveries set state = 'waiting', attempts = 0, waiting_since = clock_timestamp(),
       next_attempt_at = greatest(clock_timestamp(), case when state = 'waiting' then attempted_at + ${LEASE} end)
     where webhook_id = :webhook and id = :id returning ${COLUMNS.join(', ')}`,
    { webhook, id },
  );
  return rows[0];
}

export type NewDelivery = Pick<ClaimedDelivery, 'id' | 'webhook_id' | 'type' | 'body'>;

/**
 * Inserts deliveries that are due now. A webhook that was deleted receives none.
 * @param most waiting deliveries of one webhook. Further ones are counted in `dropped` of the webhook.
 * @returns the number of inserted deliveries
 */
export async function insertDeliveries(
  q: Queryable,
  deliveries: readonly NewDelivery[],
  most: number,
): Promise<number> {
  const { rows } = await q.raw<{ rows: { inserted: number }[] }>(
    `with given as (
       select d.*, row_number() over (partition by webhook_id order by ordinal) as turn
       from rows from (jsonb_to_recordset(cast(:deliveries as jsonb)) as (id text, webhook_id text, type text, body text))
         with ordinality as d(id, webhook_id, type, body, ordinal)
     ), waiting as (
       select w.id, (select count(*) from (
         select from webhook_deliveries where webhook_id = w.id and state = 'waiting' limit :most
       ) counted) as n
       from webhooks w where w.id in (select webhook_id from given)
     ), inserted as (
       insert into webhook_deliveries (id, webhook_id, type, body)
       select g.id, g.webhook_id, g.type, g.body from given g join waiting w on w.id = g.webhook_id
       where w.n + g.turn <= :most order by g.ordinal
       returning webhook_id
     ), dropped as (
       update webhooks w set dropped = dropped + d.n
       from (select g.webhook_id, count(*) as n from given g join waiting w on w.id = g.webhook_id
         where w.n + g.turn > :most group by 1) d
       where w.id = d.webhook_id
     )
     select count(*)::int as inserted from inserted`,
    { deliveries: JSON.stringify(deliveries), most },
  );
  return rows[0]?.inserted ?? 0;
}

export interface DueWebhook {
  readonly id: WebhookId;
  readonly tenant_id: TenantId;
  readonly url: string;
}

const SENDABLE = `w.enabled and exists (select from tenants t where t.id = w.tenant_id and t.status = 'active' and t.deleted_at is null)`;

/** Steps from webhook to webhook in the index, so a long queue of one costs no more than a short one. */
const DUE = {
  name: 'due_webhooks',
  text: `
    with recursive step as (
      (select webhook_id from webhook_deliveries where state = 'waiting' order by webhook_id limit 1)
      union all
      select (
        select d.webhook_id from webhook_deliveries d where d.state = 'waiting' and d.webhook_id > s.webhook_id
        order by d.webhook_id limit 1
      ) from step s where s.webhook_id is not null
    )
    select id, tenant_id, url from (
      select *, row_number() over (partition by substring(lower(url) from '//([^/?#]*)') order by turn, due_at) as turn_of_host
      from (
        select w.id, w.tenant_id, w.url, d.next_attempt_at as due_at,
          row_number() over (partition by w.tenant_id order by d.next_attempt_at) as turn
        from step s join webhooks w on w.id = s.webhook_id cross join lateral (
          select next_attempt_at from webhook_deliveries
          where webhook_id = w.id and state = 'waiting' and next_attempt_at <= clock_timestamp()
          order by next_attempt_at limit 1
        ) d
        where ${SENDABLE}
      ) due
    ) ranked
    where turn_of_host <= $2 order by turn, due_at limit $1`,
};

/**
 * Returns webhooks with deliveries that are due: the one that waits longest of each tenant first.
 * @param perHost the largest number for one host
 */
export async function dueWebhooks(q: Queryable, limit: number, perHost: number): Promise<readonly DueWebhook[]> {
  return runPrepared(q, DUE, [limit, perHost]);
}

/** Another process takes over an attempt that ended without a result after this time. */
const LEASE = `interval '30 seconds'`;

/** A delivery that one process may send now. */
export interface ClaimedDelivery {
  readonly id: DeliveryId;
  readonly webhook_id: WebhookId;
  readonly tenant_id: TenantId;
  readonly url: string;
  readonly type: string;
  readonly body: string;
  /** The number of attempts, including this one. */
  readonly attempts: number;
  /** The time of the attempt, which names the claim. */
  readonly attempt: string;
  readonly secret_sealed: Buffer;
  /** Null if the former secret signs no longer. */
  readonly previous_sealed: Buffer | null;
}

const CLAIM = {
  name: 'claim_delivery',
  text: `
    with due as (
      select d.id from webhook_deliveries d join webhooks w on w.id = d.webhook_id
      where d.webhook_id = $1 and d.state = 'waiting' and d.next_attempt_at <= clock_timestamp()
        and case when $2::text is null then ${SENDABLE} else d.id = $2 end
      order by d.next_attempt_at limit 1 for update of d skip locked
    )
    update webhook_deliveries d set attempts = attempts + 1, attempted_at = clock_timestamp(),
      next_attempt_at = clock_timestamp() + ${LEASE}
    from due, webhooks w where d.id = due.id and w.id = d.webhook_id
    returning d.id, d.webhook_id, w.tenant_id, w.url, d.type, d.body, d.attempts, d.attempted_at::text as attempt, w.secret_sealed,
      case when w.previous_until > clock_timestamp() then w.previous_sealed end as previous_sealed`,
};

/**
 * Claims the delivery of a webhook that is due first. Of several processes that try, each gets another one.
 * @param id only this delivery, also of a disabled webhook
 */
export async function claimDelivery(
  q: Queryable,
  webhook: WebhookId,
  id?: DeliveryId,
): Promise<ClaimedDelivery | undefined> {
  const [claimed] = await runPrepared<ClaimedDelivery>(q, CLAIM, [webhook, id ?? null]);
  return claimed;
}

/** How an attempt ended. */
export interface AttemptResult {
  /** `waiting`: the next attempt follows. */
  readonly state: DeliveryRow['state'];
  readonly retryInMs?: number;
  readonly status: number | null;
  readonly answer: string | null;
  readonly error: string | null;
}

/** A replay sets the attempts to 0: the result of an attempt that ends later must not take its place. */
const CLAIMED = `id = $1 and attempted_at = $2::timestamptz and state = 'waiting' and attempts > 0`;

const SAVED = `update webhook_deliveries set state = $3, next_attempt_at = clock_timestamp() + make_interval(secs => $4::float8),
      status = $5, answer = $6, error = $7
    where ${CLAIMED}`;
const SAVE = { name: 'save_delivery', text: SAVED };

const valuesOf = (
  { id, attempt }: ClaimedDelivery,
  { state, retryInMs, status, answer, error }: AttemptResult,
): readonly unknown[] => [
  id,
  attempt,
  state,
  state === 'waiting' && retryInMs !== undefined ? retryInMs / 1000 : null,
  status,
  answer,
  error,
];

/** Stores the result of a claimed attempt. Has no effect if another process has taken it over, or a caller has replayed it. */
export async function saveAttempt(q: Queryable, claimed: ClaimedDelivery, result: AttemptResult): Promise<void> {
  await runPrepared(q, SAVE, valuesOf(claimed, result));
}

const GONE_VALUES = 7;
const SAVE_GONE = {
  name: 'save_gone_delivery',
  text: `with saved as (${SAVED} returning webhook_id),
    disabled as (
      update webhooks w set enabled = false, disabled_reason = $8, updated_at = clock_timestamp()
      from saved where w.id = saved.webhook_id and w.enabled and w.url = $9 returning w.id
    ), ${auditedBy('disabled', GONE_VALUES + 3)} select`,
};

/** Stores the result, and disables the webhook with its audit row, unless its URL has changed since. */
export async function saveGone(
  q: Queryable,
  claimed: ClaimedDelivery,
  result: AttemptResult,
  reason: string,
  audit: AuditRow,
): Promise<void> {
  await runPrepared(q, SAVE_GONE, [...valuesOf(claimed, result), reason, claimed.url, ...auditValues(audit)]);
}

const RELEASE = {
  name: 'release_delivery',
  text: `update webhook_deliveries set attempts = attempts - 1, next_attempt_at = clock_timestamp()
    where ${CLAIMED}`,
};

/** Gives back a claim whose attempt did not end, when the process stops. */
export async function releaseDelivery(q: Queryable, { id, attempt }: ClaimedDelivery): Promise<void> {
  await runPrepared(q, RELEASE, [id, attempt]);
}

const EXPIRE = {
  name: 'expire_deliveries',
  text: `update webhook_deliveries set state = 'failed', next_attempt_at = null, error = $1
    where id in (
      select d.id from webhook_deliveries d join webhooks w on w.id = d.webhook_id
      where d.state = 'waiting' and d.waiting_since < clock_timestamp() - interval '25 hours'
        and d.next_attempt_at < clock_timestamp() and not (${SENDABLE}) limit $2 for update of d skip locked
    ) returning id`,
};

/** Ends the deliveries that have waited for a day and whose webhook or tenant is disabled. Others are due, and are sent. */
export async function expireDeliveries(q: Queryable, most: number): Promise<number> {
  return (await runPrepared(q, EXPIRE, ['The delivery waited for a day, and its webhook or tenant is disabled.', most]))
    .length;
}

const PRUNE = {
  name: 'prune_deliveries',
  text: `delete from webhook_deliveries where id in (
      select id from webhook_deliveries where created_at < clock_timestamp() - interval '30 days' limit $1 for update skip locked
    ) returning id`,
};

/** Removes deliveries that are older than 30 days. */
export async function pruneDeliveries(q: Queryable, most: number): Promise<number> {
  return (await runPrepared(q, PRUNE, [most])).length;
}

/** Steps from webhook to webhook in the index, as DUE does. */
const PRUNE_ENDED = {
  name: 'prune_ended_deliveries',
  text: `
    with recursive step as (
      (select webhook_id from webhook_deliveries order by webhook_id limit 1)
      union all
      select (
        select d.webhook_id from webhook_deliveries d where d.webhook_id > s.webhook_id order by d.webhook_id limit 1
      ) from step s where s.webhook_id is not null
    ), ended as materialized (
      select s.webhook_id as id from step s
      where s.webhook_id is not null and not exists (select from webhooks w where w.id = s.webhook_id)
    )
    delete from webhook_deliveries where id = any (array(
      select d.id from ended e cross join lateral (
        select id from webhook_deliveries where webhook_id = e.id limit $1 for update skip locked
      ) d limit $1
    )) returning id`,
};

/** Removes deliveries of deleted webhooks. */
export async function pruneEndedDeliveries(q: Queryable, most: number): Promise<number> {
  return (await runPrepared(q, PRUNE_ENDED, [most])).length;
}

const BACKLOG = {
  name: 'webhook_backlog',
  text: `select count(*)::int as waiting,
      coalesce(extract(epoch from clock_timestamp() - min(next_attempt_at) filter (where next_attempt_at <= clock_timestamp())), 0)::float8 as "overdueSeconds"
    from webhook_deliveries d join webhooks w on w.id = d.webhook_id where d.state = 'waiting' and ${SENDABLE}`,
};

export interface Backlog {
  readonly waiting: number;
  /** For how long the first due delivery has waited for its attempt. */
  readonly overdueSeconds: number;
}

export async function webhookBacklog(q: Queryable): Promise<Backlog> {
  const [backlog] = await runPrepared<{ waiting: number; overdueSeconds: number }>(q, BACKLOG, []);
  return backlog ?? { waiting: 0, overdueSeconds: 0 };
}
