/** Reads the numbers of limits, and changes nothing. */

import type { ReadingRequest, ReadingResult, ReadingStore } from '../../metering/ports.ts';
import { firstRow, numberIn, numbersIn, type Queries } from './statement.ts';

const READ = {
  name: 'metering_read',
  text: `
    with instant as materialized (
      select extract(epoch from clock_timestamp())::float8 * 1000 as ms
    ), current as materialized (
      select ms, floor(ms / $1::float8)::bigint as number from instant
    ), budgets as materialized (
      select coalesce(json_agg(coalesce(b.spent, 0) order by at), '[]') as spent,
        coalesce(json_agg(coalesce(b.held, 0) order by at), '[]') as held
      from unnest($3::text[], $4::text[]) with ordinality as asked (tenant, period, at)
      left join token_budgets b on b.tenant_id = asked.tenant and b.period = asked.period
    )
    select ($1::float8 * (current.number + 1) - current.ms) as left_ms, budgets.spent, budgets.held,
      (select coalesce(json_agg(coalesce(w.granted, 0) order by at), '[]')
        from unnest($2::text[]) with ordinality as asked (subject, at)
        left join rate_windows w on w.subject = asked.subject and w.number = current.number) as granted,
      (select coalesce(json_agg(
          coalesce((select c.count from collection_counts c where c.tenant_id = asked.tenant), 0)
          + (select count(*) from collection_reservations r where r.tenant_id = asked.tenant and r.expires_at > clock_timestamp())
          order by at), '[]')
        from unnest($5::text[]) with ordinality as asked (tenant, at)) as collections
    from current, budgets`,
};

async function read(db: Queries, { windowMs, subjects, budgets, collections }: ReadingRequest): Promise<ReadingResult> {
  const tenants = budgets.map(({ tenant }) => tenant);
  const periods = budgets.map(({ period }) => period);
  const row = await firstRow(db, { ...READ, values: [windowMs, subjects, tenants, periods, collections] });
  return {
    granted: numbersIn(row, 'granted'),
    spent: numbersIn(row, 'spent'),
    held: numbersIn(row, 'held'),
    collections: numbersIn(row, 'collections'),
    windowLeftMs: numberIn(row, 'left_ms'),
  };
}

export function readingStore(db: Queries): ReadingStore {
  return { read: (request) => read(db, request) };
}
