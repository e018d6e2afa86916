/** A tenant with costs in this month and in the last one. */

import { done, type Person } from '../../server/support/client.ts';
import type { ConsoleStand } from './stand.ts';

/** Units of 10^-9. */
const UNIT = 1_000_000_000;
const DAY_MS = 86_400_000;
/** No price matches it. */
export const UNPRICED_MODEL = 'own-llama';

export interface Spender {
  readonly person: Person;
  readonly user: string;
  readonly key: string;
  /** Without an owner. */
  readonly ownKey: string;
}

interface Row {
  readonly day: string;
  readonly model: string;
  readonly key: string;
  readonly user: string;
  readonly requests: number;
  readonly cost: number;
}

/** Creates the tenant. This month has 75.50 of costs and 8 requests without a price; each day of the last one has 10. */
export async function makeSpender(stand: ConsoleStand, tenant: string): Promise<Spender> {
  const { http } = stand.server;
  const { token } = stand;
  const manage = async (method: string, path: string, body: object) =>
    (await done(http, method, path, { token, tenant, body })).body;
  await done(http, 'POST', '/v1/iam/tenants', { token, body: { id: tenant, name: tenant } });
  const person = { email: `ada@${tenant}.example`, password: 'a person in a system test', name: 'Ada Spender' };
  const user = String((await manage('POST', '/v1/iam/users', { ...person, roles: ['developer'] }))['id']);
  const newKey = { scopes: ['chat:*'], expires_in_days: 30 };
  const keys = [
    await manage('POST', '/v1/iam/api-keys', { ...newKey, description: 'The shop', user_id: user }),
    await manage('POST', '/v1/iam/api-keys', { ...newKey, description: 'The batch', metadata: { team: 'search' } }),
  ];
  const [key = '', ownKey = ''] = keys.map(({ id }) => String(id));
  const today = dayOf(Date.now());
  const row = { day: today, model: 'gpt-4o', key, user };
  const now: readonly Row[] = [
    { ...row, requests: 12, cost: 70.25 },
    { ...row, model: 'gpt-4o-mini', key: ownKey, user: '', requests: 4, cost: 5.25 },
    { ...row, model: UNPRICED_MODEL, key: ownKey, user: '', requests: 8, cost: 0 },
  ];
  const before = daysOfLastMonth().map((day): Row => ({ ...row, day, requests: 5, cost: 10 }));
  for (const one of [...now, ...before]) await book(stand, tenant, one);
  return { person, user, key, ownKey };
}

async function book({ db: { knex } }: ConsoleStand, tenant: string, row: Row): Promise<void> {
  const values = { ...row, tenant, prompt: row.requests * 999, tokens: row.requests * 1000, cost: row.cost * UNIT };
  const counts = 'requests, prompt_tokens, completion_tokens, total_tokens, cost';
  const sums = ':requests, :prompt, :requests, :tokens, :cost';
  await knex.raw(
    `insert into usage_daily (tenant_id, day, model, key_id, user_id, ${counts})
     values (:tenant, :day, :model, :key, :user, ${sums})`,
    values,
  );
  await knex.raw(
    `insert into usage_by_model (tenant_id, day, model, ${counts}) values (:tenant, :day, :model, ${sums})`,
    values,
  );
  await knex.raw(
    `insert into usage_by_month as m (tenant_id, month, key_id, user_id, ${counts})
     values (:tenant, date_trunc('month', cast(:day as date)), :key, :user, ${sums})
     on conflict (tenant_id, month, key_id, user_id) do update set requests = m.requests + excluded.requests,
       prompt_tokens = m.prompt_tokens + excluded.prompt_tokens, total_tokens = m.total_tokens + excluded.total_tokens,
       completion_tokens = m.completion_tokens + excluded.completion_tokens, cost = m.cost + excluded.cost`,
    values,
  );
  if (row.model === UNPRICED_MODEL) return;
  await knex.raw(
    `insert into usage_by_price (tenant_id, day, model, price_version, requests, total_tokens, cost)
     values (:tenant, :day, :model, 1, :requests, :tokens, :cost)`,
    values,
  );
}

/** Books an amount to the current month of a budget, as a settlement does. @param amount in the unit of the budget */
export async function spendBudget(
  { db: { knex } }: ConsoleStand,
  tenant: string,
  budget: string,
  amount: number,
): Promise<void> {
  await knex.raw('insert into token_budgets (tenant_id, period, spent) values (?, ?, ?)', [
    tenant,
    `${budget} ${dayOf(Date.now()).slice(0, 7)}#0`,
    amount * UNIT,
  ]);
}

function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

function daysOfLastMonth(): readonly string[] {
  const now = new Date();
  const first = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 1, 1);
  const end = Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 1);
  return Array.from({ length: (end - first) / DAY_MS }, (_, i) => dayOf(first + i * DAY_MS));
}
