/** PostgreSQL's store as the conformance suite reads it. */

import { postgresMetering } from '../../../src/store/metering/metering.ts';
import type { FreshDatabase } from '../../support/database.ts';
import type { StoreUnderTest } from './conformance.ts';
import type { Booked } from './memory-store.ts';

/** What was booked, by the names of `Booked`. The same sums of several tables must agree. */
const BOOKED = `
  select 'tenant ' || tenant_id as name, sum(requests) as requests, sum(total_tokens) as tokens, sum(cost) as cost
    from usage_daily where tenant_id = $1 group by 1
  union all select 'key ' || tenant_id || ' ' || key_id, sum(requests), sum(total_tokens), sum(cost)
    from usage_daily where tenant_id = $1 group by 1
  union all select 'key ' || tenant_id || ' ' || key_id, sum(requests), sum(total_tokens), sum(cost)
    from usage_by_month where tenant_id = $1 group by 1
  union all select 'user ' || tenant_id || ' ' || user_id, sum(requests), sum(total_tokens), sum(cost)
    from usage_daily where tenant_id = $1 group by 1
  union all select 'user ' || tenant_id || ' ' || user_id, sum(requests), sum(total_tokens), sum(cost)
    from usage_by_month where tenant_id = $1 group by 1
  union all select 'model ' || tenant_id || ' ' || model, sum(requests), sum(total_tokens), sum(cost)
    from usage_daily where tenant_id = $1 group by 1
  union all select 'model ' || tenant_id || ' ' || model, sum(requests), sum(total_tokens), sum(cost)
    from usage_by_model where tenant_id = $1 group by 1
  union all select 'price ' || tenant_id || ' ' || model || ' ' || price_version, sum(requests), sum(total_tokens), sum(cost)
    from usage_by_price where tenant_id = $1 group by 1`;

export function postgresUnderTest({ db }: FreshDatabase): StoreUnderTest {
  const first = async (text: string, ...values: readonly unknown[]) => (await db.query({ text, values }))[0];
  return {
    store: postgresMetering(db),
    async budget(tenant, period) {
      const row = await first(
        'select spent, held from token_budgets where tenant_id = $1 and period = $2',
        tenant,
        period,
      );
      const spent = Number(row?.['spent'] ?? 0);
      return { spent, used: spent + Number(row?.['held'] ?? 0) };
    },
    async usage(tenant) {
      const row = await first(
        `select coalesce(sum(requests), 0)::float8 as requests, coalesce(sum(total_tokens), 0)::float8 as tokens,
          coalesce(sum(estimated_tokens), 0)::float8 as estimated from usage_daily where tenant_id = $1`,
        tenant,
      );
      const [requests = 0, tokens = 0, estimated = 0] = ['requests', 'tokens', 'estimated'].map((name) =>
        Number(row?.[name]),
      );
      return { requests, tokens, estimated };
    },
    async booked(tenant) {
      const sums = new Map<string, Booked>();
      for (const row of await db.query({ text: BOOKED, values: [tenant] })) {
        const name = String(row['name']);
        const sum = { requests: Number(row['requests']), tokens: Number(row['tokens']), cost: Number(row['cost']) };
        const known = sums.get(name);
        if (known !== undefined && JSON.stringify(known) !== JSON.stringify(sum))
          throw new Error(`The tables of usage differ in ${name}: ${JSON.stringify(known)}, ${JSON.stringify(sum)}`);
        sums.set(name, sum);
      }
      return sums;
    },
    async collections(tenant) {
      return Number((await first('select count from collection_counts where tenant_id = $1', tenant))?.['count'] ?? 0);
    },
    async addBudget(tenant, { id, limit, alerts, epoch }) {
      await first(`insert into tenants (id, name) values ($1, $1) on conflict do nothing`, tenant);
      await first(
        `insert into budgets (id, tenant_id, name, unit, limit_amount, period, applies_to, alerts, epoch)
         values ($1, $2, $1, 'money', $3, 'month', '{"tenant": true}', $4, $5)`,
        ...[id, tenant, limit, JSON.stringify(alerts), epoch],
      );
    },
    async setQuota(tenant, tokens) {
      await first(
        `insert into tenants (id, name, quotas) values ($1, $1, jsonb_build_object('monthly_tokens', $2::bigint))`,
        ...[tenant, tokens],
      );
    },
    async alerts(tenant) {
      const rows = await db.query({
        text: 'select period, threshold::text as threshold from budget_alerts where tenant_id = $1 order by 1, 2',
        values: [tenant],
      });
      return rows.map(({ period, threshold }) => `${period} ${threshold}`);
    },
  };
}
